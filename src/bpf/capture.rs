//! What to copy of a caller's memory: from a row to operations that the programs carry out.
//!
//! An operation is a fact, not a program: which argument, when, how many bytes. What needs more than that is a kind of its own in `capture.h`.

use super::conditions::{Coded, coded};
use super::encode::OPS_MAX;
use super::links::Links;
use super::record::ARG_RETURN;
use crate::beauty::memory;
use crate::beauty::resolve::Signature;
use crate::beauty::row::{Arg, Copied, Counted, Flow, Form, Kind, Layout, Length, Outcomes, Return, Struct, Traits};
use crate::event::Abi;

/// `sizeof(struct op)`.
pub(super) const OP_BYTES: usize = 20;
/// `PIECE_MAX`: the most bytes of one piece.
const PIECE_MAX: u32 = 4096;
/// The most bytes of a string or buffer, in as many records as they need.
const STRING_MAX: u32 = 1 << 20;
/// No more elements of an array are copied.
pub(super) const ELEMENTS_MAX: u32 = memory::ELEMENTS_MAX as u32;
/// `NO_ARG`
const NO_ARG: u8 = 6;

/// `OP_AT_ENTRY` and its like.
const AT_ENTRY: u8 = 1;
const AT_EXIT: u8 = 2;
const INTERRUPTED: u8 = 4;
const COUNT_32: u8 = 8;
const FAILED: u8 = 16;
const POSITIVE: u8 = 32;
const NOT_DONE: u8 = 64;

/// `enum op_kind`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum What {
    String = 0,
    Bytes,
    /// As many bits, in whole words of the ABI.
    Bits,
    /// The same, of one bit less.
    Nodes,
    /// So many bytes behind the fixed ones.
    Tail,
    /// A byte for each page.
    Pages,
    /// As an ioctl's command says.
    Command,
    /// A struct with pointers.
    Linked,
    /// Pointers to strings, up to a null one.
    Strings,
    /// Arrays and structs that point to data.
    Iovec,
    Msghdr,
    Mmsghdr,
}

/// `COUNT_*`: where a count comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
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
    /// The argument that a count from the return is no more than.
    room: u8,
    /// When the call uses the argument.
    condition: Coded,
    /// So many bytes of what is read and written are read, unless it is 0: then all are.
    asks: u16,
    /// Which links, from one on.
    links: (u8, u8),
    /// No more bytes are copied.
    limit: u32,
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
        let (test, test_arg, mask) = self.condition;
        let mut bytes = [0; OP_BYTES];
        bytes[..4].copy_from_slice(&[self.arg, self.what as u8, self.when, count]);
        bytes[4..6].copy_from_slice(&self.size.to_ne_bytes());
        bytes[6..11].copy_from_slice(&[self.room, test, test_arg, self.links.0, self.links.1]);
        bytes[12..16].copy_from_slice(&mask.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.limit.to_ne_bytes());
        bytes
    }
}

/// What is copied and noted of a call: that of a row, or of one of its variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Capture {
    pub ops: Vec<Op>,
    /// Bit i: argument i is a descriptor.
    pub descriptors: u8,
    /// Descriptors that no argument is.
    pub elsewhere: Elsewhere,
    /// It returns a descriptor.
    pub opens: bool,
    /// Bit i: argument i is the number of a task; [`ARG_RETURN`]: the return is.
    pub pids: u8,
    /// The same for users and groups.
    pub uids: u8,
    pub gids: u8,
}

/// `enum elsewhere`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Elsewhere {
    Nowhere = 0,
    /// In an array of struct pollfd.
    Polled = 1,
    /// Of the two processes that kcmp(2) names, or of its first.
    Compared = 2,
    ComparedOne = 3,
    /// Of the process that pidfd_getfd(2) takes it from.
    Fetched = 4,
}

impl Elsewhere {
    fn of(args: &[Arg]) -> Elsewhere {
        let owner = |at: usize| args.get(at).and_then(|arg| arg.fd_of);
        let is_polled = |arg: &Arg| matches!(arg.kind, Kind::StructArray(of) if of.copied == Copied::Pollfd);
        match (owner(1), owner(3), owner(4)) {
            (Some(0), None, None) => Elsewhere::Fetched,
            (None, Some(0), Some(1)) => Elsewhere::Compared,
            (None, Some(0), None) => Elsewhere::ComparedOne,
            _ if args.first().is_some_and(is_polled) => Elsewhere::Polled,
            _ => Elsewhere::Nowhere,
        }
    }
}

/// Makes operations for one ABI.
pub(super) struct Maker<'a> {
    pub abi: Abi,
    pub string_limit: usize,
    pub links: &'a mut Links,
}

impl Maker<'_> {
    /// What is copied of a call with these arguments, a row's or those of one of its variants.
    pub fn capture(&mut self, signature: Signature) -> Capture {
        let Signature { args, returns } = signature;
        let ops = (0..args.len()).filter_map(|at| self.op(&signature, at)).flat_map(parted).take(OPS_MAX).collect();
        let is_descriptor = |arg: &Arg| matches!(arg.kind, Kind::Fd | Kind::DirFd);
        let descriptors = (0u8..6).zip(args).filter(|(_, arg)| is_descriptor(arg)).fold(0, |bits, (at, _)| bits | 1 << at);
        let places = |is_one: fn(&Kind) -> bool, is_returned: bool| {
            let arguments = (0u8..6).zip(args).filter(|(_, arg)| is_one(&arg.kind)).map(|(at, _)| at);
            arguments.chain(is_returned.then_some(ARG_RETURN)).fold(0, |bits, at| bits | 1 << at)
        };
        Capture {
            ops,
            descriptors,
            elsewhere: Elsewhere::of(args),
            opens: matches!(returns, Return::Fd),
            pids: places(|kind| matches!(kind, Kind::Pid), matches!(returns, Return::Pid)),
            uids: places(|kind| matches!(kind, Kind::Uid), matches!(returns, Return::Uid)),
            gids: places(|kind| matches!(kind, Kind::Gid), matches!(returns, Return::Gid)),
        }
    }

    fn op(&mut self, signature: &Signature, at: usize) -> Option<Op> {
        let arg = &signature.args[at];
        let (count, of_int) = count(signature, arg.length, self.abi);
        let (room, room_of_int) = if count == Count::Return { room(signature, at, self.abi) } else { (NO_ARG, false) };
        let mut op = Op {
            arg: at as u8,
            what: What::Bytes,
            when: when(arg) | if of_int || room_of_int { COUNT_32 } else { 0 },
            count,
            size: 1,
            room,
            condition: coded(&arg.used)?,
            asks: 0,
            links: (0, 0),
            limit: PIECE_MAX,
        };
        let string_limit = self.string_limit();
        match arg.kind {
            Kind::Path => (op.what, op.count) = (What::String, Count::One),
            Kind::Str => {
                let limit = if let Length::Fixed(bytes) = arg.length { (bytes as u32).saturating_sub(1) } else { u32::MAX };
                (op.what, op.count, op.limit) = (What::String, Count::One, string_limit.min(limit));
            }
            Kind::Bytes => (op.size, op.limit) = (fixed(arg.length), string_limit),
            Kind::StrArray => {
                let limit = if arg.traits.contains(Traits::COUNTED) { 0 } else { string_limit.max(1) };
                (op.what, op.size, op.limit) = (What::Strings, self.word_bytes(), limit);
            }
            Kind::StructArray(of) if of.copied == Copied::Iovec && !arg.traits.contains(Traits::SHALLOW) => {
                (op.what, op.size) = (What::Iovec, self.word_bytes());
                op.when |= if op.when == AT_EXIT { FAILED } else { 0 };
            }
            Kind::StructArray(of) if of.copied == Copied::Mmsghdr => {
                (op.what, op.size, op.limit) = (What::Mmsghdr, self.word_bytes(), arg.traits.contains(Traits::SENDS).into());
            }
            Kind::Struct(of) if of.copied == Copied::Msghdr => (op.what, op.size) = (What::Msghdr, self.word_bytes()),
            Kind::Struct(of) => self.structure(&mut op, of, arg)?,
            Kind::StructArray(of) => {
                let size = of.sizes[self.abi as usize];
                (op.size, op.limit) = (size as u16 * fixed(arg.length), size * ELEMENTS_MAX);
            }
            Kind::Number { bytes, .. } => {
                (op.size, op.limit) = (u16::from(bytes) * fixed(arg.length), u32::from(bytes) * ELEMENTS_MAX);
            }
            _ => return None,
        }
        Some(op)
    }

    fn structure(&mut self, op: &mut Op, of: &'static Struct, arg: &Arg) -> Option<()> {
        if matches!(of.layout, Layout::Opaque) {
            return None;
        }
        let size = of.sizes[self.abi as usize];
        op.limit = if ends_open(of, self.abi) { PIECE_MAX } else { size };
        op.asks = if arg.flow == Flow::InOut { of.asked as u16 } else { 0 };
        let links = if arg.traits.contains(Traits::SHALLOW) { (0, 0) } else { self.links.of(of, self.abi, self.string_limit()) };
        if arg.length == Length::OfType {
            (op.count, op.size) = (Count::One, size as u16);
            match of.counted {
                _ if of.copied == Copied::Command => (op.what, op.limit) = (What::Command, self.string_limit()),
                Counted::Tail if of.has_length => (op.what, op.count) = (What::Tail, Count::At(op.arg)),
                _ if of.has_length => (op.count, op.size) = (Count::At(op.arg), 1),
                _ => {}
            }
        } else {
            op.size = fixed(arg.length);
            match of.counted {
                Counted::Bytes | Counted::Entries => {}
                // The kernel's words are 64 bits in x32 too.
                Counted::Bits | Counted::Nodes => {
                    op.what = if of.counted == Counted::Bits { What::Bits } else { What::Nodes };
                    (op.size, op.limit) = (if self.abi == Abi::I386 { 4 } else { 8 }, PIECE_MAX);
                }
                Counted::Tail => (op.what, op.size, op.limit) = (What::Tail, size as u16, size + self.string_limit()),
                Counted::Pages => (op.what, op.limit) = (What::Pages, ELEMENTS_MAX),
            }
        }
        if links.1 > 0 {
            (op.what, op.links) = (What::Linked, links);
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

/// What is asked for and what is told may be of different size: then an operation is two.
fn parted(op: Op) -> impl Iterator<Item = Op> {
    let asks = Op { when: op.when & !AT_EXIT, size: op.asks, limit: op.asks.into(), ..op };
    let tells = Op { when: op.when & !AT_ENTRY, ..op };
    if op.asks > 0 { [Some(asks), Some(tells)] } else { [Some(op), None] }.into_iter().flatten()
}

/// Whether more may follow what is fixed of a struct.
fn ends_open(of: &Struct, abi: Abi) -> bool {
    let Layout::Members(all) = &of.layout else { return of.counted == Counted::Entries };
    all[abi as usize].last().is_some_and(|last| matches!(last.form, Form::Text(0) | Form::Bytes(0) | Form::Array { count: 0, .. }))
}

fn when(arg: &Arg) -> u8 {
    match arg.flow {
        Flow::In => AT_ENTRY,
        Flow::Out => AT_EXIT | written(arg.written),
        Flow::InOut => AT_ENTRY | AT_EXIT | written(arg.written),
    }
}

/// How the call ends when memory is written.
fn written(outcomes: Outcomes) -> u8 {
    let failed = match outcomes {
        _ if outcomes.contains(Outcomes::FAILED) => FAILED,
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

/// Where the count comes from, and whether it is an int.
fn count(signature: &Signature, length: Length, abi: Abi) -> (Count, bool) {
    match length {
        Length::OfType | Length::Fixed(_) => (Count::One, false),
        Length::Ret => (Count::Return, false),
        Length::Arg(by) => match (signature.args.get(usize::from(by)), signature.word(usize::from(by), abi)) {
            (Some(Arg { kind: Kind::Number { .. }, .. }), _) => (Count::At(by), false),
            (_, Some(word)) => (Count::Arg(word.register), word.width.is_narrow()),
            (_, None) => (Count::Arg(by), true),
        },
    }
}

/// The argument that says how much room there is for what the return counts: the next one, or else the last before.
fn room(signature: &Signature, at: usize, abi: Abi) -> (u8, bool) {
    let counts = |place: &usize| {
        let kind = signature.args.get(*place).map(|arg| &arg.kind);
        matches!(kind, Some(Kind::Size | Kind::Long | Kind::Ulong | Kind::Hex | Kind::Int | Kind::Uint))
    };
    let place = Some(at + 1).into_iter().chain(at.checked_sub(1)).find(counts);
    let word = place.and_then(|place| signature.word(place, abi));
    word.map_or((NO_ARG, false), |word| (word.register, word.width.is_narrow()))
}

/// The factor of a length that is a number.
fn fixed(length: Length) -> u16 {
    match length {
        Length::Fixed(n) => u16::try_from(n).unwrap_or(u16::MAX),
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
