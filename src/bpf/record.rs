//! Decodes the records that the BPF programs write: the counterpart of `record.h`.
//!
//! The module only reads bytes, so that it is part of every build: a recording may come from a machine with the BPF
//! engine. Any bytes can be decoded; bytes that are not a record yield nothing.

mod files;
mod listed;
pub mod packed;
mod pieces;
mod plain;
#[cfg(test)]
pub(crate) mod tests;
mod varint;

#[cfg(test)]
pub use files::{FILE_INFO_BYTES, SOCKET_INFO_BYTES};
pub use files::{FileInfo, FileName, RecordedFile, SocketInfo};
#[cfg(all(test, feature = "bpf"))]
pub use listed::LISTED_BYTES;
#[cfg(test)]
pub use listed::LISTED_STACK_BYTES;
pub use listed::{ListedCall, listed, listed_stacks};
pub(super) use pieces::ARG_RETURN;
pub use pieces::{PIECE_BYTES, add_pieces};
pub use plain::is_plain;

use crate::event::{Abi, TaskId, Time};
use pieces::{ARG_PARTS, piece};

/// `sizeof(struct call)`.
pub const CALL_BYTES: usize = 96;

/// `CALL_ABI`
const ABI: u8 = 3;
/// `CALL_KILLED`, `CALL_INJECTED`, `CALL_NO_ENTRY`, `CALL_SHOWN`, `CALL_LEADS` and `CALL_NESTED`.
const KILLED: u8 = 4;
const INJECTED: u8 = 8;
const NO_ENTRY: u8 = 16;
const SHOWN: u8 = 32;
const LEADS: u8 = 64;
const NESTED: u8 = 128;

/// `REQUEST_HAS_END`
const HAS_END: i32 = 1 << 12;

/// The offsets of `pid`, `payload` and `bits` in a record.
const PID: usize = 80;
const PAYLOAD: usize = 92;
const BITS: usize = 95;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    Returned,
    Never,
    Unseen,
    Pending,
    /// Not a call: the task ends, with [`CallRecord::ret`] as its exit code (wait(2)'s status word).
    TaskEnd,
    /// Pieces of a call whose own record follows later.
    Part,
    /// Not a call: an aggregate of [`CallRecord::ret`] calls, which follows in place of pieces ([`super::aggregate`]).
    Aggregate,
    /// The stack of a call whose own record follows later. The stack is in the sample of this record.
    Stack,
    /// Not a call: a signal that was sent to a task ([`super::signals`]).
    SignalSent,
    /// Not a call: a signal that is delivered to a task ([`super::signals`]).
    Signal,
    /// A call at its entry, with the memory and files of that moment. The call's own record follows later. If
    /// [`CallRecord::ret`] is not 0, some memory could not be read yet.
    Entry,
    /// Not a call: the arguments of a request of io_uring that was submitted ([`CallRecord::request`]).
    Request,
    /// Not a call: what the kernel has written for a request that has completed. [`CallRecord::start`] is that of the
    /// record with the arguments.
    RequestEnd,
}

/// In the order of `enum how`.
const RECORD_KINDS: [RecordKind; 13] = [
    RecordKind::Returned,
    RecordKind::Never,
    RecordKind::Unseen,
    RecordKind::Pending,
    RecordKind::TaskEnd,
    RecordKind::Part,
    RecordKind::Aggregate,
    RecordKind::Stack,
    RecordKind::SignalSent,
    RecordKind::Signal,
    RecordKind::Entry,
    RecordKind::Request,
    RecordKind::RequestEnd,
];

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRecord<'a> {
    /// When the call began; if its entry was not seen, when it returned.
    pub start: Time,
    /// When the call ended.
    pub end: Time,
    /// The return value as the kernel's exit tracepoint has it: a negative errno if the call failed. 0 unless the call
    /// returned.
    pub ret: i64,
    /// The argument registers in the order of the ABI.
    pub args: [u64; 6],
    /// The syscall number; of x32 without its bit.
    pub nr: i32,
    /// The ABI of the call, which decides what `nr` and `args` mean.
    pub abi: Abi,
    /// The thread that entered the call.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// The number of this task's records that were lost since its previous one.
    pub lost: u32,
    /// How the call ended, or what else the record holds.
    pub kind: RecordKind,
    /// Whether the programs returned a value in the kernel's place (`--inject`).
    pub injected: bool,
    /// Whether the programs did not see the call begin.
    pub no_entry: bool,
    /// Whether the call was listed as pending before.
    pub shown: bool,
    /// Whether the task is in a pid namespace below the first one, to which the pids in the call belong.
    pub nested: bool,
    /// Whether the task was being killed when the call returned, so that the program never got the result.
    pub killed: bool,
    /// The nanoseconds between the end of the call and the record.
    pub late: u32,
    /// The encoded pieces.
    pub pieces: &'a [u8],
}

impl<'a> CallRecord<'a> {
    /// Decodes a record; `None` if the bytes are not a record.
    pub fn parse(raw: &'a [u8]) -> Option<CallRecord<'a>> {
        let (head, rest) = raw.split_first_chunk::<CALL_BYTES>()?;
        let payload = usize::from(u16::from_le_bytes([head[PAYLOAD], head[PAYLOAD + 1]]));
        Some(CallRecord { pieces: rest.get(..payload)?, ..CallRecord::without_pieces(head)? })
    }

    /// Parses a record without the pieces that follow it.
    #[inline]
    pub fn without_pieces(head: &[u8; CALL_BYTES]) -> Option<CallRecord<'a>> {
        let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
        let half = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default());
        let bits = head[BITS];
        Some(CallRecord {
            start: Time(word(8)),
            end: Time(word(0).saturating_sub(half(88).into())),
            ret: word(16) as i64,
            args: std::array::from_fn(|i| word(24 + 8 * i)),
            nr: half(72) as i32,
            abi: Abi::ALL.get(usize::from(bits & ABI)).copied()?,
            tid: half(76) as i32,
            pid: half(PID) as i32,
            lost: half(84),
            late: half(88),
            kind: RECORD_KINDS.get(usize::from(head[94])).copied()?,
            injected: bits & INJECTED != 0,
            no_entry: bits & NO_ENTRY != 0,
            killed: bits & KILLED != 0,
            shown: bits & SHOWN != 0,
            nested: bits & NESTED != 0,
            pieces: &[],
        })
    }

    /// Returns whether a record of the kind [`RecordKind::RequestEnd`] follows this one of the kind
    /// [`RecordKind::Request`] when the request completes.
    pub fn has_end(&self) -> bool {
        self.nr & HAS_END != 0
    }

    /// Returns the flags that the program gave to the request of such a record (IOSQE_*).
    pub fn sqe_flags(&self) -> u8 {
        (self.nr >> 16) as u8
    }

    /// Returns the addresses of the ring and of the request that a record of the kind [`RecordKind::Request`] is about.
    pub fn request(&self) -> (u64, u64) {
        (u64::from(self.lost) | u64::from(self.late) << 32, self.ret as u64)
    }

    /// Returns how many partial records of this call were written before this record.
    pub fn parts_before(&self) -> u32 {
        // The piece with this number precedes all others.
        let first = self.pieces.first_chunk::<PIECE_BYTES>().and_then(|head| piece(head, 0));
        first.filter(|piece| piece.arg == ARG_PARTS).map_or(0, |piece| piece.wanted as u32)
    }
}

/// Returns the time when a record was written; `None` if the bytes are not a record.
#[inline]
pub fn time(raw: &[u8]) -> Option<Time> {
    raw.first_chunk().copied().map(u64::from_le_bytes).map(Time)
}

/// Returns the task that wrote a record; `None` if the bytes are not a record.
#[inline]
pub fn task(raw: &[u8]) -> Option<TaskId> {
    let head = raw.first_chunk::<CALL_BYTES>()?;
    let half = |at: usize| i32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default());
    let pid = half(PID);
    Some(TaskId { pid, tid: if head[BITS] & LEADS == 0 { half(76) } else { pid } })
}
