//! Zeros that say nothing: arguments that were left at what most callers pass, and that a style may leave out.
//!
//! Most zeros say something: a length, an offset, a user, a signal, a status. Those that do not are no flags where none has a
//! name, no pointer to an optional struct with the length that goes with it, and arguments that
//! are `optional` in their row.

use super::row::{Arg, Kind, Length, Traits};
use super::value::Value;

/// Whether this value of the argument with this index is one that says nothing.
pub fn is_default(args: &[Arg], index: usize, value: &Value, registers: &[u64; 6]) -> bool {
    let Some(arg) = args.get(index) else { return false };
    match value {
        Value::Flags { table, bits: 0 } => !table.names_zero() || is_optional(arg),
        Value::Unread(0) if points_to_what_may_lack(&arg.kind) => true,
        Value::Int(0) | Value::Uint(0) | Value::Hex(0) if arg.name.starts_with("flag") => true,
        Value::Int(0) | Value::Uint(0) if is_length_of_nothing(args, index, registers) => true,
        Value::Int(0) | Value::Uint(0) | Value::Hex(0) | Value::Address(0) | Value::Unread(0) => is_optional(arg),
        _ => false,
    }
}

fn is_optional(arg: &Arg) -> bool {
    arg.traits.contains(Traits::OPTIONAL)
}

/// Kinds of pointer that callers leave at NULL: a call without its path, its buffer or its list of words is worth seeing.
fn points_to_what_may_lack(kind: &Kind) -> bool {
    !matches!(kind, Kind::Path | Kind::Str | Kind::Bytes | Kind::StrArray)
}

/// Whether an argument is the length of one that is NULL and left out.
fn is_length_of_nothing(args: &[Arg], index: usize, registers: &[u64; 6]) -> bool {
    args.iter().enumerate().any(|(other, arg)| {
        arg.length == Length::Arg(index as u8)
            && registers.get(other) == Some(&0)
            && arg.used.holds(registers)
            && points_to_what_may_lack(&arg.kind)
    })
}
