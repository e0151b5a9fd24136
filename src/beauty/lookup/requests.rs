//! Requests of io_uring as calls: their numbers, names and arguments.
//!
//! A request has a number beyond those of syscalls, which the kernel reads as an `int`. It is the same in every ABI,
//! because requests have the layouts of the machine's native ABI.

use crate::beauty::row::{Arg, ArgumentKind, Condition, ConstantTable, Flow, Groups, Length, Outcomes, Return, Special, Syscall, Traits};
use crate::beauty::tables::constants::{IO_URING_CQE_FLAGS, IO_URING_OP, IO_URING_SQE_FLAGS};
use std::sync::LazyLock;

/// The number of the request with the opcode 0.
const FIRST: i64 = 1 << 32;

/// The number of opcodes for which `struct io_uring_sqe` has room.
pub const OPCODES: u16 = 256;

/// Stands for the opcode of a completion whose request is not known, or that was posted without a request.
pub const COMPLETION: u16 = OPCODES;

/// The arguments that are known of every request: the two that the program chose, and the flags of the completion.
pub static ROW: Syscall = Syscall {
    name: "io_uring",
    event: "",
    numbers: [None; 4],
    args: &[
        argument("user_data", ArgumentKind::Hex, Traits::empty()),
        argument("flags", ArgumentKind::Table(&IO_URING_SQE_FLAGS), Traits::OPTIONAL),
        argument("cflags", ArgumentKind::Table(&IO_URING_CQE_FLAGS), Traits::OPTIONAL),
    ],
    returns: Return::Int,
    groups: Groups::empty(),
    does: Special::Plain,
    variants: &[],
};

const fn argument(name: &'static str, kind: ArgumentKind, traits: Traits) -> Arg {
    Arg {
        name,
        kind,
        flow: Flow::In,
        written: Outcomes::SUCCEEDED,
        traits,
        fd_of: None,
        socket: None,
        length: Length::OfType,
        used: Condition::Always,
    }
}

/// Returns the registers of a request with these values of the arguments in [`ROW`].
pub fn registers(user_data: u64, flags: u64, cflags: u64) -> [u64; 6] {
    [user_data, flags, cflags, 0, 0, 0]
}

/// Returns the number of a request as a call. `opcode` is one of IORING_OP_*, or [`COMPLETION`].
pub fn number(opcode: u16) -> i64 {
    FIRST + i64::from(opcode)
}

/// Returns the opcode of a request, or [`COMPLETION`]; `None` for the number of a syscall.
#[inline]
pub fn opcode(nr: i64) -> Option<u16> {
    nr.checked_sub(FIRST).and_then(|opcode| u16::try_from(opcode).ok()).filter(|opcode| *opcode <= COMPLETION)
}

/// Returns the name of a request without `io_uring:`, such as `openat` for IORING_OP_OPENAT.
pub fn name(opcode: u16) -> String {
    match IO_URING_OP.name(u64::from(opcode)) {
        Some(name) => name.strip_prefix(IO_URING_OP.prefix).unwrap_or(name).to_ascii_lowercase(),
        None if opcode == COMPLETION => "completion".to_owned(),
        None => format!("op_{opcode}"),
    }
}

/// The names of all requests as in lines, by opcode.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| (0..=COMPLETION).map(|opcode| format!("io_uring:{}", name(opcode))).collect());

/// Returns the names of the known requests: `io_uring:openat`.
pub fn names() -> impl Iterator<Item = &'static str> {
    (0..).zip(NAMES.iter()).filter(|(opcode, _)| IO_URING_OP.name(*opcode).is_some()).map(|(_, name)| name.as_str())
}

/// Writes the name of a request: `io_uring:openat`.
pub fn write_name(out: &mut Vec<u8>, opcode: u16) {
    out.extend_from_slice(NAMES.get(usize::from(opcode)).map_or(&[][..], |name| name.as_bytes()));
}

/// Returns whether a completion with these flags announces further completions of its request.
pub fn more_follow(cflags: u64) -> bool {
    static MORE: LazyLock<u64> = LazyLock::new(|| bits(&IO_URING_CQE_FLAGS, "IORING_CQE_F_MORE"));
    cflags & *MORE != 0
}

/// Returns whether a request with these flags asks for no completion if it succeeds.
pub fn is_silent(flags: u64) -> bool {
    static SILENT: LazyLock<u64> = LazyLock::new(|| bits(&IO_URING_SQE_FLAGS, "IOSQE_CQE_SKIP_SUCCESS"));
    flags & *SILENT != 0
}

fn bits(table: &'static ConstantTable, name: &str) -> u64 {
    table.entries.iter().find(|entry| entry.name == name).map_or(0, |entry| entry.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::lookup;
    use crate::event::Abi;

    #[test]
    fn requests_have_the_names_of_their_opcodes() {
        let name = |nr| {
            let mut name = Vec::new();
            lookup::write_name(&mut name, lookup::row(Abi::X86_64, nr), Abi::X86_64, nr);
            String::from_utf8(name).unwrap()
        };
        assert_eq!([name(number(0)), name(number(18))], ["io_uring:nop", "io_uring:openat"]);
        assert_eq!([name(number(255)), name(number(COMPLETION))], ["io_uring:op_255", "io_uring:completion"]);
        assert_eq!((opcode(number(18)), opcode(18), opcode(-1), opcode(i64::MIN), opcode(i64::MAX)), (Some(18), None, None, None, None));
        assert_eq!(opcode(number(COMPLETION) + 1), None);
    }

    #[test]
    fn flags_of_headers_are_found() {
        assert!(more_follow(1 << 1) && !more_follow(1 << 3));
        assert!(is_silent(1 << 6) && !is_silent(1 << 5));
    }
}
