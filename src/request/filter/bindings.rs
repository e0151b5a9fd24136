//! Detects comparisons that cannot be resolved in any scope.
//!
//! A condition applies to syscalls and events of many kinds, and few of these have all of its names. A comparison whose
//! names do not exist in a scope is false there. If they do not exist in any scope, the condition is an error.

use super::ast::Expr;
use super::eval::{Scope, Unbound};
use crate::text::near;
use std::collections::BTreeSet;

/// The number of similar names in an error.
const NEAR_MAX: usize = 3;

/// The results of binding a condition in several scopes.
#[derive(Debug, Default)]
pub struct Bindings {
    /// The results for each comparison, in the order of the condition.
    comparisons: Vec<BindingResult>,
}

#[derive(Debug, Default)]
struct BindingResult {
    /// The comparison was resolved in a scope.
    is_bound: bool,
    /// The most specific error of the scopes in which it was not resolved.
    error: Option<Unbound>,
    /// The names or constants that exist in the scopes.
    known: BTreeSet<String>,
}

impl Bindings {
    /// Records that the comparison with this index was resolved.
    pub(super) fn bound(&mut self, index: usize) {
        self.result(index).is_bound = true;
    }

    /// Records that the comparison with this index was not resolved in the scope.
    pub(super) fn failed(&mut self, index: usize, error: Unbound, scope: &dyn Scope) {
        let result = self.result(index);
        if result.is_bound {
            return;
        }
        match (&error, &result.error) {
            // The name exists in another scope, so the other error is more specific.
            (Unbound::Name(_), Some(Unbound::Symbol { .. } | Unbound::NotText(_) | Unbound::NotNumber(_))) => return,
            (Unbound::Name(_), _) => result.known.extend(scope.names()),
            (Unbound::Symbol { name, .. }, earlier) => {
                if !matches!(earlier, Some(Unbound::Symbol { .. })) {
                    result.known.clear();
                }
                result.known.extend(scope.constants(name));
            }
            _ => result.known.clear(),
        }
        result.error = Some(error);
    }

    /// Checks that every comparison was resolved in at least one scope. `option` is the one that has the condition.
    ///
    /// # Errors
    /// A comparison was not. The error is about the first of them and suggests similar names.
    pub fn check(&self, option: &str, expr: &Expr) -> Result<(), String> {
        let failed = self.comparisons.iter().find(|result| !result.is_bound).and_then(|result| Some((result, result.error.as_ref()?)));
        let Some((result, error)) = failed else { return Ok(()) };
        let unknown = match error {
            Unbound::Name(name) => name.0.as_str(),
            Unbound::Symbol { symbol, .. } => symbol.as_str(),
            Unbound::NotText(_) | Unbound::NotNumber(_) => "",
        };
        let near = near::nearest(unknown, result.known.iter().map(String::as_str), NEAR_MAX);
        Err(format!("{option} '{expr}': {error}{}", near::hint(&near)))
    }

    fn result(&mut self, index: usize) -> &mut BindingResult {
        if self.comparisons.len() <= index {
            self.comparisons.resize_with(index + 1, BindingResult::default);
        }
        &mut self.comparisons[index]
    }
}
