//! The format of records that a program itself writes: the fields of the struct that the program's perf event array
//! names as the type of its values.
//!
//! Members of nested structs become fields `a.b`, arrays of char become text, and enums are shown by their names.
//! Records without a type are text up to the first NUL.

use super::program_event::described;
use crate::kernel::btf::Btf;
use crate::kernel::btf::shape::{Shape, Shaped};
use crate::kernel::ctype::CType;
use crate::kernel::format::{Format, FormatField};
use anyhow::{Context, bail};
use std::fmt::Write;

/// Bounds on the depth of nested structs and on the number of members, which no hand-written struct reaches.
const DEPTH_MAX: usize = 16;
const MEMBERS_MAX: usize = 1024;

/// Returns the format of the records that are written to this array.
///
/// # Errors
/// The struct has a member that cannot be decoded.
pub fn format(types: Option<&Btf>, array: &str) -> anyhow::Result<Format> {
    let mut fields = Fields::default();
    match types.and_then(|types| Some((types, value(types, array)?))) {
        Some((types, value)) => fields.members(types, value, "", 0, 0).with_context(|| format!("the records of {array}"))?,
        None => fields.all.push(described("text".to_owned(), "char", 0, false, Some(0))),
    }
    Ok(Format { name: array.to_owned(), id: 0, fields: fields.all, print: format!("\"{}\"{}", "%s ".repeat(fields.named), fields.names) })
}

/// Returns the struct of an array's values, if the array is declared with one.
fn value(types: &Btf, array: &str) -> Option<u32> {
    let Shape::Struct { members, .. } = types.shape(types.variable(array)?).shape else { return None };
    let Shape::Pointer(value) = types.shape(members.iter().find(|member| member.name == "value")?.of).shape else { return None };
    matches!(types.shape(value).shape, Shape::Struct { .. }).then_some(value)
}

#[derive(Default)]
struct Fields {
    all: Vec<FormatField>,
    /// The number of members that were visited.
    seen: usize,
    /// The arguments of a print format that name the values of enums, and the number of such arguments.
    names: String,
    named: usize,
}

impl Fields {
    fn members(&mut self, types: &Btf, of: u32, prefix: &str, base: u32, depth: usize) -> anyhow::Result<()> {
        let Shape::Struct { members, .. } = types.shape(of).shape else { return Ok(()) };
        if depth > DEPTH_MAX {
            bail!("{prefix} is nested too deeply in other structs");
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
            bail!("the type of {name} has no values");
        };
        let field = match shape {
            Shape::Struct { .. } => {
                let prefix = if name.is_empty() || name.ends_with('.') { name } else { format!("{name}.") };
                return self.members(types, of, &prefix, offset, depth + 1);
            }
            Shape::Array { element, count } => match number(types.shape(element)) {
                Some((type_name, signed)) => described(name, &type_name, bytes, signed, Some(count)),
                // Elements that are not numbers are shown as bytes.
                None => described(name, "u8", bytes, false, Some(bytes)),
            },
            Shape::Union { .. } => described(if name.is_empty() { "union".to_owned() } else { name }, "u8", bytes, false, Some(bytes)),
            shape => {
                if let Shape::Enum { values, .. } = &shape {
                    self.add_names(&name, values);
                }
                let (type_name, signed) = number(Shaped { alias, shape }).context("the type of a member has no values")?;
                described(name, &type_name, bytes, signed, None)
            }
        };
        self.all.push(FormatField { offset, ..field });
        Ok(())
    }

    fn add_names(&mut self, field: &str, values: &[(u64, String)]) {
        // The language of print formats has no names with dots.
        if field.contains('.') || values.is_empty() {
            return;
        }
        self.named += 1;
        let list: Vec<String> = values.iter().map(|(value, name)| format!("{{ {value}, \"{name}\" }}")).collect();
        // Writing to a String cannot fail.
        let _ = write!(self.names, ", __print_symbolic(REC->{field}, {})", list.join(", "));
    }
}

/// Returns the C type of a number and whether it is signed; `None` for other types.
fn number(of: Shaped) -> Option<(String, bool)> {
    let (own, signed) = match of.shape {
        Shape::Pointer(_) => return Some(("void *".to_owned(), false)),
        Shape::Number { name, signed, .. } => (name, signed),
        Shape::Enum { name, signed, .. } => (format!("enum {name}"), signed),
        _ => return None,
    };
    // A typedef may have more meaning than the type itself, as `pid_t`.
    Some((of.alias.filter(|name| CType::of(name) != CType::Other).unwrap_or(own), signed))
}
