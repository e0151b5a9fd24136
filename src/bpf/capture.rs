//! Translates rows of syscalls to operations: what the programs copy of the caller's memory.
//!
//! An operation is data, not code: an argument, a time, a number of bytes. Anything that needs more than that is a kind
//! of operation with its own code in `capture.h`.

mod indirect_fds;

use self::indirect_fds::IndirectFds;
use super::call_plan::OPS_MAX;
use super::conditions::{CodedTest, coded};
use super::links::Links;
use super::record::ARG_RETURN;
use crate::beauty::memory;
use crate::beauty::resolve::Signature;
use crate::beauty::row::{
    Arg, ArgumentKind, CopyMethod, Flow, Length, LengthUnit, MemoryNumber, MemoryType, Outcomes, Return, Struct, StructLayout, Traits,
};
use crate::event::Abi;

/// `sizeof(struct op)`.
pub(super) const OP_BYTES: usize = 20;
/// `PIECE_MAX`: the maximum number of bytes of one piece.
const PIECE_MAX: u32 = 4096;
/// The maximum number of bytes of the entries of a directory, which lines count: twice the buffer of the C library.
const ENTRIES_MAX: u32 = 64 << 10;
/// The maximum number of bytes of a string or buffer, in as many records as they need.
pub(super) const STRING_MAX: u32 = 1 << 20;
/// The limit in bytes for the copy of a struct or a text whose length the call specifies, unless a larger limit
/// applies. Most of them have the same limit, so that most variants of getsockopt and setsockopt share a plan.
const SIZED_MAX: u32 = 256;
/// The maximum number of elements that are copied of an array.
pub(super) const ELEMENTS_MAX: u32 = memory::ELEMENTS_MAX as u32;
/// `NO_ARG` and `LIMIT_OF_SOCKET`
const NO_ARG: u8 = 6;
const LIMIT_OF_SOCKET: u32 = u32::MAX;

/// `OP_AT_ENTRY` to `OP_TOO_SMALL`.
const AT_ENTRY: u8 = 1;
const AT_EXIT: u8 = 2;
const INTERRUPTED: u8 = 4;
const COUNT_32: u8 = 8;
const FAILED: u8 = 16;
const POSITIVE: u8 = 32;
const NOT_DONE: u8 = 64;
const TOO_SMALL: u8 = 128;

/// `enum op_kind`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum OpKind {
    String = 0,
    Bytes,
    /// A bit mask whose length is a number of bits, in whole words of the ABI.
    Bits,
    /// The same with one bit less.
    Nodes,
    /// A bit mask of descriptors, which ends where the caller's table of descriptors does.
    Files,
    /// A fixed part followed by a counted number of bytes.
    Tail,
    /// One byte for each page.
    Pages,
    /// The bytes that an ioctl's command encodes.
    Command,
    /// A struct with pointers.
    Linked,
    /// An array of pointers to strings that ends with a null pointer.
    Strings,
    /// Arrays and structs with pointers to data.
    Iovec,
    Msghdr,
    Mmsghdr,
    /// An array of pointers to structs.
    Pointers,
}

/// `COUNT_*`: the source of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountSource {
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
    kind: OpKind,
    when: u8,
    count: CountSource,
    /// The size of an element, in bytes.
    size: u16,
    /// The argument that bounds a count from the return value. For a count in memory, the count for which 0 stands.
    room: u8,
    /// The test of whether the call uses the argument.
    condition: CodedTest,
    /// The number of bytes that the kernel reads of memory that it also writes; 0: all of them.
    asks: u16,
    /// The index of the first link, and the number of links. For [`OpKind::Tail`], the size of the count in memory, and
    /// the number of bytes that it counts; 0 stands for 1.
    links: (u8, u8),
    /// The offset of the count in the memory that an argument points to ([`CountSource::At`]).
    count_offset: u8,
    /// The kernel reads the whole memory that it also writes, and not only the fixed part ([`OpKind::Tail`]).
    reads_tail: bool,
    /// The maximum number of bytes that are copied.
    limit: u32,
}

impl Op {
    /// Returns whether the memory is copied when the call returns, possibly in addition to a copy at its entry.
    pub fn is_at_exit(self) -> bool {
        self.when & AT_EXIT != 0
    }

    /// Returns the bytes of `struct op` in `plan.h`.
    pub fn bytes(self) -> [u8; OP_BYTES] {
        let count = match self.count {
            CountSource::Arg(arg) => arg,
            CountSource::Return => 6,
            CountSource::One => 7,
            CountSource::At(arg) => 16 + arg,
        };
        let (test, test_arg, mask) = self.condition;
        let mut bytes = [0; OP_BYTES];
        bytes[..4].copy_from_slice(&[self.arg, self.kind as u8, self.when, count]);
        bytes[4..6].copy_from_slice(&self.size.to_ne_bytes());
        bytes[6..12].copy_from_slice(&[self.room, test, test_arg, self.links.0, self.links.1, self.count_offset]);
        bytes[12..16].copy_from_slice(&mask.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.limit.to_ne_bytes());
        bytes
    }
}

/// OpKind the programs record of a call, by its row or by one variant of the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Capture {
    /// What is copied of the memory of the arguments, in the order of these: at most [`OPS_MAX`] operations.
    pub ops: Vec<Op>,
    /// Bit i: argument i is a file descriptor.
    pub descriptors: u8,
    /// File descriptors that are not plain arguments.
    pub indirect_fds: IndirectFds,
    /// Whether the call returns a file descriptor.
    pub opens: bool,
    /// Bit i: argument i is a pid. Bit [`ARG_RETURN`]: the return value is one.
    pub pids: u8,
    /// The same for user and group ids.
    pub uids: u8,
    /// The same for group ids: an argument has a bit here or in `uids`.
    pub gids: u8,
}

/// Makes the operations of calls of one ABI.
pub(super) struct CaptureBuilder<'a> {
    /// The ABI of the calls, which decides the sizes of words and structs.
    pub abi: Abi,
    /// The maximum number of bytes of a buffer or of a string that is no path; more than [`STRING_MAX`] acts as that.
    pub string_limit: usize,
    /// Whether the strings of arrays that are usually counted are copied.
    pub full: bool,
    /// The links of all structs so far, to which those of the calls are added.
    pub links: &'a mut Links,
}

impl CaptureBuilder<'_> {
    /// Returns what the programs record of a call with the arguments of a row or of one of its variants.
    pub fn capture(&mut self, signature: Signature) -> Capture {
        let Signature { args, returns } = signature;
        let ops = (0..args.len()).filter_map(|at| self.op(&signature, at)).flat_map(parted).take(OPS_MAX).collect();
        let is_descriptor = |arg: &Arg| matches!(arg.kind, ArgumentKind::Fd | ArgumentKind::DirFd);
        let descriptors = (0u8..6).zip(args).filter(|(_, arg)| is_descriptor(arg)).fold(0, |bits, (at, _)| bits | 1 << at);
        let places = |is_one: fn(&ArgumentKind) -> bool, is_returned: bool| {
            let arguments = (0u8..6).zip(args).filter(|(_, arg)| is_one(&arg.kind)).map(|(at, _)| at);
            arguments.chain(is_returned.then_some(ARG_RETURN)).fold(0, |bits, at| bits | 1 << at)
        };
        Capture {
            ops,
            descriptors,
            indirect_fds: IndirectFds::of(args),
            opens: matches!(returns, Return::Fd),
            pids: places(|kind| matches!(kind, ArgumentKind::Pid), matches!(returns, Return::Pid)),
            uids: places(|kind| matches!(kind, ArgumentKind::Uid), matches!(returns, Return::Uid)),
            gids: places(|kind| matches!(kind, ArgumentKind::Gid), matches!(returns, Return::Gid)),
        }
    }

    fn op(&mut self, signature: &Signature, at: usize) -> Option<Op> {
        let arg = &signature.args[at];
        let (count, of_int) = count(signature, arg.length, self.abi);
        let (room, room_of_int) = if count == CountSource::Return { room(signature, at, self.abi) } else { (NO_ARG, false) };
        let mut op = Op {
            arg: at as u8,
            kind: OpKind::Bytes,
            when: when(arg) | if of_int || room_of_int { COUNT_32 } else { 0 },
            count,
            size: 1,
            room,
            condition: coded(&arg.used)?,
            asks: 0,
            links: (0, 0),
            count_offset: 0,
            reads_tail: false,
            limit: PIECE_MAX,
        };
        let string_limit = self.string_limit();
        if arg.traits.contains(Traits::ENCODED) {
            // All commands with little data have the same limit, so that they need no plans of their own.
            let size = if let ArgumentKind::Struct(of) = arg.kind { of.sizes[self.abi as usize].min(PIECE_MAX) } else { 0 };
            let is_unknown = matches!(arg.kind, ArgumentKind::Struct(Struct { layout: StructLayout::Decoder(_), .. }));
            let least = string_limit.max(SIZED_MAX);
            (op.kind, op.limit) = (OpKind::Command, if is_unknown { least } else { size.max(least) });
            return Some(op);
        }
        match arg.kind {
            ArgumentKind::Path => (op.kind, op.count) = (OpKind::String, CountSource::One),
            // The call specifies the length of the string.
            ArgumentKind::Str if matches!(arg.length, Length::Arg(_)) => op.limit = string_limit.max(SIZED_MAX),
            ArgumentKind::Str => {
                let limit = if let Length::Fixed(bytes) = arg.length { (bytes as u32).saturating_sub(1) } else { u32::MAX };
                (op.kind, op.count, op.limit) = (OpKind::String, CountSource::One, string_limit.min(limit));
            }
            ArgumentKind::Bytes if arg.socket.is_some() => (op.size, op.limit) = (fixed(arg.length), LIMIT_OF_SOCKET),
            ArgumentKind::Bytes => (op.size, op.limit) = (fixed(arg.length), string_limit),
            ArgumentKind::StrArray => {
                let limit = if arg.traits.contains(Traits::COUNTED) && !self.full { 0 } else { string_limit.max(1) };
                (op.kind, op.size, op.limit) = (OpKind::Strings, self.word_bytes(), limit);
            }
            ArgumentKind::StructArray(of) if of.copied == CopyMethod::Iovec && !arg.traits.contains(Traits::SHALLOW) => {
                (op.kind, op.size) = (OpKind::Iovec, self.word_bytes());
                op.when |= if op.when == AT_EXIT { FAILED } else { 0 };
            }
            ArgumentKind::StructArray(of) if of.copied == CopyMethod::Mmsghdr => {
                (op.kind, op.size, op.limit) = (OpKind::Mmsghdr, self.word_bytes(), arg.traits.contains(Traits::SENDS).into());
            }
            ArgumentKind::StructArray(of) if of.copied == CopyMethod::Pointers => {
                (op.kind, op.size, op.limit) = (OpKind::Pointers, self.word_bytes(), target_bytes(of, self.abi));
            }
            ArgumentKind::Struct(of) if of.copied == CopyMethod::Msghdr => (op.kind, op.size) = (OpKind::Msghdr, self.word_bytes()),
            ArgumentKind::Struct(of) if arg.traits.contains(Traits::ARRAY) => op.limit = of.sizes[self.abi as usize] * ELEMENTS_MAX,
            ArgumentKind::Struct(of) => self.structure(&mut op, of, arg)?,
            ArgumentKind::StructArray(of) => {
                let size = of.sizes[self.abi as usize];
                (op.size, op.limit) = (size as u16 * fixed(arg.length), size * ELEMENTS_MAX);
            }
            ArgumentKind::Number { bytes, .. } => {
                (op.size, op.limit) = (u16::from(bytes) * fixed(arg.length), u32::from(bytes) * ELEMENTS_MAX);
            }
            _ => return None,
        }
        Some(op)
    }

    fn structure(&mut self, op: &mut Op, of: &'static Struct, arg: &Arg) -> Option<()> {
        if matches!(of.layout, StructLayout::Opaque) {
            return None;
        }
        let size = of.sizes[self.abi as usize];
        op.limit = if ends_open(of, self.abi) { PIECE_MAX } else { size };
        op.asks = if arg.flow == Flow::InOut { of.bytes_read as u16 } else { 0 };
        let links = if arg.traits.contains(Traits::SHALLOW) { (0, 0) } else { self.links.of(of, self.abi, self.string_limit()) };
        if arg.length == Length::OfType {
            (op.count, op.size) = (CountSource::One, size as u16);
            match of.counted {
                LengthUnit::Tail | LengthUnit::Elements if of.length_at.is_some() => {
                    (op.kind, op.count) = (OpKind::Tail, CountSource::At(op.arg));
                    if let Some(at) = of.length_at {
                        op.count_offset = u8::try_from(at.offset).unwrap_or_default();
                        op.links.0 = if at.bytes == 2 { at.bytes } else { 0 };
                    }
                    if of.counted == LengthUnit::Elements {
                        op.links.1 = of.element_bytes(self.abi) as u8;
                        op.reads_tail = arg.flow == Flow::InOut && reads_tail(of, self.abi);
                    }
                }
                _ => {
                    if let Some(at) = of.length_at {
                        (op.count, op.size, op.limit) = (CountSource::At(op.arg), 1, op.limit.max(SIZED_MAX));
                        (op.count_offset, op.room) = (u8::try_from(at.offset).unwrap_or_default(), at.of_zero.max(NO_ARG));
                    }
                }
            }
        } else {
            op.size = fixed(arg.length);
            match of.counted {
                LengthUnit::Bytes if matches!(of.layout, StructLayout::Members(_) | StructLayout::Number(_)) && of.choice.is_none() => {
                    // Memory whose length is not that of the struct may be shown as bytes, so at least as many bytes
                    // are copied as of a string. With pointers, it is not shown as bytes, but it may be longer.
                    op.limit = op.limit.max(if links.1 == 0 { self.string_limit() } else { 0 }).max(SIZED_MAX);
                }
                LengthUnit::Bytes => {}
                LengthUnit::Entries => op.limit = ENTRIES_MAX,
                // The kernel uses words of 64 bits for x32 too.
                LengthUnit::Bits | LengthUnit::Nodes | LengthUnit::Files => {
                    op.kind = match of.counted {
                        LengthUnit::Nodes => OpKind::Nodes,
                        LengthUnit::Files => OpKind::Files,
                        _ => OpKind::Bits,
                    };
                    (op.size, op.limit) = (if self.abi == Abi::I386 { 4 } else { 8 }, PIECE_MAX);
                }
                LengthUnit::Tail => (op.kind, op.size, op.limit) = (OpKind::Tail, size as u16, size + self.string_limit()),
                LengthUnit::Elements => {
                    let element = of.element_bytes(self.abi);
                    (op.kind, op.size, op.limit) = (OpKind::Tail, size as u16, size + element * ELEMENTS_MAX);
                    op.links = (0, element as u8);
                }
                LengthUnit::Pages => (op.kind, op.limit) = (OpKind::Pages, ELEMENTS_MAX),
            }
        }
        if links.1 > 0 {
            (op.kind, op.links) = (OpKind::Linked, links);
        }
        Some(())
    }

    fn string_limit(&self) -> u32 {
        self.string_limit.min(STRING_MAX as usize) as u32
    }

    fn word_bytes(&self) -> u16 {
        memory::pointer_size(self.abi) as u16
    }
}

/// Splits an operation into two if the kernel reads fewer bytes of the memory than it writes. An operation that is not
/// split reads only the fixed part of a struct with a tail.
fn parted(op: Op) -> impl Iterator<Item = Op> {
    let entry = Op { when: op.when & !AT_EXIT, ..op };
    let asks = if op.reads_tail { entry } else { Op { size: op.asks, limit: op.asks.into(), ..entry } };
    let tells = Op { when: op.when & !AT_ENTRY, ..op };
    if op.asks > 0 || op.reads_tail { [Some(asks), Some(tells)] } else { [Some(op), None] }.into_iter().flatten()
}

/// Returns whether a struct ends with a member of variable length.
fn ends_open(of: &Struct, abi: Abi) -> bool {
    let StructLayout::Members(all) = &of.layout else { return of.counted == LengthUnit::Entries };
    all[abi as usize]
        .last()
        .is_some_and(|last| matches!(last.memory_type, MemoryType::Text(0) | MemoryType::Bytes(0) | MemoryType::Array { count: 0, .. }))
}

/// Returns whether the kernel reads the member of variable length at the end of a struct.
fn reads_tail(of: &Struct, abi: Abi) -> bool {
    let StructLayout::Members(all) = &of.layout else { return false };
    all[abi as usize].last().is_some_and(|last| last.flow != Flow::Out)
}

/// Returns the size in bytes of the struct that a pointer which is a struct by itself points to.
fn target_bytes(of: &Struct, abi: Abi) -> u32 {
    let StructLayout::Number(types) = &of.layout else { return 0 };
    match &types[abi as usize] {
        MemoryType::Number(MemoryNumber { kind: ArgumentKind::Struct(target), .. }) => target.sizes[abi as usize],
        _ => 0,
    }
}

fn when(arg: &Arg) -> u8 {
    match arg.flow {
        Flow::In => AT_ENTRY,
        Flow::Out => AT_EXIT | written(arg.written),
        Flow::InOut => AT_ENTRY | AT_EXIT | written(arg.written),
    }
}

/// Returns the flags that say after which results of the call the kernel has written the memory.
fn written(outcomes: Outcomes) -> u8 {
    let failed = match outcomes {
        _ if outcomes.contains(Outcomes::FAILED) => FAILED,
        _ if outcomes.intersects(Outcomes::TOO_BIG | Outcomes::OVERFLOW) => TOO_SMALL,
        _ if outcomes.contains(Outcomes::INTERRUPTED) => INTERRUPTED,
        _ => 0,
    };
    let done = match outcomes.intersection(Outcomes::SUCCEEDED) {
        Outcomes::SUCCEEDED => 0,
        Outcomes::POSITIVE => POSITIVE,
        _ => NOT_DONE,
    };
    failed | done
}

/// Returns the source of a count, and whether it is an int.
fn count(signature: &Signature, length: Length, abi: Abi) -> (CountSource, bool) {
    match length {
        Length::OfType | Length::Fixed(_) => (CountSource::One, false),
        Length::Ret => (CountSource::Return, false),
        Length::Arg(by) => match (signature.args.get(usize::from(by)), signature.word(usize::from(by), abi)) {
            (Some(Arg { kind: ArgumentKind::Number { .. }, .. }), _) => (CountSource::At(by), false),
            (_, Some(word)) => (CountSource::Arg(word.register), word.width.is_narrow()),
            (_, None) => (CountSource::Arg(by), true),
        },
    }
}

/// Returns the register with the size of the buffer whose used part the return value counts, and whether it is an int.
/// The size is the next argument, or else the previous one.
fn room(signature: &Signature, at: usize, abi: Abi) -> (u8, bool) {
    let counts = |place: &usize| {
        let kind = signature.args.get(*place).map(|arg| &arg.kind);
        matches!(
            kind,
            Some(
                ArgumentKind::Size | ArgumentKind::Long | ArgumentKind::Ulong | ArgumentKind::Hex | ArgumentKind::Int | ArgumentKind::Uint
            )
        )
    };
    let place = Some(at + 1).into_iter().chain(at.checked_sub(1)).find(counts);
    let word = place.and_then(|place| signature.word(place, abi));
    word.map_or((NO_ARG, false), |word| (word.register, word.width.is_narrow()))
}

/// Returns the factor of a constant length, or 1.
fn fixed(length: Length) -> u16 {
    match length {
        Length::Fixed(n) => u16::try_from(n).unwrap_or(u16::MAX),
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
