//! The names of one field's values.

use super::expr::Expr;
use crate::kernel::constant::Constant;
use std::fmt;

/// The expressions that the kernel prints names of a field's values with.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueNames {
    /// The name of the field whose values have these names.
    pub field: String,
    /// The expressions in their order. `true` joins an expression's text to the one before without a separator.
    parts: Vec<(Expr, bool)>,
}

/// A number as the kernel prints it: names, and the bits without a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedNumber {
    /// The number as a whole, as an unsigned one.
    pub number: u64,
    /// The names, in the order in which they are printed.
    pub names: Vec<NumberName>,
    /// The bits of the number that no name stands for; 0 if the names describe all of it.
    pub rest: u64,
}

/// One name of a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberName {
    /// The text between the previous name and this one: mostly `|`; empty before the first name.
    pub separator: String,
    /// The name that stands for the number, or for some of its bits.
    pub name: String,
}

/// Writes the names and the rest of the bits in hexadecimal: `S|0x1000`.
impl fmt::Display for NamedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.names.iter().try_for_each(|NumberName { separator, name }| write!(f, "{separator}{name}"))?;
        if self.rest != 0 {
            write!(f, "|{:#x}", self.rest)?;
        }
        Ok(())
    }
}

/// Names, and the bits of the field's number that they stand for.
#[derive(Default)]
struct NamedBits {
    names: Vec<NumberName>,
    bits: u64,
}

impl NamedBits {
    fn one(name: &str, bits: u64) -> NamedBits {
        let mut named = NamedBits { names: Vec::new(), bits };
        named.add("", name);
        named
    }

    fn add(&mut self, between: &str, name: &str) {
        if !name.is_empty() {
            let separator = if self.names.is_empty() { "" } else { between };
            self.names.push(NumberName { separator: separator.to_owned(), name: name.to_owned() });
        }
    }
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

    /// Returns the names of a value whose size is `bytes`, and the bits without a name. `number` returns the values of
    /// fields, including this one. Returns `None` if no bit of the value has a name, so that the number is to be
    /// printed.
    pub fn named(&self, bytes: u8, number: &dyn Fn(&str) -> Option<i128>) -> Option<NamedNumber> {
        let width = u64::MAX >> (64 - 8 * u32::from(bytes.clamp(1, 8)));
        let value = number(&self.field)? as u64 & width;
        let (mut names, mut named_bits) = (Vec::new(), 0u64);
        for (expr, joined) in &self.parts {
            let Some(mut named) = name(expr, &self.field, number) else { continue };
            if let Some(first) = named.names.first_mut().filter(|_| !*joined && !names.is_empty()) {
                first.separator = "|".to_owned();
            }
            names.append(&mut named.names);
            named_bits |= named.bits;
        }
        let rest = value & !named_bits;
        let has_name = !names.is_empty() && (rest == 0 || rest != value);
        has_name.then_some(NamedNumber { number: value, names, rest })
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

/// Evaluates an expression. Returns its names, and the bits of the field that they stand for.
fn name(expr: &Expr, field: &str, number: &dyn Fn(&str) -> Option<i128>) -> Option<NamedBits> {
    match expr {
        Expr::Flags { value, between, names } => {
            let mask = operand(value)?.1;
            Some(flags(value.value(number)? as u64, mask, between, names))
        }
        Expr::Symbolic { value, names } => {
            let (mask, number) = (operand(value)?.1, value.value(number)? as u64);
            let found = names.iter().find(|(value, _)| *value == number);
            Some(found.map_or(NamedBits::default(), |(_, name)| NamedBits::one(name, mask)))
        }
        Expr::Condition(condition, yes, no) => {
            let holds = condition.value(number)? != 0;
            match if holds { yes.as_ref() } else { no.as_ref() } {
                // A text describes this field only if the condition has no other field.
                Expr::Text(text) if condition.fields_all(&|name| name == field) && !text.contains(char::is_control) => {
                    // It stands for a bit if the condition tests that bit alone. A condition on several bits does not
                    // tell which of them is set.
                    let bits = operand(condition).filter(|(_, mask)| holds && mask.is_power_of_two()).map_or(0, |(_, mask)| mask);
                    Some(NamedBits::one(text, bits))
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
    if let Some((_, name)) = names.iter().find(|(value, _)| bits == 0 && *value == 0) {
        return NamedBits::one(name, 0);
    }
    let (mut left, mut named) = (bits, NamedBits::default());
    for (value, name) in names.iter().filter(|(value, _)| *value != 0) {
        if left & value == *value {
            left &= !value;
            named.add(between, name);
        }
    }
    NamedBits { bits: bits & !left & mask, ..named }
}
