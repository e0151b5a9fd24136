//! What an event's `print fmt:` line says of its fields: the names of flags and values, and how numbers and bytes are best read.
//!
//! The line is C as the kernel's macros left it. rtrace does not run it: lines are made from the fields, with their names. Only what explains a
//! single field is taken: `__print_flags` and `__print_symbolic` of that field (whole, masked or cast), texts that a condition on it chooses, and
//! the conversion it is printed with. Whatever is not understood explains nothing, and then the field is printed by its type. A name is given only
//! together with every bit of the number that it does not explain.

mod conversion;
mod expr;
mod naming;
mod token;

pub use naming::Naming;

use conversion::conversions;
use expr::Expr;

/// The explanations of one event's fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrintFormat {
    namings: Vec<Naming>,
    hints: Vec<(String, Hint)>,
}

/// How a field is printed by the kernel, where that says more than its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    Hex,
    Octal,
    /// `%c`
    Char,
    /// `%p` and its like.
    Address,
    /// `%pS` and its like: of code.
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
    /// Reads the line as the format file has it, without `print fmt:`.
    pub fn parse(print: &str) -> PrintFormat {
        let Some(tokens) = token::tokens(print) else { return PrintFormat::default() };
        let mut parts = token::split_at_commas(&tokens).into_iter();
        let Some(Expr::Text(text)) = parts.next().map(expr::parse) else { return PrintFormat::default() };
        let arguments: Vec<Expr> = parts.map(expr::parse).collect();
        let mut format = PrintFormat::default();
        let mut before: Option<String> = None;
        for conversion in conversions(&text) {
            let Some(argument) = arguments.get(conversion.argument) else { break };
            before = if let Some(field) = naming::named_field(argument) {
                let naming = format.naming_mut(&field);
                naming.add(argument.clone());
                Some(field)
            } else if let Some(field) = before.filter(|field| conversion.adjacent && naming::chooses_by(argument, field)) {
                let naming = format.naming_mut(&field);
                naming.append(argument.clone());
                Some(field)
            } else {
                format.add_hint(argument, conversion.hint);
                None
            };
        }
        format
    }

    /// The names of this field's values.
    pub fn naming(&self, field: &str) -> Option<&Naming> {
        self.namings.iter().find(|naming| naming.field == field)
    }

    /// How this field is best read.
    pub fn hint(&self, field: &str) -> Option<Hint> {
        self.hints.iter().find(|(name, _)| name == field).map(|(_, hint)| *hint)
    }

    fn naming_mut(&mut self, field: &str) -> &mut Naming {
        let at = self.namings.iter().position(|naming| naming.field == field).unwrap_or_else(|| {
            self.namings.push(Naming::new(field));
            self.namings.len() - 1
        });
        &mut self.namings[at]
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
