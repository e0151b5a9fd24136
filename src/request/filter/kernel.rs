//! Converts conditions, or parts of them, to the kernel's event filters.
//!
//! A filter must mean in the kernel exactly what the condition means in rtrace (kernel/trace/trace_events_filter.c).
//! The kernel compares in the width of the field, `&` tests for any bit, and strings have no escapes. Conditions that
//! would have another meaning there are not converted.

use super::ast::{Comparison, Expr, Name, Op, Value};
use crate::kernel::constant::Constant;

/// The kernel accepts one page, including the NUL.
const FILTER_BYTES_MAX: usize = 4095;
/// MAX_FILTER_STR_VAL: the kernel rejects longer strings.
const STRING_BYTES_MAX: usize = 255;

/// A field that the kernel can compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelField {
    /// An integer. The kernel compares all bits of the field. If the field is wider than the argument that it contains
    /// (a register), its width may be given here only if the upper bits are known to be clean.
    Number { name: String, bits: u8, signed: bool },
    /// A string: an array of char, or a `__data_loc` array of char.
    Text { name: String },
}

/// The fields of an event in the kernel.
pub trait KernelScope {
    /// Returns the field of a name, or `None` if the kernel has none.
    fn field(&self, name: &Name) -> Option<KernelField>;
    /// Returns the value of a constant that the name can be compared with.
    fn constant(&self, name: &Name, symbol: &str) -> Option<Constant>;
}

/// Converts a whole condition to a kernel filter. Returns `None` if any part of it cannot be converted.
pub fn to_kernel(expr: &Expr, scope: &dyn KernelScope) -> Option<String> {
    converted(expr, scope).filter(|text| text.len() <= FILTER_BYTES_MAX)
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
                // A value of a field of several bits would need a mask, which the kernel's filters do not have.
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

/// Converts a comparison of strings. The kernel reads up to the closing quote, has no escapes, and reads `!` at the
/// beginning of a pattern as a negation.
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
