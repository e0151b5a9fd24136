//! The `print fmt:` line of an event's format file: the names of flags and values of its fields, and the formats of
//! numbers and bytes.
//!
//! The line is C code that the kernel's macros produced. rtrace does not evaluate it as a whole, but prints the fields
//! with their names. It uses only the parts that apply to a single field: `__print_flags` and `__print_symbolic` of
//! that field (whole, masked or cast), texts that a condition on it chooses, and the field's conversion. A field
//! without such a part, or with one that is not understood, is printed by its type. A name is printed only together
//! with all bits of the number that it does not stand for.

mod conversion;
mod expr;
mod token;
mod value_names;

pub use value_names::{NamedNumber, NumberName, ValueNames};

use conversion::conversions;
use expr::Expr;

/// The parsed line of one event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrintFormat {
    value_names: Vec<ValueNames>,
    hints: Vec<(String, Hint)>,
}

/// The format in which the kernel prints a field, if it has more information than the field's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    Hex,
    Octal,
    /// `%c`
    Char,
    /// `%p` and similar ones.
    Address,
    /// `%pS` and similar ones: the address of code.
    Code,
    /// `%pI4`
    Ip4,
    /// `%pI6`, `%pI6c`
    Ip6,
    /// `%pISpc`: a struct sockaddr.
    SocketAddress,
    /// `%pM`
    Mac,
    /// `%pU`
    Uuid,
    /// `__print_hex`
    HexBytes,
}

impl PrintFormat {
    /// Parses the line, without `print fmt:`.
    pub fn parse(print: &str) -> PrintFormat {
        let Some(tokens) = token::tokens(print) else { return PrintFormat::default() };
        let mut parts = token::split_at_commas(&tokens).into_iter();
        let Some(Expr::Text(text)) = parts.next().map(expr::parse) else { return PrintFormat::default() };
        let arguments: Vec<Expr> = parts.map(expr::parse).collect();
        let mut format = PrintFormat::default();
        let mut before: Option<String> = None;
        for conversion in conversions(&text) {
            let Some(argument) = arguments.get(conversion.argument) else { break };
            before = if let Some(field) = value_names::named_field(argument) {
                format.value_names_mut(&field).add(argument.clone());
                Some(field)
            } else if let Some(field) = before.filter(|field| conversion.adjacent && value_names::chooses_by(argument, field)) {
                format.value_names_mut(&field).append(argument.clone());
                Some(field)
            } else {
                format.add_hint(argument, conversion.hint);
                None
            };
        }
        format
    }

    /// Returns the names of a field's values.
    pub fn value_names(&self, field: &str) -> Option<&ValueNames> {
        self.value_names.iter().find(|names| names.field == field)
    }

    /// Returns the format in which a field is to be printed.
    pub fn hint(&self, field: &str) -> Option<Hint> {
        self.hints.iter().find(|(name, _)| name == field).map(|(_, hint)| *hint)
    }

    fn value_names_mut(&mut self, field: &str) -> &mut ValueNames {
        let at = self.value_names.iter().position(|names| names.field == field).unwrap_or_else(|| {
            self.value_names.push(ValueNames::new(field));
            self.value_names.len() - 1
        });
        &mut self.value_names[at]
    }

    fn add_hint(&mut self, argument: &Expr, hint: Option<Hint>) {
        let (field, hint) = match argument {
            Expr::HexBytes(field) => (Some(field.as_str()), Some(Hint::HexBytes)),
            other => (other.of_field(), hint),
        };
        if let (Some(field), Some(hint)) = (field, hint)
            && self.hint(field).is_none()
        {
            self.hints.push((field.to_owned(), hint));
        }
    }
}

#[cfg(test)]
mod tests;
