//! The names of one field's values.

use super::expr::Expr;
use crate::kernel::constant::Constant;

/// The expressions that the kernel prints names of a field's values with.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueNames {
    pub field: String,
    /// The expressions in their order. `true` joins an expression's text to the one before without a separator.
    parts: Vec<(Expr, bool)>,
}

/// A text, and the bits of the field's number that it stands for.
struct NamedBits {
    text: String,
    bits: u64,
}

impl ValueNames {
    pub(super) fn new(field: &str) -> ValueNames {
        ValueNames { field: field.to_owned(), parts: Vec::new() }
    }

    pub(super) fn add(&mut self, expr: Expr) {
        self.parts.push((expr, false));
    }

    pub(super) fn append(&mut self, expr: Expr) {
        self.parts.push((expr, true));
    }

    /// Returns all names that the kernel prints, and the numbers that they stand for.
    pub fn constants(&self) -> Vec<(String, Constant)> {
        let mut found = Vec::new();
        self.parts.iter().for_each(|(expr, _)| constants(expr, &mut found));
        found
    }

    /// Returns the names of a value whose size is `bytes`, followed by the bits without a name in hexadecimal. `number`
    /// returns the values of fields, also this one's. Returns `None` if no bit of the value has a name, so that the
    /// number is to be printed.
    pub fn text(&self, bytes: u8, number: &dyn Fn(&str) -> Option<i128>) -> Option<String> {
        let width = u64::MAX >> (64 - 8 * u32::from(bytes.clamp(1, 8)));
        let value = number(&self.field)? as u64 & width;
        let (mut text, mut named_bits) = (String::new(), 0u64);
        for (expr, joined) in &self.parts {
            let Some(named) = name(expr, &self.field, number) else { continue };
            if !(*joined || text.is_empty() || named.text.is_empty()) {
                text.push('|');
            }
            text.push_str(&named.text);
            named_bits |= named.bits;
        }
        let rest = value & !named_bits;
        match (text.is_empty(), rest) {
            (true, _) => None,
            (false, 0) => Some(text),
            (false, rest) if rest == value => None,
            (false, rest) => Some(format!("{text}|{rest:#x}")),
        }
    }
}

/// Returns the field whose names an expression prints, if it is a single one.
pub fn named_field(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Flags { value, .. } | Expr::Symbolic { value, .. } => Some(operand(value)?.0.to_owned()),
        Expr::Condition(_, yes, no) => match (yes.as_ref(), no.as_ref()) {
            (named, Expr::Text(_)) | (Expr::Text(_), named) => named_field(named),
            (yes, no) => named_field(yes).filter(|field| named_field(no).as_ref() == Some(field)),
        },
        _ => None,
    }
}

/// Whether an expression is a conditional that chooses between two texts by bits of a field.
pub fn chooses_by(expr: &Expr, field: &str) -> bool {
    match expr {
        Expr::Condition(condition, yes, no) => {
            matches!((yes.as_ref(), no.as_ref()), (Expr::Text(_), Expr::Text(_)))
                && operand(condition).is_some_and(|(name, _)| name == field)
        }
        _ => false,
    }
}

/// Returns the field of an operand, which may be masked by a constant, and the mask.
fn operand(expr: &Expr) -> Option<(&str, u64)> {
    match expr {
        Expr::Field(name) => Some((name, u64::MAX)),
        Expr::Cast(_, inner) => operand(inner),
        Expr::Binary(left, "&", right) => match (left.as_ref(), right.as_ref()) {
            (field, Expr::Number(mask)) | (Expr::Number(mask), field) => operand(field).map(|(name, inner)| (name, inner & *mask as u64)),
            _ => None,
        },
        _ => None,
    }
}

fn constants(expr: &Expr, found: &mut Vec<(String, Constant)>) {
    match expr {
        Expr::Flags { names, .. } => found.extend(names.iter().map(|(bits, name)| (name.clone(), Constant::of_bits(*bits)))),
        Expr::Symbolic { value, names } => {
            let Some((_, mask)) = operand(value) else { return };
            found.extend(names.iter().map(|(value, name)| (name.clone(), Constant { value: i128::from(*value), mask })));
        }
        Expr::Condition(condition, yes, no) => {
            let mask = operand(condition).map(|(_, mask)| mask);
            // The first text stands for a set bit, if the condition is a single bit. The second stands for none of the
            // bits being set.
            match (yes.as_ref(), mask) {
                (Expr::Text(text), Some(mask)) if mask.is_power_of_two() => found.push((text.clone(), Constant::of_bits(mask))),
                (other, _) => constants(other, found),
            }
            match (no.as_ref(), mask) {
                (Expr::Text(text), Some(mask)) if !text.is_empty() => found.push((text.clone(), Constant { value: 0, mask })),
                (other, _) => constants(other, found),
            }
        }
        _ => {}
    }
}

/// Evaluates an expression: returns its text, and the bits of the field that the text stands for.
fn name(expr: &Expr, field: &str, number: &dyn Fn(&str) -> Option<i128>) -> Option<NamedBits> {
    match expr {
        Expr::Flags { value, between, names } => {
            let mask = operand(value)?.1;
            Some(flags(value.value(number)? as u64, mask, between, names))
        }
        Expr::Symbolic { value, names } => {
            let (mask, number) = (operand(value)?.1, value.value(number)? as u64);
            let found = names.iter().find(|(value, _)| *value == number);
            Some(found.map_or(NamedBits { text: String::new(), bits: 0 }, |(_, name)| NamedBits { text: name.clone(), bits: mask }))
        }
        Expr::Condition(condition, yes, no) => {
            let holds = condition.value(number)? != 0;
            match if holds { yes.as_ref() } else { no.as_ref() } {
                // A text describes this field only if the condition has no other field.
                Expr::Text(text) if condition.fields_all(&|name| name == field) && !text.contains(char::is_control) => {
                    // It stands for a bit if the condition tests that bit alone. A condition on several bits does not
                    // tell which of them is set.
                    let bits = operand(condition).filter(|(_, mask)| holds && mask.is_power_of_two()).map_or(0, |(_, mask)| mask);
                    Some(NamedBits { text: text.clone(), bits })
                }
                Expr::Text(_) => None,
                chosen => name(chosen, field, number),
            }
        }
        _ => None,
    }
}

/// Returns the names whose bits are all set. Each bit is named once.
fn flags(bits: u64, mask: u64, between: &str, names: &[(u64, String)]) -> NamedBits {
    let (mut left, mut text) = (bits, String::new());
    let zero = names.iter().find(|(value, _)| *value == 0).filter(|_| bits == 0);
    for (value, name) in names.iter().filter(|(value, _)| *value != 0) {
        if left & value == *value {
            left &= !value;
            if !text.is_empty() {
                text.push_str(between);
            }
            text.push_str(name);
        }
    }
    if let Some((_, name)) = zero {
        text.clone_from(name);
    }
    NamedBits { text, bits: bits & !left & mask }
}
