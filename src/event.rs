//! Events: the engine's output, in the terms that all sinks share.
//!
//! [`Event`] connects the engine (rings, pairing, task state) with the sinks (text, summary, ...). It owns its bytes,
//! so that an event can wait for a later fact, such as a file name, without holding the chunk that its record came in.
//! Nothing here renders text or reads the system. What the engine does not know is [`None`] or `Unknown`; it never
//! guesses.

mod aggregate;
mod call;
mod file;
pub mod frame;
mod notice;
mod pid_translation;
mod signal;
mod stack;
pub mod synthesized;
mod tally;
pub mod verdict;

pub use aggregate::{Aggregate, Sum, Times};
pub use call::{Call, CallFile, CallId, EntryState, ExitState, FdPlace, ID_RETURNED, Injected, Piece, PieceState, PieceTime};
pub use file::{DeviceKind, File, Port, Socket, SocketAddresses, UnixName};
pub use notice::{Notice, NoticeCode};
pub use pid_translation::PidTranslation;
pub use signal::{Disposition, SigInfo, Signal};
pub use stack::Stack;
pub use synthesized::Synthesized;
pub use tally::{TalliedCall, Tally};
pub use verdict::Verdict;

use frame::Frame;
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
    /// 64-bit calls of x86-64 (`syscall`).
    #[default]
    X86_64 = 0,
    /// 32-bit calls on x86 (`int 0x80`, `sysenter`), also when a 64-bit program makes them.
    I386 = 1,
    /// Calls of x86-64 with bit 30 set in their number: 64-bit registers, 32-bit pointers.
    X32 = 2,
    /// 64-bit calls of arm64 (`svc #0`).
    Aarch64 = 3,
}

impl Abi {
    /// All ABIs, each at the index `Abi as usize`.
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

/// One event of one task, with its time and CPU. It is moved several times on its way, so what makes it large is boxed.
#[derive(Clone, Debug)]
pub struct Event {
    /// The time of the event's line: the end of a call, or the tick at which a call is reported as pending. Events
    /// leave the engine in this order.
    pub time: Time,
    /// The CPU whose ring held the record.
    pub cpu: u32,
    /// The task that the event happened to; zero if the event has none.
    pub task: TaskId,
    /// The task's comm at that time; `None` if no record or /proc file has named the task.
    pub comm: Option<Comm>,
    /// What happened.
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
    /// Completed calls of several tasks, of which only numbers are shown. None of these calls has an event of its own.
    Tally(Box<Tally>),
    /// A tracepoint or probe.
    Tracepoint {
        /// The event, whose format is in the session's event table.
        event: EventIndex,
        /// The raw bytes of the record, from `common_type` on.
        raw: Box<[u8]>,
        /// The call chain, if one was requested and recorded.
        stack: Option<Arc<Stack>>,
        /// The place that the function returned to, for a return probe in a program.
        caller: Option<Box<Caller>>,
        /// The call at whose entry or exit the tracepoint is, as far as it is known at that moment.
        call: Option<Arc<Call>>,
    },
    /// A page fault.
    Fault(Box<Fault>),
    /// A signal that is delivered to the task, or that was sent to the task and kills it or is ignored.
    Signal(Box<Signal>),
    /// The task created a child task.
    Fork {
        /// The new task.
        child: TaskId,
        /// The flags of clone(2) (CLONE_*), if `task:task_newtask` was traced.
        flags: Option<u64>,
    },
    /// The task executed a program.
    Exec {
        /// The program's path as the kernel has it; not escaped.
        path: Box<[u8]>,
        /// The thread that called execve(2). It differs from the task's tid if it was not the leader of its process.
        old_tid: i32,
    },
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
            EventKind::Tracepoint { stack, .. } => stack.as_deref(),
            EventKind::Fault(fault) => fault.stack.as_deref(),
            EventKind::Signal(signal) => signal.stack.as_deref(),
            _ => None,
        }
    }

    /// Returns the place that a program's function returned to, if the event is a return probe that recorded it.
    pub fn caller(&self) -> Option<&Caller> {
        match self {
            EventKind::Tracepoint { caller, .. } => caller.as_deref(),
            _ => None,
        }
    }

    /// Returns the number of calls that this event completes.
    pub fn calls(&self) -> u64 {
        match self {
            EventKind::Call(_) => 1,
            EventKind::Aggregate(aggregate) => aggregate.calls(),
            EventKind::Tally(tally) => tally.calls.len() as u64,
            _ => 0,
        }
    }
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// The task called exit(2) or exit_group(2) with this status (0..=255).
    Exited(i32),
    /// A signal killed the task.
    Killed {
        /// The number of the signal.
        signal: i32,
        /// Whether the kernel wrote a core dump; `None` if that is not known.
        core_dumped: Option<bool>,
    },
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
    /// Whether the kernel had to do I/O for the page.
    pub major: bool,
    /// The address of the instruction that faulted.
    pub ip: u64,
    /// The address that the instruction accessed.
    pub address: u64,
    /// The mapped file at the instruction, if the process's mappings are known.
    pub ip_at: Option<MapRef>,
    /// The mapped file at the address, if the process's mappings are known.
    pub address_at: Option<MapRef>,
    /// The call chain, if one was requested and recorded.
    pub stack: Option<Arc<Stack>>,
}

/// The place that called a function of a program, as far as the process's mappings are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The mapped file that contains the return address.
    pub place: MapRef,
    /// The same place as a frame, for sinks that look up symbols.
    pub frame: Frame,
}

/// A position in a mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRef {
    /// The path as the kernel reported it when the file was mapped; not escaped.
    pub path: Arc<[u8]>,
    /// The position in the file, in bytes.
    pub offset: u64,
    /// Whether the mapping may be executed.
    pub executable: bool,
}

/// The identity of a file: major and minor number of its device, its inode number, and the inode's generation (0 if it
/// is not known). All zero stands for no file (anonymous memory, the vdso).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct FileId {
    /// The major and the minor number of the device.
    pub device: (u32, u32),
    /// The inode number.
    pub inode: u64,
    /// The inode's generation, which differs if a file system uses an inode number again.
    pub generation: u64,
}

/// The index of an armed event in the session's event table ([`crate::session::EventTable`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct EventIndex(pub u16);
