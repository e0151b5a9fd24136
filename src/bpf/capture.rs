//! What to copy of a caller's memory: from a syscall's row to operations that the programs carry out.
//!
//! An operation is a fact, not a program: which argument, when, how many bytes. What needs more than that is a kind of its own in `capture.h`.

use super::encode::OPS_MAX;
use crate::beauty::row::{Arg, Flow, Kind, Length, Syscall};
use crate::event::Abi;

/// `sizeof(struct op)`.
pub(super) const OP_BYTES: usize = 8;
/// `PIECE_MAX`: the most bytes of one piece.
const PIECE_MAX: usize = 4096;
/// No more elements of an array are copied.
const ELEMENTS_MAX: usize = 32;

/// `OP_AT_ENTRY` and its like.
const AT_ENTRY: u8 = 1;
const AT_EXIT: u8 = 2;
const INTERRUPTED: u8 = 4;
const COUNT_32: u8 = 8;

/// What is written even though the call failed, when a signal interrupted it.
const WRITTEN_WHEN_INTERRUPTED: &[(&str, &str)] = &[("nanosleep", "rmtp"), ("clock_nanosleep", "rmtp")];

/// `enum op_kind`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum What {
    String = 0,
    Bytes = 1,
    /// As many bits, in whole words of the ABI.
    Bits = 2,
    /// Pointers to strings, up to a null one.
    Strings = 3,
    /// Arrays and structs that point to data.
    Iovec = 4,
    Msghdr = 5,
    Mmsghdr = 6,
}

/// `COUNT_*`: where a count comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Arg(u8),
    Return,
    One,
    /// The number that an argument points to.
    At(u8),
}

/// `struct op`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Op {
    arg: u8,
    what: What,
    when: u8,
    count: Count,
    /// Bytes of an element.
    size: u16,
    /// No more bytes are copied.
    limit: u16,
}

impl Op {
    pub fn is_at_exit(self) -> bool {
        self.when & AT_EXIT != 0
    }

    pub fn bytes(self) -> [u8; OP_BYTES] {
        let count = match self.count {
            Count::Arg(arg) => arg,
            Count::Return => 6,
            Count::One => 7,
            Count::At(arg) => 16 + arg,
        };
        let ([size_low, size_high], [limit_low, limit_high]) = (self.size.to_ne_bytes(), self.limit.to_ne_bytes());
        [self.arg, self.what as u8, self.when, count, size_low, size_high, limit_low, limit_high]
    }
}

/// The operations of a call.
pub(super) fn ops(row: &Syscall, abi: Abi, string_limit: usize) -> Vec<Op> {
    let ops = row.args.iter().enumerate().filter_map(|(at, arg)| {
        let mut op = op(row.args, at, arg, abi, string_limit.min(PIECE_MAX))?;
        if WRITTEN_WHEN_INTERRUPTED.contains(&(row.name, arg.name)) {
            op.when |= INTERRUPTED;
        }
        Some(op)
    });
    ops.take(OPS_MAX).collect()
}

/// Bit i: argument i is a descriptor.
pub(super) fn descriptors(row: &Syscall) -> u8 {
    let is_one = |arg: &&Arg| matches!(arg.kind, Kind::Fd | Kind::DirFd);
    (0u8..6).zip(row.args).filter(|(_, arg)| is_one(arg)).fold(0, |bits, (at, _)| bits | 1 << at)
}

fn op(args: &[Arg], at: usize, arg: &Arg, abi: Abi, string_limit: usize) -> Option<Op> {
    let (count, of_int) = count(args, arg.length);
    let when = when(arg) | if of_int { COUNT_32 } else { 0 };
    let new = |what, count, size: usize, limit: usize| {
        let [size, limit] = [size, limit.min(PIECE_MAX)].map(|n| u16::try_from(n).unwrap_or(u16::MAX));
        Some(Op { arg: at as u8, what, when, count, size, limit })
    };
    match arg.kind {
        Kind::Path => new(What::String, Count::One, 1, PIECE_MAX),
        Kind::Str => new(What::String, Count::One, 1, string_limit),
        Kind::Bytes => new(What::Bytes, count, fixed(arg.length), string_limit),
        // The environment is only counted: its strings are many and seldom asked for.
        Kind::StrArray => new(What::Strings, Count::One, word_bytes(abi), if arg.name == "envp" { 0 } else { string_limit.max(1) }),
        Kind::StructArray(of) if of.name == "iovec" => new(What::Iovec, count, word_bytes(abi), 0),
        Kind::StructArray(of) if of.name == "mmsghdr" => new(What::Mmsghdr, count, word_bytes(abi), 0),
        Kind::Struct(of) if of.name == "msghdr" => new(What::Msghdr, Count::One, word_bytes(abi), 0),
        Kind::Struct(of) if of.name == "fd_set" => new(What::Bits, count, word_bytes(abi), PIECE_MAX),
        Kind::Struct(_) if arg.length != Length::OfType => new(What::Bytes, count, fixed(arg.length), PIECE_MAX),
        Kind::Struct(of) => new(What::Bytes, Count::One, of.sizes[abi as usize] as usize, PIECE_MAX),
        Kind::StructArray(of) => {
            let size = of.sizes[abi as usize] as usize;
            new(What::Bytes, count, size * fixed(arg.length), size * ELEMENTS_MAX)
        }
        Kind::Number { bytes, .. } => {
            let size = usize::from(bytes);
            new(What::Bytes, count, size * fixed(arg.length), size * ELEMENTS_MAX)
        }
        _ => None,
    }
}

fn when(arg: &Arg) -> u8 {
    match arg.flow {
        Flow::In => AT_ENTRY,
        Flow::Out => AT_EXIT,
        Flow::InOut => AT_ENTRY | AT_EXIT,
    }
}

/// Where the count comes from, and whether it is an int.
fn count(args: &[Arg], length: Length) -> (Count, bool) {
    match length {
        Length::OfType | Length::Fixed(_) => (Count::One, false),
        Length::Ret => (Count::Return, false),
        Length::Arg(by) => match args.get(usize::from(by)).map(|arg| arg.kind) {
            Some(Kind::Number { .. }) => (Count::At(by), false),
            Some(Kind::Size | Kind::Long | Kind::Ulong | Kind::Hex) => (Count::Arg(by), false),
            _ => (Count::Arg(by), true),
        },
    }
}

/// The factor of a length that is a number.
fn fixed(length: Length) -> usize {
    match length {
        Length::Fixed(n) => usize::try_from(n).unwrap_or(usize::MAX),
        _ => 1,
    }
}

fn word_bytes(abi: Abi) -> usize {
    if matches!(abi, Abi::I386 | Abi::X32) { 4 } else { 8 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::tables::SYSCALLS;

    fn of(name: &str) -> Vec<Op> {
        let row = SYSCALLS.iter().find(|row| row.name == name).unwrap();
        ops(row, Abi::X86_64, 32)
    }

    fn op(arg: u8, what: What, when: u8, count: Count, size: u16, limit: u16) -> Op {
        Op { arg, what, when, count, size, limit }
    }

    #[test]
    fn rows_become_operations() {
        assert_eq!(of("openat"), [op(1, What::String, AT_ENTRY, Count::One, 1, 4096)]);
        assert_eq!(of("read"), [op(1, What::Bytes, AT_EXIT, Count::Return, 1, 32)]);
        assert_eq!(of("write"), [op(1, What::Bytes, AT_ENTRY, Count::Arg(2), 1, 32)]);
        assert_eq!(of("connect"), [op(1, What::Bytes, AT_ENTRY | COUNT_32, Count::Arg(2), 1, 4096)]);
        let accept = [op(1, What::Bytes, AT_EXIT, Count::At(2), 1, 4096), op(2, What::Bytes, AT_ENTRY | AT_EXIT, Count::One, 4, 128)];
        assert_eq!(of("accept"), accept);
        assert_eq!(
            of("newfstatat"),
            [op(1, What::String, AT_ENTRY, Count::One, 1, 4096), op(2, What::Bytes, AT_EXIT, Count::One, 144, 4096)]
        );
        assert_eq!(of("select")[0], op(1, What::Bits, AT_ENTRY | AT_EXIT | COUNT_32, Count::Arg(0), 8, 4096));
        let strings = |arg, limit| op(arg, What::Strings, AT_ENTRY, Count::One, 8, limit);
        assert_eq!(of("execve"), [op(0, What::String, AT_ENTRY, Count::One, 1, 4096), strings(1, 32), strings(2, 0)]);
        assert_eq!(of("writev"), [op(1, What::Iovec, AT_ENTRY, Count::Arg(2), 8, 0)]);
        assert_eq!(of("recvmsg"), [op(1, What::Msghdr, AT_ENTRY | AT_EXIT, Count::One, 8, 0)]);
        assert_eq!(of("getpid"), []);
    }

    #[test]
    fn descriptors_are_found() {
        let of = |name: &str| descriptors(SYSCALLS.iter().find(|row| row.name == name).unwrap());
        assert_eq!([of("read"), of("renameat"), of("dup2"), of("getpid")], [0b1, 0b101, 0b11, 0]);
    }

    #[test]
    fn no_row_has_more_operations_than_a_plan() {
        for row in SYSCALLS {
            let with_memory = row.args.iter().enumerate().filter(|(at, arg)| super::op(row.args, *at, arg, Abi::X86_64, 32).is_some());
            assert!(with_memory.count() <= OPS_MAX, "{}", row.name);
        }
    }
}
