//! Prints memory that a call both read and wrote.

use super::value::{self, Options};
use crate::beauty::value::{ArrayValue, StructValue, Value};

/// Appends the old value and, if it changed, ` => ` and what is new: the number in an array of one, or the members of a
/// struct that changed.
pub fn write(out: &mut Vec<u8>, old: &Value, new: &Value, options: Options) {
    match (old, new) {
        (Value::Array(ArrayValue { items: before, .. }), Value::Array(ArrayValue { items: after, .. }))
            if before.len() == 1 && after.len() == 1 && before != after =>
        {
            out.push(b'[');
            write(out, &before[0], &after[0], options);
            out.push(b']');
        }
        (Value::Struct(before), Value::Struct(after)) if before.name == after.name => {
            value::write(out, old, options);
            let is_new = |(name, value): &&(&'static str, Value)| {
                let known = before.members.iter().find(|(known, _)| known == name);
                known.is_none_or(|(_, known)| known != value)
            };
            let members: Vec<_> = after.members.iter().filter(is_new).cloned().collect();
            if !members.is_empty() {
                out.extend_from_slice(b" => ");
                value::write(out, &Value::Struct(StructValue { name: "", address: after.address, members, more: false }), options);
            }
        }
        (old, new) => {
            value::write(out, old, options);
            if old != new {
                out.extend_from_slice(b" => ");
                value::write(out, new, options);
            }
        }
    }
}
