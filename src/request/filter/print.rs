//! Prints conditions as text that parses to the same condition.

use super::ast::{Comparison, Expr, Value};
use crate::text::quantity;
use std::fmt::{self, Display, Write};

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Or(parts) => joined(f, parts, " || "),
            Expr::And(parts) => joined(f, parts, " && "),
            Expr::Not(inner) => write!(f, "!({inner})"),
            Expr::Test(comparison) => comparison.fmt(f),
        }
    }
}

fn joined(f: &mut fmt::Formatter<'_>, parts: &[Expr], between: &str) -> fmt::Result {
    for (i, part) in parts.iter().enumerate() {
        f.write_str(if i > 0 { between } else { "" })?;
        match part {
            Expr::Or(_) | Expr::And(_) => write!(f, "({part})")?,
            _ => part.fmt(f)?,
        }
    }
    Ok(())
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.name, self.op.text())?;
        match &self.value {
            Value::AnyOf(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    f.write_str(if i > 0 { "|" } else { "" })?;
                    value(f, part, self.name.is_duration())?;
                }
                Ok(())
            }
            one => value(f, one, self.name.is_duration()),
        }
    }
}

fn value(f: &mut fmt::Formatter<'_>, value: &Value, duration: bool) -> fmt::Result {
    match value {
        Value::Number(number) if duration => {
            let ns = u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX);
            write!(f, "{}{}", if *number < 0 { "-" } else { "" }, quantity::print_duration(ns))
        }
        Value::Number(number) => number.fmt(f),
        Value::Text(bytes) => quoted(f, bytes),
        Value::Symbol(name) => f.write_str(name),
        // The parser does not nest `AnyOf`.
        Value::AnyOf(_) => Ok(()),
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_char('"')?;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c.is_control() => c.encode_utf8(&mut [0; 4]).bytes().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?,
                c => f.write_char(c)?,
            }
        }
        chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
    }
    f.write_char('"')
}
