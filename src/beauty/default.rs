//! Default values: zeros that carry no information, which a style may omit.
//!
//! Most zeros carry information: a length, an offset, a user, a signal, a status. The exceptions are flags where 0 has
//! no name, a NULL pointer to an optional struct together with the length of that struct, and arguments that are
//! `optional` in their row.

use super::row::{Arg, ArgumentKind, Length, Traits};
use super::value::Value;

/// Returns whether this value of the argument with this index is a default.
pub fn is_default(args: &[Arg], index: usize, value: &Value, registers: &[u64; 6]) -> bool {
    let Some(arg) = args.get(index) else { return false };
    match value {
        Value::Flags { table, bits: 0 } => !table.names_zero() || is_optional(arg),
        Value::Unread(0) if is_nullable(&arg.kind) => true,
        // Flags are plain numbers in rows if the kernel defines none for the call, so that 0 carries no information.
        Value::Int(0) | Value::Uint(0) | Value::Hex(0) if arg.name.starts_with("flag") => true,
        Value::Int(0) | Value::Uint(0) if is_length_of_nothing(args, index, registers) => true,
        Value::Int(0) | Value::Uint(0) | Value::Hex(0) | Value::Address(0) | Value::Unread(0) => is_optional(arg),
        _ => false,
    }
}

/// Returns whether the value of a tracepoint field is a zero, which a style may omit. Descriptor 0 and a zero with a
/// name carry information.
pub fn is_zero(value: &Value) -> bool {
    match value {
        Value::Int(0) | Value::Uint(0) | Value::Hex(0) | Value::Octal(0) | Value::Address(0) | Value::Unread(0) | Value::Code(0) => true,
        Value::Signal(0) | Value::Pid { pid: 0, .. } | Value::Dev { major: 0, minor: 0 } => true,
        Value::Flags { table, bits: 0 } | Value::Symbol { table, value: 0 } => !table.names_zero(),
        _ => false,
    }
}

fn is_optional(arg: &Arg) -> bool {
    arg.traits.contains(Traits::OPTIONAL)
}

/// Returns whether NULL is a usual value of a pointer of this kind. It is not for paths, buffers and lists of strings,
/// so their NULL is shown.
fn is_nullable(kind: &ArgumentKind) -> bool {
    !matches!(kind, ArgumentKind::Path | ArgumentKind::Str | ArgumentKind::Bytes | ArgumentKind::StrArray)
}

/// Returns whether an argument is the length of a pointer that is NULL and omitted.
fn is_length_of_nothing(args: &[Arg], index: usize, registers: &[u64; 6]) -> bool {
    args.iter().enumerate().any(|(other, arg)| {
        arg.length == Length::Arg(index as u8) && registers.get(other) == Some(&0) && arg.used.holds(registers) && is_nullable(&arg.kind)
    })
}

#[cfg(test)]
mod tests {
    use crate::beauty::decode::{Context, Decoded};
    use crate::beauty::{lookup, samples, tables};

    /// Returns the names of the arguments of a call whose values are not defaults.
    fn informative(syscall: &str, registers: [u64; 6]) -> Vec<&'static str> {
        let row = lookup::index_by_name(syscall).map(|index| &tables::SYSCALLS[usize::from(index)]);
        let call = samples::call(registers, 0);
        let decoded = Decoded::with_row(&call, row, Context::new(&samples::comms, 32));
        let has_information = |argument: &super::super::decode::Argument| {
            let values = argument.values();
            argument.is_used() && values.entry().is_some_and(|value| !argument.is_default(value))
        };
        decoded.args().filter(has_information).map(|argument| argument.name()).collect()
    }

    #[test]
    fn a_zero_that_selects_something_is_not_a_default() {
        const KEYCTL_CHOWN: u64 = 4;
        const KEYCTL_SET_TIMEOUT: u64 = 15;
        assert_eq!(informative("keyctl", [KEYCTL_CHOWN, 7, 0, 0, 0, 0]), ["option", "arg2", "arg3", "arg4"], "root and its group");
        assert_eq!(informative("keyctl", [KEYCTL_SET_TIMEOUT, 7, 0, 0, 0, 0]), ["option", "arg2", "arg3"], "the timeout is removed");
        assert_eq!(informative("semctl", [7, 1, libc::SETVAL as u64, 0, 0, 0]), ["semid", "semnum", "cmd", "arg"]);
        assert_eq!(informative("mmap", [0, 4096, 0, 0x22, 0, 0]), ["len", "prot", "flags"], "the kernel chooses the address");
    }
}
