//! The armed events and the machine that they were armed on: all that is needed to read a stream's records, live or
//! from a file.

mod call_set;
pub mod targets;
pub mod zone;

pub use call_set::{CallSet, EventCalls};
pub use targets::Targets;
pub use zone::Zone;

use crate::event::{Abi, EventIndex, Time};
use crate::kernel::format::Format;
use rustc_hash::{FxHashMap, FxHashSet};

/// The context of a stream.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Session {
    /// The time at which tracing began. Relative time stamps count from it until there is a first event.
    pub started: Time,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC at the start, in nanoseconds, for wall-clock time stamps.
    pub realtime_offset: i64,
    /// The machine's time zone, for wall-clock time stamps; UTC if no local time is shown.
    pub zone: Zone,
    /// The machine's native ABI.
    pub abi: Abi,
    /// `uname -r`.
    pub release: String,
    /// The armed events, and how to read their records.
    pub events: EventTable,
    /// The scope of the trace: the stream has records of these tasks, and of tasks that inherit the events.
    pub scope: Scope,
    /// The processes whose side-band records are relevant, with their descendants, if the side band is opened
    /// system-wide; otherwise `None`.
    #[serde(default)]
    pub processes: Option<Vec<i32>>,
    /// The stream has every call that can change a descriptor table, so that the files of descriptors can be followed.
    pub fds_complete: bool,
    /// Signals are reported as events.
    pub signals: bool,
    /// The cgroup of each task is followed.
    pub follows_cgroups: bool,
    /// The stream has every call that can place new tasks in another pid namespace. (The flags of clone come with
    /// [`Role::NewTask`].)
    #[serde(default)]
    pub namespaces_complete: bool,
    /// The user's names for syscalls (`name=` of an item), by the name of the row.
    pub names: FxHashMap<String, String>,
    /// Tasks whose records are dropped: rtrace's own, and those of the process that reads its output.
    pub excluded: Vec<i32>,
    /// The paths of `--path`, as the traced machine named them when tracing began.
    #[serde(default)]
    pub paths: Vec<PathNames>,
    /// The maximum number of frames of a displayed stack.
    pub frames_max: FramesMax,
    /// The maximum number of bytes of user memory that the kernel copies into records of `syscalls:` events.
    pub copied_bytes: u32,
    /// rtrace ran in the initial cgroup namespace, so the kernel's paths of cgroups equal those in /proc.
    #[serde(default)]
    pub cgroups_from_root: bool,
    /// If rtrace did not: the cgroups that existed at the start, by id, with their /proc paths in rtrace's cgroup
    /// namespace.
    #[serde(default)]
    pub cgroups: Vec<(u64, Vec<u8>)>,
    /// The calls that complete tracepoints at their entry and exit.
    #[serde(default)]
    pub event_calls: EventCalls,
    /// Requests of io_uring that the stream has and the user did not ask for: their names without `io_uring:`. The
    /// kernel's events are of all requests.
    #[serde(default)]
    pub other_requests: Vec<String>,
    /// The calls that are changed (`--inject`).
    #[serde(default)]
    pub injected: InjectedCalls,
    /// The events are opened on a cgroup. The kernel then counts some hits that it does not write
    /// ([`crate::syscall::ledger::Ledger::count_unwritten`]).
    #[serde(default)]
    pub of_cgroup: bool,
    /// rtrace ran in another pid namespace than the initial one. Records identify the task that wrote them by rtrace's
    /// own numbers, but pids in the fields of tracepoints are numbers of the initial namespace.
    #[serde(default)]
    pub fields_have_other_numbers: bool,
}

/// The calls that are changed (`--inject`).
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct InjectedCalls {
    /// The calls about which the kernel asks a supervisor.
    pub supervised: FxHashSet<(Abi, u32)>,
    /// The calls that are answered with a value that would be taken for an error, or for another number of 32 bits.
    pub as_value: FxHashSet<(Abi, u32)>,
}

/// A path that the user wrote, and its other names on the traced machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PathNames {
    /// The path as the user wrote it, whether absolute or not. Calls may use it in this form.
    pub written: Vec<u8>,
    /// The absolute path, and the one without symbolic links.
    pub others: Vec<Vec<u8>>,
}

/// The maximum number of frames of a displayed stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FramesMax {
    /// `--max-stack`
    pub general: Option<u16>,
    /// `max-stack=` of the items that select a syscall, by the name of the row.
    pub calls: FxHashMap<String, u16>,
}

impl FramesMax {
    /// Returns the limit for an event with these terms.
    pub fn of_event(&self, terms: &Terms) -> Option<u16> {
        terms.max_stack.or(self.general)
    }
}

/// Which tasks are traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Scope {
    /// A command that rtrace starts, and all its descendants.
    #[default]
    Command,
    /// Tasks that existed before the trace, and their descendants unless inheritance is disabled.
    Tasks,
    /// The whole machine, some of its CPUs, or a cgroup.
    System,
}

/// The armed events, and how to read the records of each.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct EventTable {
    /// The events, each at the index that [`EventIndex`] has.
    pub events: Vec<EventSpec>,
    /// Maps the kernel's event ids in the records to the events. An event has one id for each CPU and target.
    pub ids: FxHashMap<u64, EventIndex>,
    /// Maps the `common_type` of records from a tracefs instance to the events.
    #[serde(default)]
    pub types: FxHashMap<u16, EventIndex>,
}

/// One armed event.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct EventSpec {
    /// `subsystem:name`, or the software event's name.
    pub name: String,
    /// What the records mean to the engine.
    pub role: Role,
    /// PERF_SAMPLE_* bits: the layout of its samples. 0 if the records come from a tracefs instance
    /// ([`EventSpec::is_by_instance`]).
    pub sample_type: u64,
    /// The tracepoint's parsed format file; `None` for software events.
    pub format: Option<Format>,
    /// The user asked to see the event. Otherwise rtrace needs its records to interpret others.
    pub shown: bool,
    /// The terms of the item of `-e`.
    pub terms: Terms,
}

impl EventSpec {
    /// Returns whether the event's records are read from a tracefs instance, because perf delivers no samples of it
    /// ([`crate::source::instance`]).
    pub fn is_by_instance(&self) -> bool {
        self.sample_type == 0
    }
}

/// The meaning of an event's records to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Role {
    /// `raw_syscalls:sys_enter`: the entries of all syscalls.
    RawEnter,
    /// `raw_syscalls:sys_exit`: the exits of all syscalls.
    RawExit,
    /// `syscalls:sys_enter_X`: the entries of one syscall.
    Enter,
    /// `syscalls:sys_exit_X`: the exits of one syscall.
    Exit,
    /// Paired records of calls, and records of how tasks ended, written by rtrace's BPF programs
    /// ([`crate::bpf::record`]).
    BpfCall,
    /// Records that the user's own BPF program writes. The program may run in any task; records of tasks that are not
    /// traced are dropped.
    Output,
    /// `signal:signal_generate` of all tasks, because any task may be the sender.
    SignalGenerate,
    /// `sched:sched_process_exec`: a task executed a program.
    ProcessExec,
    /// `task:task_newtask`: a task created another one, with the flags of clone(2).
    NewTask,
    /// `signal:signal_deliver`: the kernel is about to run a task's handler or default action.
    SignalDeliver,
    /// `sched:sched_process_exit`: a thread ends.
    ProcessExit,
    /// `cgroup:cgroup_attach_task`: a task, traced or not, moved a task to another cgroup.
    CgroupMove,
    /// A probe on the kernel's function that copies path names from user space. Its records have path names of calls
    /// that are in progress.
    PathName,
    /// `sched:sched_stat_runtime`.
    StatRuntime,
    /// PERF_COUNT_SW_PAGE_FAULTS_MAJ: page faults that needed I/O.
    FaultMajor,
    /// PERF_COUNT_SW_PAGE_FAULTS_MIN: page faults without I/O.
    FaultMinor,
    /// PERF_COUNT_SW_DUMMY with task, comm and mmap records.
    SideBand,
    /// `io_uring:io_uring_submit_req` and `io_uring_req_failed`: a request of io_uring was submitted. In the second
    /// case, the kernel found it invalid.
    RequestSubmitted,
    /// `io_uring:io_uring_complete` and `io_uring_cqe_overflow`: a request of io_uring completed.
    RequestCompleted,
    /// `io_uring:io_uring_fail_link`: a request of io_uring is canceled, because a request before it in a chain failed.
    RequestCanceled,
    /// Any other tracepoint or probe.
    Tracepoint,
}

impl Role {
    /// Returns whether the records begin calls, or requests that are shown as calls.
    pub fn begins_calls(self) -> bool {
        matches!(self, Role::RawEnter | Role::Enter | Role::BpfCall | Role::RequestSubmitted)
    }

    /// Returns whether the records are entries or exits of calls, or of requests that are shown as calls.
    pub fn records_calls(self) -> bool {
        matches!(self, Role::RawEnter | Role::RawExit | Role::Enter | Role::Exit | Role::BpfCall)
            || matches!(self, Role::RequestSubmitted | Role::RequestCompleted | Role::RequestCanceled)
    }
}

/// The terms of an item of `-e`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Terms {
    /// `nr=N`: the maximum number of printed events.
    pub nr: Option<u64>,
    /// `max-stack=N`
    pub max_stack: Option<u16>,
    /// `call-graph=fp|dwarf[:SIZE]`
    pub call_graph: Option<CallGraph>,
    /// `kernel-stack`: the kernel records its own call chain with each event.
    pub kernel_stack: bool,
    /// `name=X`: the name that is printed instead of the event's own.
    pub name: Option<String>,
    /// `no-inherit`: the tasks that the targets create are not traced by this event.
    pub no_inherit: bool,
    /// The function that a probe is placed on, if its name is known.
    pub function: Option<String>,
    /// The index of the item of the request that the event was created for: a probe, or an output of a BPF program. The
    /// request is the one for which the events were armed.
    pub created_for: Option<u16>,
}

/// How user call chains are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum CallGraph {
    /// The kernel follows the chain of frame pointers (`fp`).
    FramePointer,
    /// The kernel copies the stack, and rtrace unwinds the copy (`dwarf`).
    Dwarf {
        /// The maximum number of stack bytes that are copied; `None` for the default.
        size: Option<u32>,
    },
}

impl EventTable {
    /// Returns the event with this index; `None` if the table, which may come from a file, has no such event.
    pub fn get(&self, index: EventIndex) -> Option<&EventSpec> {
        self.events.get(usize::from(index.0))
    }

    /// Returns the first event with this role.
    pub fn find(&self, role: Role) -> Option<EventIndex> {
        self.events.iter().position(|e| e.role == role).map(|i| EventIndex(i as u16))
    }
}
