//! Whether a condition fits anything: what each of its comparisons found in the scopes that the condition was held
//! against.
//!
//! A condition speaks of calls and events of many kinds, and few of them have all of its names. A comparison that
//! means nothing in one scope is false there; one that means nothing in any of them is a mistake.

use super::ast::Expr;
use super::eval::{Scope, Unbound};
use crate::text::near;
use std::collections::BTreeSet;

/// How many near names a mistake is given.
const NEAR_MAX: usize = 3;

/// What became of the comparisons, in their order.
#[derive(Debug, Default)]
pub struct Fit {
    comparisons: Vec<Found>,
}

#[derive(Debug, Default)]
struct Found {
    fits: bool,
    why_not: Option<Unbound>,
    /// What could have been written.
    known: BTreeSet<String>,
}

impl Fit {
    /// Notes that this comparison means something in a scope.
    pub(super) fn fits(&mut self, at: usize) {
        self.found(at).fits = true;
    }

    /// Notes that it means nothing there.
    pub(super) fn refuse(&mut self, at: usize, why: Unbound, scope: &dyn Scope) {
        let found = self.found(at);
        if found.fits {
            return;
        }
        match (&why, &found.why_not) {
            // Elsewhere the name exists.
            (Unbound::Name(_), Some(Unbound::Symbol { .. } | Unbound::NotText(_) | Unbound::NotNumber(_))) => return,
            (Unbound::Name(_), _) => found.known.extend(scope.names()),
            (Unbound::Symbol { name, .. }, earlier) => {
                if !matches!(earlier, Some(Unbound::Symbol { .. })) {
                    found.known.clear();
                }
                found.known.extend(scope.constants(name));
            }
            _ => found.known.clear(),
        }
        found.why_not = Some(why);
    }

    /// Whether every comparison meant something somewhere.
    ///
    /// # Errors
    /// A sentence about the first that did not, with near names.
    pub fn check(&self, expr: &Expr) -> Result<(), String> {
        let refused = self.comparisons.iter().find(|found| !found.fits).and_then(|found| Some((found, found.why_not.as_ref()?)));
        let Some((found, why)) = refused else { return Ok(()) };
        let wrong = match why {
            Unbound::Name(name) => name.0.as_str(),
            Unbound::Symbol { symbol, .. } => symbol.as_str(),
            Unbound::NotText(_) | Unbound::NotNumber(_) => "",
        };
        let near = near::nearest(wrong, found.known.iter().map(String::as_str), NEAR_MAX);
        Err(format!("--filter '{expr}': {why}{}", near::hint(&near)))
    }

    fn found(&mut self, at: usize) -> &mut Found {
        if self.comparisons.len() <= at {
            self.comparisons.resize_with(at + 1, Found::default);
        }
        &mut self.comparisons[at]
    }
}
