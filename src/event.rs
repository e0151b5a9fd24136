//! Events: the engine's output, in the terms that all sinks share.
//!
//! [`Event`] connects the engine (rings, pairing, task state) with the sinks (text, summary, ...). It owns its bytes,
//! so that an event can wait for a later fact, such as a file name, without holding the chunk that its record came in.
//! Nothing here renders text or reads the system. What the engine does not know is [`None`] or `Unknown`; it never
//! guesses.

mod aggregate;
mod file;
pub mod frame;
mod notice;
mod pid_translation;
mod signal;
mod stack;
pub mod synthesized;
pub mod verdict;

pub use aggregate::{Aggregate, Sum, Times};
pub use file::{File, Socket, SocketAddresses, UnixName};
pub use notice::{Notice, NoticeCode, Severity};
pub use pid_translation::PidTranslation;
pub use signal::{Disposition, SigInfo, Signal};
pub use stack::Stack;
pub use synthesized::Synthesized;
pub use verdict::Verdict;

use frame::Frame;
use smallvec::SmallVec;
use std::sync::Arc;

/// A point in time: nanoseconds of CLOCK_MONOTONIC of the traced machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Time(pub u64);

impl Time {
    /// Returns the nanoseconds since `earlier`, or zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A task: the kernel's thread and the process (thread group) that it belongs to, both as numbers of the initial pid
/// namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct TaskId {
    /// The process: the kernel's tgid, which user space calls pid.
    pub pid: i32,
    /// The thread: the kernel's pid, which gettid(2) returns.
    pub tid: i32,
}

/// The ABI of a call: it decides which table of syscall numbers and which struct layouts apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum Abi {
    #[default]
    X86_64 = 0,
    I386 = 1,
    X32 = 2,
    Aarch64 = 3,
}

impl Abi {
    pub const ALL: [Abi; 4] = [Abi::X86_64, Abi::I386, Abi::X32, Abi::Aarch64];

    /// Returns the name that answers and JSON use.
    pub const fn name(self) -> &'static str {
        match self {
            Abi::X86_64 => "x86_64",
            Abi::I386 => "i386",
            Abi::X32 => "x32",
            Abi::Aarch64 => "aarch64",
        }
    }
}

/// One event of one task, with its time and CPU.
#[derive(Clone, Debug)]
pub struct Event {
    /// The time of the event's line: the end of a call, or the tick at which a call is reported as pending. Events
    /// leave the engine in this order.
    pub time: Time,
    /// The CPU whose ring held the record.
    pub cpu: u32,
    pub task: TaskId,
    /// The task's comm at that time; `None` if no record or /proc file has named the task.
    pub comm: Option<Comm>,
    pub kind: EventKind,
}

impl Event {
    /// Returns the event of a notice. It has no task.
    pub fn of_notice(time: Time, notice: Notice) -> Event {
        Event { time, cpu: 0, task: TaskId::default(), comm: None, kind: EventKind::Notice(Box::new(notice)) }
    }
}

/// A task's comm: at most 15 bytes, not necessarily UTF-8. It is shared because every event carries one.
pub type Comm = Arc<[u8]>;

/// The kind of an event, with its data.
#[derive(Clone, Debug)]
pub enum EventKind {
    /// A syscall that has ended, or of which no further record will arrive.
    Call(Box<Call>),
    /// A syscall that is still in flight. A later `Call` with the same id completes it.
    Pending(Box<Call>),
    /// Completed calls of the task as sums. None of these calls has an event of its own.
    Aggregate(Box<Aggregate>),
    /// The raw record of a tracepoint or probe; `event` selects its format in the session's event table. `caller` is
    /// the place that the function returned to, for a return probe in a program.
    Tracepoint { event: EventIndex, raw: Box<[u8]>, stack: Option<Arc<Stack>>, caller: Option<Caller> },
    /// A page fault.
    Fault(Fault),
    /// A signal that is delivered to the task, or that was sent to the task and kills it or is ignored.
    Signal(Box<Signal>),
    /// The task created a child task.
    Fork { child: TaskId, flags: Option<u64> },
    /// The task executed a program. `old_tid` differs from the task's tid if a thread other than the leader called
    /// execve.
    Exec { path: Box<[u8]>, old_tid: i32 },
    /// The task ended.
    Exit(TaskEnd),
    /// The kernel dropped records between the previous record of this CPU's ring and this time.
    Lost(Loss),
    /// rtrace printed a message about the trace. The event has no task.
    Notice(Box<Notice>),
}

impl EventKind {
    /// Returns the call chain, if one was requested and recorded.
    pub fn stack(&self) -> Option<&Stack> {
        match self {
            EventKind::Call(call) | EventKind::Pending(call) => call.stack.as_deref(),
            EventKind::Tracepoint { stack, .. } | EventKind::Fault(Fault { stack, .. }) => stack.as_deref(),
            _ => None,
        }
    }

    /// Returns the place that a program's function returned to, if the event is a return probe that recorded it.
    pub fn caller(&self) -> Option<&Caller> {
        match self {
            EventKind::Tracepoint { caller, .. } => caller.as_ref(),
            _ => None,
        }
    }

    /// Returns the number of calls that this event completes.
    pub fn calls(&self) -> u64 {
        match self {
            EventKind::Call(_) => 1,
            EventKind::Aggregate(aggregate) => aggregate.calls(),
            _ => 0,
        }
    }
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// The task called exit(2) or exit_group(2) with this status (0..=255).
    Exited(i32),
    /// This signal killed the task. `core_dumped` says whether the kernel wrote a core dump; `None` if that is not
    /// known.
    Killed { signal: i32, core_dumped: Option<bool> },
    /// The stream does not show how the task ended.
    Unknown,
    /// The task still runs, but the kernel has removed the events that were opened on it, because it executed a program
    /// with more privileges (set-user-ID and the like).
    NotTraced,
}

/// Records that the kernel dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The number of records (not calls), if the kernel reports it.
    pub records: Option<u64>,
    /// The time of the last record of the same ring before the gap, if there was one.
    pub after: Option<Time>,
}

/// A page fault (PERF_COUNT_SW_PAGE_FAULTS_MIN and _MAJ).
#[derive(Clone, Debug)]
pub struct Fault {
    pub major: bool,
    /// The address of the instruction that faulted.
    pub ip: u64,
    /// The address that the instruction accessed.
    pub address: u64,
    pub ip_at: Option<MapRef>,
    pub address_at: Option<MapRef>,
    pub stack: Option<Arc<Stack>>,
}

/// The place that called a function of a program, as far as the process's mappings are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub place: MapRef,
    /// The same place as a frame, for sinks that look up symbols.
    pub frame: Frame,
}

/// A position in a mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRef {
    pub path: Arc<[u8]>,
    pub offset: u64,
    pub executable: bool,
}

/// The identity of a file: major and minor number of its device, its inode number, and the inode's generation (0 if it
/// is not known). All zero stands for no file (anonymous memory, the vdso).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct FileId {
    pub device: (u32, u32),
    pub inode: u64,
    pub generation: u64,
}

/// The index of an armed event in the session's event table ([`crate::session::EventTable`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct EventIndex(pub u16);

/// Identifies a call within a session, because a thread is in one call at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    pub tid: i32,
    /// The time of the entry; if the entry was not seen, the time of the return.
    pub start: Time,
}

/// The position that stands for the return value in [`Call::ids`].
pub const ID_RETURNED: u8 = 6;

/// One syscall, recorded by either engine (tracepoints or BPF).
#[derive(Clone, Debug)]
pub struct Call {
    pub id: CallId,
    pub abi: Abi,
    /// The number in the call's ABI (x32's without its bit 30). It can be negative: a program may call syscall(-1).
    pub nr: i64,
    pub entry: EntryState,
    pub exit: ExitState,
    /// The argument registers; `None` if the entry was not seen and the exit's record does not have them.
    pub args: Option<[u64; 6]>,
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
    /// The tasks that the pids in the arguments and the return value stand for.
    pub pids: PidTranslation,
    /// The users and groups that have another number in the initial user namespace (user_namespaces(7)), as far as that
    /// is known: the argument's position ([`ID_RETURNED`] for the return value), and the number there.
    pub ids: Vec<(u8, u32)>,
    /// The call chain, if one was requested and recorded.
    pub stack: Option<Arc<Stack>>,
}

/// What is known of a call's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryState {
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
    /// The call returned `ret` at `at`.
    Returned { at: Time, ret: i64 },
    /// The call does not return: exit, exit_group, or the task was killed inside it.
    Never,
    /// The call is still in flight.
    Pending,
    /// The exit record may be among the lost ones, or the next call of the task came without one.
    Unseen,
}

impl Call {
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
    pub when: PieceTime,
    /// The address that was read.
    pub address: u64,
    /// The length of the data in bytes according to the call; it can exceed the number of bytes copied.
    pub wanted: u64,
    /// Offset and length of the piece's bytes in the call's payload.
    pub start: u32,
    pub len: u32,
    pub state: PieceState,
}

/// When a piece was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceTime {
    /// At entry, or during the call by the kernel itself, whose copy it is.
    Entry,
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
    Altered { cut: bool },
    /// The memory could not be read; sinks show the address.
    Fault,
}

/// The position of a descriptor in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdPlace {
    Arg(u8),
    /// In memory that the argument points to, identified by the descriptor's number.
    Inside {
        arg: u8,
        fd: i32,
    },
    Return,
}

/// The file behind one descriptor of a call.
#[derive(Clone, Debug)]
pub struct CallFile {
    pub place: FdPlace,
    pub file: File,
}
