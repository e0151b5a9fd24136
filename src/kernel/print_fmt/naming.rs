//! The names of one field's values.

use super::expr::Expr;
use crate::kernel::constant::Constant;

/// How a field's number becomes names.
#[derive(Clone, Debug, PartialEq)]
pub struct Naming {
    pub field: String,
    /// What the kernel prints of the field, in order; `true` joins a text to the one before.
    parts: Vec<(Expr, bool)>,
}

/// A text and the bits of the field's number that it explains.
struct Named {
    text: String,
    explained: u64,
}

impl Naming {
    pub(super) fn new(field: &str) -> Naming {
        Naming { field: field.to_owned(), parts: Vec::new() }
    }

    pub(super) fn add(&mut self, expr: Expr) {
        self.parts.push((expr, false));
    }

    pub(super) fn append(&mut self, expr: Expr) {
        self.parts.push((expr, true));
    }

    /// Each name that the kernel prints, and the number that it stands for.
    pub fn constants(&self) -> Vec<(String, Constant)> {
        let mut found = Vec::new();
        self.parts.iter().for_each(|(expr, _)| constants(expr, &mut found));
        found
    }

    /// The names of a value of so many bytes; `number` gives the values of fields, this one's too. Bits without a name follow in hexadecimal.
    /// `None` if there is no name for anything in it: print the number.
    pub fn text(&self, bytes: u8, number: &dyn Fn(&str) -> Option<i128>) -> Option<String> {
        let width = u64::MAX >> (64 - 8 * u32::from(bytes.clamp(1, 8)));
        let value = number(&self.field)? as u64 & width;
        let (mut text, mut explained) = (String::new(), 0u64);
        for (expr, joined) in &self.parts {
            let Some(named) = name(expr, &self.field, number) else { continue };
            if !(*joined || text.is_empty() || named.text.is_empty()) {
                text.push('|');
            }
            text.push_str(&named.text);
            explained |= named.explained;
        }
        let rest = value & !explained;
        match (text.is_empty(), rest) {
            (true, _) => None,
            (false, 0) => Some(text),
            (false, rest) if rest == value => None,
            (false, rest) => Some(format!("{text}|{rest:#x}")),
        }
    }
}

/// The one field whose names an expression prints.
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

/// Whether it is a choice between texts by some bits of this field.
pub fn chooses_by(expr: &Expr, field: &str) -> bool {
    match expr {
        Expr::Condition(condition, yes, no) => {
            matches!((yes.as_ref(), no.as_ref()), (Expr::Text(_), Expr::Text(_)))
                && operand(condition).is_some_and(|(name, _)| name == field)
        }
        _ => false,
    }
}

/// A field, whole or masked by a constant: its name and the mask.
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
            // A text stands for the bits that chose it: all of one, or none of them.
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

fn name(expr: &Expr, field: &str, number: &dyn Fn(&str) -> Option<i128>) -> Option<Named> {
    match expr {
        Expr::Flags { value, between, names } => {
            let mask = operand(value)?.1;
            Some(flags(value.value(number)? as u64, mask, between, names))
        }
        Expr::Symbolic { value, names } => {
            let (mask, bits) = (operand(value)?.1, value.value(number)? as u64);
            let found = names.iter().find(|(value, _)| *value == bits);
            Some(found.map_or(Named { text: String::new(), explained: 0 }, |(_, name)| Named { text: name.clone(), explained: mask }))
        }
        Expr::Condition(condition, yes, no) => {
            let holds = condition.value(number)? != 0;
            match if holds { yes.as_ref() } else { no.as_ref() } {
                // A text speaks of this field only if this field alone chose it.
                Expr::Text(text) if condition.fields_all(&|name| name == field) && !text.contains(char::is_control) => {
                    // It explains a bit if that one bit chose it; a condition on more says not which of them it was.
                    let explained = operand(condition).filter(|(_, mask)| holds && mask.is_power_of_two()).map_or(0, |(_, mask)| mask);
                    Some(Named { text: text.clone(), explained })
                }
                Expr::Text(_) => None,
                chosen => name(chosen, field, number),
            }
        }
        _ => None,
    }
}

/// The names whose bits are all set, each bit named once.
fn flags(bits: u64, mask: u64, between: &str, names: &[(u64, String)]) -> Named {
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
    Named { text, explained: bits & !left & mask }
}
