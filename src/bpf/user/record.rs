//! What records of a program's own making look like: the struct that its array of events names as the type of its values, as fields.
//!
//! Structs in structs become fields `a.b`, arrays of characters text, enums names. What has no type is text up to its first NUL.

use super::own::described;
use crate::kernel::btf::Btf;
use crate::kernel::btf::shape::{Shape, Shaped};
use crate::kernel::ctype::CType;
use crate::kernel::format::{Format, FormatField};
use anyhow::{Context, bail};
use std::fmt::Write;

/// Structs in structs: none that people write are as deep, or have as many members in all.
const DEPTH_MAX: usize = 16;
const MEMBERS_MAX: usize = 1024;

/// The format of the records that go through this array.
///
/// # Errors
/// The struct has what has no place in records.
pub fn format(types: Option<&Btf>, array: &str) -> anyhow::Result<Format> {
    let mut fields = Fields::default();
    match types.and_then(|types| Some((types, value(types, array)?))) {
        Some((types, value)) => fields.members(types, value, "", 0, 0).with_context(|| format!("the records of {array}"))?,
        None => fields.all.push(described("text".to_owned(), "char", 0, false, Some(0))),
    }
    Ok(Format { name: array.to_owned(), id: 0, fields: fields.all, print: format!("\"{}\"{}", "%s ".repeat(fields.named), fields.names) })
}

/// The struct of an array's values, if it is declared with one.
fn value(types: &Btf, array: &str) -> Option<u32> {
    let Shape::Struct { members, .. } = types.shape(types.variable(array)?).shape else { return None };
    let Shape::Pointer(value) = types.shape(members.iter().find(|member| member.name == "value")?.of).shape else { return None };
    matches!(types.shape(value).shape, Shape::Struct { .. }).then_some(value)
}

#[derive(Default)]
struct Fields {
    all: Vec<FormatField>,
    /// How many members were looked at.
    seen: usize,
    /// Arguments of a print format that name the values of enums, and how many they are.
    names: String,
    named: usize,
}

impl Fields {
    fn members(&mut self, types: &Btf, of: u32, prefix: &str, base: u32, depth: usize) -> anyhow::Result<()> {
        let Shape::Struct { members, .. } = types.shape(of).shape else { return Ok(()) };
        if depth > DEPTH_MAX {
            bail!("{prefix} lies too deep in other structs");
        }
        for member in members {
            self.seen += 1;
            if self.seen > MEMBERS_MAX {
                bail!("there are more than {MEMBERS_MAX} members");
            }
            let name = format!("{prefix}{}", member.name);
            let Some(offset) = member.offset else { bail!("{name} is a bit field, which is not decoded: make it a whole number") };
            self.member(types, member.of, name, base.saturating_add(offset), depth)?;
        }
        Ok(())
    }

    fn member(&mut self, types: &Btf, of: u32, name: String, offset: u32, depth: usize) -> anyhow::Result<()> {
        let (Shaped { alias, shape }, Some(bytes)) = (types.shape(of), types.size(of)) else {
            bail!("{name} is of a type that has no values");
        };
        let field = match shape {
            Shape::Struct { .. } => {
                let prefix = if name.is_empty() || name.ends_with('.') { name } else { format!("{name}.") };
                return self.members(types, of, &prefix, offset, depth + 1);
            }
            Shape::Array { element, count } => match number(types.shape(element)) {
                Some((type_name, signed)) => described(name, &type_name, bytes, signed, Some(count)),
                // What is no number is shown as bytes.
                None => described(name, "u8", bytes, false, Some(bytes)),
            },
            Shape::Union { .. } => described(if name.is_empty() { "union".to_owned() } else { name }, "u8", bytes, false, Some(bytes)),
            shape => {
                if let Shape::Enum { values, .. } = &shape {
                    self.add_names(&name, values);
                }
                let (type_name, signed) = number(Shaped { alias, shape }).context("a member is of a type that has no values")?;
                described(name, &type_name, bytes, signed, None)
            }
        };
        self.all.push(FormatField { offset, ..field });
        Ok(())
    }

    fn add_names(&mut self, field: &str, values: &[(u64, String)]) {
        // The print format's language has no names with dots.
        if field.contains('.') || values.is_empty() {
            return;
        }
        self.named += 1;
        let list: Vec<String> = values.iter().map(|(value, name)| format!("{{ {value}, \"{name}\" }}")).collect();
        // A String takes everything.
        let _ = write!(self.names, ", __print_symbolic(REC->{field}, {})", list.join(", "));
    }
}

/// What C calls a number, and whether it has a sign; `None` for what is none.
fn number(of: Shaped) -> Option<(String, bool)> {
    let (own, signed) = match of.shape {
        Shape::Pointer(_) => return Some(("void *".to_owned(), false)),
        Shape::Number { name, signed, .. } => (name, signed),
        Shape::Enum { name, signed, .. } => (format!("enum {name}"), signed),
        _ => return None,
    };
    // A name that says more than the type itself, as `pid_t`.
    Some((of.alias.filter(|name| CType::of(name) != CType::Other).unwrap_or(own), signed))
}
