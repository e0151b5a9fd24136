//! What happened, in the words every sink understands.
//!
//! [`Event`] stands between the core (rings, pairing, task state) and the sinks (text, summary, ...). It owns its bytes, so
//! that an event may wait for a later fact (a file name that is being confirmed) without holding the rings' chunk.
//! Nothing here renders and nothing here looks anything up: what an engine cannot know is [`None`] or `Unknown`, never guessed.

mod file;
pub mod frame;
pub mod note;
mod numbers;
mod signal;
mod stack;
mod tally;

pub use file::{Ends, File, Socket, UnixName};
pub use note::Note;
pub use numbers::Numbers;
pub use signal::{Fate, Members, Signal};
pub use stack::Stack;
pub use tally::{Sum, Tally, Times};

use frame::Frame;
use smallvec::SmallVec;
use std::sync::Arc;

/// A point in time: nanoseconds of CLOCK_MONOTONIC of the traced machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Time(pub u64);

impl Time {
    /// Nanoseconds since `earlier`; zero when `earlier` is later.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A task: the kernel's thread and the process (thread group) it belongs to, in the initial pid namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct TaskId {
    /// The process: the kernel's tgid, what user space calls pid.
    pub pid: i32,
    /// The thread: the kernel's pid, what gettid(2) returns.
    pub tid: i32,
}

/// How the registers of a call are to be read: which table of numbers and which struct sizes.
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

    /// What it is called in answers and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Abi::X86_64 => "x86_64",
            Abi::I386 => "i386",
            Abi::X32 => "x32",
            Abi::Aarch64 => "aarch64",
        }
    }
}

/// One thing that happened, stamped with when and by whom.
#[derive(Clone, Debug)]
pub struct Event {
    /// When its line is due: a call's end, or the tick that reports it pending. Events leave the engine in this order.
    pub time: Time,
    /// The CPU that reported it.
    pub cpu: u32,
    pub task: TaskId,
    /// The task's name at that moment; `None` when it was never seen.
    pub comm: Option<Comm>,
    pub what: What,
}

/// A task's name: at most 15 bytes, not necessarily UTF-8, shared because every event carries one.
pub type Comm = Arc<[u8]>;

/// The kinds of event.
#[derive(Clone, Debug)]
pub enum What {
    /// A syscall that is over, or of which no more will be seen.
    Call(Box<Call>),
    /// A syscall that is still in flight; a later `Call` with the same id completes it.
    Pending(Box<Call>),
    /// Calls of the task that are over and were summed up; none of them is told otherwise.
    Tally(Box<Tally>),
    /// A tracepoint's or probe's record, raw; `event` names its format in the session's event table.
    /// `caller`: where a program's function returned to, if this is a probe of that.
    Tracepoint { event: EventIndex, raw: Box<[u8]>, stack: Option<Arc<Stack>>, caller: Option<Caller> },
    /// A page fault.
    Fault(Fault),
    /// A signal that the task is given, or that was sent to it and ends it or is ignored.
    Signal(Box<Signal>),
    /// A task was made.
    Fork { child: TaskId, flags: Option<u64> },
    /// A program was started in this task; `old_tid` differs from the task's tid when a thread other than the leader did it.
    Exec { path: Box<[u8]>, old_tid: i32 },
    /// The task is gone.
    Exit(TaskEnd),
    /// Records were dropped by the kernel between the previous record of this CPU's ring and this time.
    Lost(Loss),
}

impl What {
    /// Where it happened, if that was asked for.
    pub fn stack(&self) -> Option<&Stack> {
        match self {
            What::Call(call) | What::Pending(call) => call.stack.as_deref(),
            What::Tracepoint { stack, .. } | What::Fault(Fault { stack, .. }) => stack.as_deref(),
            _ => None,
        }
    }

    /// Where a program's function returned to, if it says that.
    pub fn caller(&self) -> Option<&Caller> {
        match self {
            What::Tracepoint { caller, .. } => caller.as_ref(),
            _ => None,
        }
    }

    /// How many calls it is the end of.
    pub fn calls(&self) -> u64 {
        match self {
            What::Call(_) => 1,
            What::Tally(tally) => tally.calls(),
            _ => 0,
        }
    }
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// exit(2) or exit_group(2) with this status (0..=255).
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// Not seen.
    Unknown,
    /// Not at all: it executed a program with more rights than it had (set-user-ID and its like), and there the kernel ends what watches a task alone.
    NotTraced,
}

/// Records that the kernel could not store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// How many records (not calls), if the kernel says it.
    pub records: Option<u64>,
    /// The time of the last record of the same ring before the gap, if there was one.
    pub after: Option<Time>,
}

/// A page fault (PERF_COUNT_SW_PAGE_FAULTS_MIN and _MAJ).
#[derive(Clone, Debug)]
pub struct Fault {
    pub major: bool,
    /// The instruction that faulted.
    pub ip: u64,
    /// The address it touched.
    pub address: u64,
    pub ip_at: Option<MapRef>,
    pub address_at: Option<MapRef>,
    pub stack: Option<Arc<Stack>>,
}

/// Where a function of a program was called, as far as the process's memory is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub place: MapRef,
    /// The same for whoever knows names.
    pub frame: Frame,
}

/// A place in a mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRef {
    pub path: Arc<[u8]>,
    pub offset: u64,
    pub executable: bool,
}

/// Which file: its device's numbers, major and minor, its inode's, and how often that was given anew (0 where it is not known). All zero is none (memory of the process alone, the vdso).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct FileId {
    pub device: (u32, u32),
    pub inode: u64,
    pub generation: u64,
}

/// The index of an armed event in the session's event table ([`crate::session::EventTable`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct EventIndex(pub u16);

/// What identifies a call within a session: one thread is in one call at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    pub tid: i32,
    /// When it was entered; when it returned, if the entry was not seen.
    pub start: Time,
}

/// The place of the return in [`Call::ids`].
pub const ID_RETURNED: u8 = 6;

/// One syscall, from either engine.
#[derive(Clone, Debug)]
pub struct Call {
    pub id: CallId,
    pub abi: Abi,
    /// The number as the ABI has it (x32's without its bit 30). Negative numbers occur: a program may ask for syscall(-1).
    pub nr: i64,
    pub entry: Entry,
    pub exit: Exit,
    /// The argument registers; `None` when the entry was not seen and the engine cannot tell them from the exit.
    pub args: Option<[u64; 6]>,
    /// What was copied of the caller's memory.
    pub pieces: SmallVec<[Piece; 2]>,
    /// The bytes the pieces point into.
    pub payload: Vec<u8>,
    /// What the descriptors in arguments and return were, at the call.
    pub files: SmallVec<[CallFile; 2]>,
    /// Records lost since the previous call of this task, where the engine can tell; zero otherwise.
    pub lost_before: u64,
    /// It was shown as pending before.
    pub shown_pending: bool,
    /// Which tasks the numbers in its arguments and its return mean.
    pub numbers: Numbers,
    /// Arguments (by their place; [`ID_RETURNED`] is the return) that are users or groups of another user namespace than the
    /// first, and what these are in the first (user_namespaces(7)), as far as that is known.
    pub ids: Vec<(u8, u32)>,
    /// Where it was made from, if that was asked for and came with its record.
    pub stack: Option<Arc<Stack>>,
}

/// How much of a call's beginning is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Seen,
    /// There was none, as is normal: a seccomp answer, an exec by a thread other than the leader, a call already running at the start.
    Unseen,
    /// A gap in the stream may have swallowed it.
    Lost,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It returned `ret` at `at`.
    Returned { at: Time, ret: i64 },
    /// It does not return: exit, exit_group, or the task was killed inside it.
    Never,
    /// It is still in flight.
    Pending,
    /// A gap in the stream may have swallowed the exit, or the next call of the task came first.
    Unseen,
}

impl Call {
    /// Nanoseconds between entry and exit, only when both were seen.
    pub fn duration(&self) -> Option<u64> {
        match (self.entry, self.exit) {
            (Entry::Seen, Exit::Returned { at, .. }) => Some(at.since(self.id.start)),
            _ => None,
        }
    }

    /// What it returned, if it did.
    pub fn ret(&self) -> Option<i64> {
        match self.exit {
            Exit::Returned { ret, .. } => Some(ret),
            _ => None,
        }
    }

    /// The errno, when it returned one (-4095..=-1).
    pub fn errno(&self) -> Option<i32> {
        self.ret().filter(|ret| (-4095..0).contains(ret)).map(|ret| -ret as i32)
    }

    /// What the user or group in this place is in the first user namespace, if it is another number there.
    pub fn id_here(&self, place: u8) -> Option<u32> {
        self.ids.iter().find(|(of, _)| *of == place).map(|(_, here)| *here)
    }

    /// What the descriptor in this place was, if it is known.
    pub fn file(&self, place: FdPlace) -> Option<&File> {
        self.files.iter().find(|f| f.place == place).map(|f| &f.file)
    }

    /// The bytes of a piece.
    pub fn bytes(&self, piece: &Piece) -> &[u8] {
        self.payload.get(piece.start as usize..(piece.start + piece.len) as usize).unwrap_or_default()
    }

    /// The first piece copied for this argument.
    pub fn piece(&self, arg: usize) -> Option<&Piece> {
        self.pieces.iter().find(|p| usize::from(p.arg) == arg)
    }
}

/// A copy of some of the caller's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which argument asked for it (0..=5).
    pub arg: u8,
    pub when: When,
    /// Where it was read.
    pub address: u64,
    /// How many bytes the call names, which may be more than were copied.
    pub wanted: u64,
    /// Where its bytes begin in the call's payload, and how many there are.
    pub start: u32,
    pub len: u32,
    pub state: PieceState,
}

/// When a piece was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Or in the course of the call by the kernel itself, whose own copy it is.
    Entry,
    Exit,
    /// It could not be read at entry, and was read again at exit.
    Retry,
}

/// How a piece's reading went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceState {
    /// All that the call names is there.
    Ok,
    /// A bound cut it; what is there is right.
    Cut,
    /// A bound cut it and unprintable bytes were replaced by dots (the strings of `syscalls:` records of kernels from 6.19).
    Altered { cut: bool },
    /// It could not be read: show the address.
    Fault,
}

/// Where in a call a descriptor stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdPlace {
    Arg(u8),
    /// In the memory that an argument points to, by its number.
    Inside {
        arg: u8,
        fd: i32,
    },
    Return,
}

/// What one descriptor of a call was.
#[derive(Clone, Debug)]
pub struct CallFile {
    pub place: FdPlace,
    pub file: File,
}
