//! The part of a condition that the kernel can decide, in the language of its event filters.
//!
//! What goes to the kernel must mean there exactly what it means here (kernel/trace/trace_events_filter.c): comparisons are made in the field's own width, `&` asks for any
//! bit, strings know no escapes. Whatever would mean something else stays here.

use super::ast::{Comparison, Expr, Name, Op, Value};
use crate::kernel::constant::Constant;

/// The kernel takes one page, with the NUL.
const FILTER_BYTES_MAX: usize = 4095;
/// MAX_FILTER_STR_VAL: longer strings are refused.
const STRING_BYTES_MAX: usize = 255;

/// A field that the kernel can compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelField {
    /// An integer of so many bits. Where the record's field is wider than the argument it stands for (registers), the bits beyond are compared as well: say
    /// the record's width only if they are known to be clean.
    Number { name: String, bits: u8, signed: bool },
    /// A string: an array of char, or a `__data_loc` one.
    Text { name: String },
}

/// Where names and symbols mean what in the kernel.
pub trait KernelScope {
    /// The field behind a name; `None` where the kernel has none.
    fn field(&self, name: &Name) -> Option<KernelField>;
    /// What a constant stands for that the name can be compared with.
    fn constant(&self, name: &Name, symbol: &str) -> Option<Constant>;
}

/// The whole condition as a kernel filter; `None` if any part of it cannot be said there.
pub fn to_kernel(expr: &Expr, scope: &dyn KernelScope) -> Option<String> {
    converted(expr, scope).filter(|text| text.len() <= FILTER_BYTES_MAX)
}

/// What the kernel can decide beforehand, and what is left to decide here: an event passes if both hold.
pub fn split_for_kernel(expr: &Expr, scope: &dyn KernelScope) -> (Option<String>, Option<Expr>) {
    let (mut there, mut here) = (Vec::new(), Vec::new());
    for part in conjuncts(expr) {
        match converted(part, scope) {
            Some(text) if there.iter().map(|t: &String| t.len() + 6).sum::<usize>() + text.len() + 2 <= FILTER_BYTES_MAX => {
                there.push(text)
            }
            _ => here.push(part.clone()),
        }
    }
    let there = match there.len() {
        0 => None,
        1 => there.pop(),
        _ => Some(join(there.into_iter(), " && ")),
    };
    let here = if here.len() > 1 { Some(Expr::And(here)) } else { here.pop() };
    (there, here)
}

fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::And(parts) => parts.iter().flat_map(conjuncts).collect(),
        one => vec![one],
    }
}

fn converted(expr: &Expr, scope: &dyn KernelScope) -> Option<String> {
    match expr {
        Expr::Or(parts) => all(parts, scope).map(|parts| join(parts.into_iter(), " || ")),
        Expr::And(parts) => all(parts, scope).map(|parts| join(parts.into_iter(), " && ")),
        Expr::Not(inner) => Some(format!("!({})", converted(inner, scope)?)),
        Expr::Test(comparison) => test(comparison, scope),
    }
}

fn all(parts: &[Expr], scope: &dyn KernelScope) -> Option<Vec<String>> {
    parts.iter().map(|part| converted(part, scope)).collect()
}

fn join(parts: impl Iterator<Item = String>, between: &str) -> String {
    parts.map(|part| format!("({part})")).collect::<Vec<_>>().join(between)
}

fn test(comparison: &Comparison, scope: &dyn KernelScope) -> Option<String> {
    match (scope.field(&comparison.name)?, &comparison.value) {
        (KernelField::Text { name }, Value::Text(text)) => string(&name, comparison.op, text),
        (KernelField::Text { name }, Value::Symbol(word)) => string(&name, comparison.op, word.as_bytes()),
        (KernelField::Text { .. }, _) => None,
        (KernelField::Number { name, bits, signed }, value) => {
            let field = Number { name, bits, signed };
            match comparison.op {
                Op::Like | Op::Unlike => None,
                Op::Bits => field.bits_set(comparison, value, scope),
                op => field.compare(op.text(), number(comparison, value, scope)?),
            }
        }
    }
}

struct Number {
    name: String,
    bits: u8,
    signed: bool,
}

impl Number {
    fn compare(&self, op: &str, with: i128) -> Option<String> {
        let value_bits = u32::from(self.bits) - u32::from(self.signed);
        let low = if self.signed { -(1i128 << value_bits) } else { 0 };
        (low..1i128 << value_bits).contains(&with).then(|| format!("{} {op} {with}", self.name))
    }

    fn bits_set(&self, comparison: &Comparison, value: &Value, scope: &dyn KernelScope) -> Option<String> {
        match value {
            Value::AnyOf(parts) => {
                let parts: Option<Vec<String>> = parts.iter().map(|part| self.bits_set(comparison, part, scope)).collect();
                Some(join(parts?.into_iter(), " || "))
            }
            Value::Symbol(symbol) => {
                let constant = scope.constant(&comparison.name, symbol)?;
                // One value among the bits of a field: the kernel knows no masks.
                let mask = u64::try_from(constant.value).ok().filter(|bits| *bits == constant.mask)?;
                let each = (0..64).map(|bit| mask & 1 << bit).filter(|bit| *bit != 0);
                let each: Option<Vec<String>> = each.map(|bit| self.compare("&", bit.into())).collect();
                match each? {
                    none if none.is_empty() => None,
                    mut one if one.len() == 1 => one.pop(),
                    more => Some(join(more.into_iter(), " && ")),
                }
            }
            _ => self.compare("&", number(comparison, value, scope)?),
        }
    }
}

fn number(comparison: &Comparison, value: &Value, scope: &dyn KernelScope) -> Option<i128> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Symbol(symbol) => scope.constant(&comparison.name, symbol).map(|constant| constant.value),
        Value::AnyOf(parts) => parts.iter().try_fold(0, |sum, part| Some(sum | number(comparison, part, scope)?)),
        Value::Text(_) => None,
    }
}

/// A comparison of strings. The kernel reads up to the closing quote, knows no escapes, and takes a `!` at a pattern's beginning for a negation.
fn string(name: &str, op: Op, text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok().filter(|text| !text.contains(['\0', '\n']) && text.len() <= STRING_BYTES_MAX)?;
    let quote = if text.contains('"') { '\'' } else { '"' };
    if text.contains(quote) {
        return None;
    }
    match op {
        Op::Equal | Op::NotEqual => Some(format!("{name} {} {quote}{text}{quote}", op.text())),
        Op::Like if !text.starts_with('!') && !text.is_empty() => Some(format!("{name} ~ {quote}{text}{quote}")),
        Op::Unlike if !text.starts_with('!') && !text.is_empty() => Some(format!("!({name} ~ {quote}{text}{quote})")),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
