//! Calls: a syscall with its arguments, the copies of the caller's memory, and the files behind its descriptors.

use super::{Abi, File, PidTranslation, Stack, Time};
use smallvec::SmallVec;
use std::sync::Arc;

/// Identifies a call within a session, because a thread is in one call at a time, and submits requests of io_uring one
/// after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    /// The thread that made the call.
    pub tid: i32,
    /// The time of the entry; if the entry was not seen, the time of the return.
    pub start: Time,
}

/// The position that stands for the return value in [`Call::ids`].
pub const ID_RETURNED: u8 = 6;

/// One syscall, recorded by either engine (tracepoints or BPF).
#[derive(Clone, Debug)]
pub struct Call {
    /// The thread and the start of the call.
    pub id: CallId,
    /// The ABI of the call, which decides what `nr` and `args` mean.
    pub abi: Abi,
    /// The number in the call's ABI (x32's without its bit 30). It can be negative: a program may call syscall(-1).
    pub nr: i64,
    /// Whether the entry was recorded, and if not, why.
    pub entry: EntryState,
    /// Whether and how the call returned.
    pub exit: ExitState,
    /// The argument registers; `None` if the entry was not seen and the exit's record does not have them.
    pub args: Option<[u64; 6]>,
    /// For a request of io_uring: what every request has besides its own arguments, in registers as
    /// [`requests::registers`](crate::beauty::lookup::requests::registers) returns them. `args` is `None` for a request
    /// whose arguments are not known.
    pub request: Option<Box<[u64; 6]>>,
    /// The copies of the caller's memory.
    pub pieces: SmallVec<[Piece; 2]>,
    /// The bytes that the pieces refer to.
    pub payload: Vec<u8>,
    /// The files behind the descriptors in arguments and return value, at the time of the call.
    pub files: SmallVec<[CallFile; 2]>,
    /// The number of records lost since the previous call of this task, if the engine knows it; otherwise zero.
    pub lost_before: u64,
    /// The call was already shown as pending.
    pub shown_pending: bool,
    /// The task was being killed when the call returned, so that the program never got the result; false if the engine
    /// does not know it.
    pub killed: bool,
    /// The tasks that the pids in the arguments and the return value stand for.
    pub pids: PidTranslation,
    /// The users and groups that have another number in the initial user namespace (user_namespaces(7)), as far as that
    /// is known: the argument's position ([`ID_RETURNED`] for the return value), and the number there.
    pub ids: Vec<(u8, u32)>,
    /// The call chain, if one was requested and recorded.
    pub stack: Option<Arc<Stack>>,
    /// What the supervisor of `--inject` did to the call.
    pub injected: Injected,
    /// The process is not shown after this call (`strace -b execve`).
    pub detached: bool,
}

/// What the supervisor of `--inject` did to a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Injected {
    /// It returned a value in the kernel's place: the call was not executed.
    pub answered: bool,
    /// It delayed the call. The delay is part of the call's duration.
    pub delayed: bool,
    /// The returned value is a value of 64 bits, even if it is one that stands for an error (`retval=`).
    pub as_value: bool,
}

/// What is known of a call's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// The entry was recorded, or the supervisor of `--inject` reported it.
    Seen,
    /// The call has no entry record for a known reason: a seccomp filter answered it, a thread other than the leader
    /// executed a program, or the call began before the trace.
    Unseen,
    /// The entry record may be among the lost ones.
    Lost,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitState {
    /// The call returned.
    Returned {
        /// When it returned.
        at: Time,
        /// The return value: a negative errno (-4095..=-1) if the call failed.
        ret: i64,
    },
    /// The call does not return: exit, exit_group, or the task was killed inside it.
    Never,
    /// The call is still in flight.
    Pending,
    /// The exit record may be among the lost ones, or the next call of the task came without one.
    Unseen,
}

impl Call {
    /// Returns a call that has not returned, and of which no more is known than that it began.
    pub fn new(id: CallId, abi: Abi, nr: i64) -> Call {
        Call {
            id,
            abi,
            nr,
            entry: EntryState::Seen,
            exit: ExitState::Pending,
            args: None,
            request: None,
            pieces: SmallVec::new(),
            payload: Vec::new(),
            files: SmallVec::new(),
            lost_before: 0,
            shown_pending: false,
            killed: false,
            pids: PidTranslation::Same,
            ids: Vec::new(),
            stack: None,
            injected: Injected::default(),
            detached: false,
        }
    }

    /// Returns the nanoseconds between entry and exit, if both were seen.
    pub fn duration(&self) -> Option<u64> {
        match (self.entry, self.exit) {
            (EntryState::Seen, ExitState::Returned { at, .. }) => Some(at.since(self.id.start)),
            _ => None,
        }
    }

    /// Returns the return value, if the call returned.
    pub fn ret(&self) -> Option<i64> {
        match self.exit {
            ExitState::Returned { ret, .. } => Some(ret),
            _ => None,
        }
    }

    /// Returns the errno, if the return value is one (-4095..=-1).
    pub fn errno(&self) -> Option<i32> {
        self.ret().filter(|ret| (-4095..0).contains(ret)).map(|ret| -ret as i32)
    }

    /// Returns the number in the initial user namespace of the user or group at this argument, if it is another number
    /// there.
    pub fn initial_id(&self, place: u8) -> Option<u32> {
        self.ids.iter().find(|(of, _)| *of == place).map(|(_, here)| *here)
    }

    /// Returns the file behind the descriptor at this position, if it is known.
    pub fn file(&self, place: FdPlace) -> Option<&File> {
        self.files.iter().find(|f| f.place == place).map(|f| &f.file)
    }

    /// Returns the bytes of a piece.
    pub fn bytes(&self, piece: &Piece) -> &[u8] {
        self.payload.get(piece.start as usize..(piece.start + piece.len) as usize).unwrap_or_default()
    }

    /// Returns the first piece that was copied for this argument.
    pub fn piece(&self, arg: usize) -> Option<&Piece> {
        self.pieces.iter().find(|p| usize::from(p.arg) == arg)
    }
}

/// A copy of some of the caller's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The argument that the copy belongs to (0..=5).
    pub arg: u8,
    /// At which end of the call the memory was read.
    pub when: PieceTime,
    /// The address that was read.
    pub address: u64,
    /// The length of the data in bytes according to the call; it can exceed the number of bytes copied.
    pub wanted: u64,
    /// The offset of the piece's bytes in the call's payload.
    pub start: u32,
    /// The number of bytes that were copied.
    pub len: u32,
    /// Whether the copy is complete, and if not, why.
    pub state: PieceState,
}

/// When a piece was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceTime {
    /// At entry, or during the call by the kernel itself, whose copy it is.
    Entry,
    /// At exit: what the kernel has written there.
    Exit,
    /// At exit, after it could not be read at entry.
    Retry,
}

/// The result of reading a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceState {
    /// The piece is complete.
    Ok,
    /// The piece was truncated at a limit; the bytes that are present are correct.
    Cut,
    /// The kernel may have truncated the piece, and replaced unprintable bytes by dots (the strings of `syscalls:`
    /// records of kernels from 6.19).
    Altered {
        /// Whether the bytes that are present fill the kernel's limit, so that more may have followed.
        cut: bool,
    },
    /// The memory could not be read; sinks show the address.
    Fault,
}

/// The position of a descriptor in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdPlace {
    /// The argument with this index (0..=5) is the descriptor.
    Arg(u8),
    /// In memory that the argument points to, identified by the descriptor's number.
    Inside {
        /// The index of the argument (0..=5).
        arg: u8,
        /// The descriptor.
        fd: i32,
    },
    /// The return value is the descriptor.
    Return,
}

/// The file behind one descriptor of a call.
#[derive(Clone, Debug)]
pub struct CallFile {
    /// Where the call has the descriptor.
    pub place: FdPlace,
    /// What the descriptor referred to at that moment.
    pub file: File,
}
