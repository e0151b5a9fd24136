//! What was armed and on which machine: all that is needed to read a stream's records, live or from a file.

pub mod whom;

pub use whom::Whom;

use crate::event::{Abi, EventIndex, Time};
use crate::kernel::format::Format;
use rustc_hash::FxHashMap;

/// The context of a stream.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Session {
    /// When tracing began: what relative time stamps count from until there is a first event.
    pub started: Time,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC at the start, nanoseconds: for wall-clock stamps.
    pub realtime_offset: i64,
    /// The machine's own ABI.
    pub abi: Abi,
    /// `uname -r`.
    pub release: String,
    pub events: EventTable,
    /// Whom rtrace followed: only these tasks' records are in the stream, and inherited ones.
    pub scope: Scope,
    /// The side band is everybody's: only records of these processes and of what they make are about tasks that are followed.
    #[serde(default)]
    pub processes: Option<Vec<i32>>,
    /// Every call that may change a descriptor table is in the stream, so file names of descriptors can be followed.
    pub fds_complete: bool,
    /// The same of calls that may put new tasks into another pid namespace (clone's own flags come with [`Role::NewTask`]).
    #[serde(default)]
    pub namespaces_complete: bool,
    /// What the user calls syscalls (`name=` of an item), by the place of their row in [`crate::beauty::tables::SYSCALLS`].
    pub names: FxHashMap<u16, String>,
    /// Tasks whose records are rtrace's own or its output's reader's: they are dropped.
    pub excluded: Vec<i32>,
    /// No stack is shown with more frames.
    pub frames_max: FramesMax,
    /// Bytes of user memory at most that the kernel copies into records of `syscalls:` events.
    pub copied_bytes: u32,
    /// rtrace ran in the initial cgroup namespace, so the kernel's paths of cgroups are those that it read in /proc.
    #[serde(default)]
    pub cgroups_from_root: bool,
    /// Otherwise: the cgroups that were there at the start, by their numbers, with the paths that /proc has for them in rtrace's cgroup namespace.
    #[serde(default)]
    pub cgroups: Vec<(u64, Vec<u8>)>,
    /// The events are a cgroup's, of which the kernel counts some that it does not write ([`crate::syscall::ledger::Ledger::count_unwritten`]).
    #[serde(default)]
    pub of_cgroup: bool,
    /// rtrace ran in another pid namespace than the first. Records say who wrote them by rtrace's own numbers, but the
    /// numbers of tasks in the fields of tracepoints are the first namespace's.
    #[serde(default)]
    pub fields_have_other_numbers: bool,
}

/// How many frames of a stack are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FramesMax {
    /// `--max-stack`
    pub general: Option<u16>,
    /// `max-stack=` of the items that select a syscall, by the place of its row.
    pub rows: FxHashMap<u16, u16>,
}

impl FramesMax {
    /// Of a call with this row.
    pub fn of_row(&self, row: Option<u16>) -> Option<u16> {
        row.and_then(|row| self.rows.get(&row)).copied().or(self.general)
    }

    /// Of an event with these terms.
    pub fn of_event(&self, terms: &Terms) -> Option<u16> {
        terms.max_stack.or(self.general)
    }
}

/// Whom a stream is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Scope {
    /// A command made by rtrace, and all its descendants.
    #[default]
    Command,
    /// Tasks that were there before, and (unless told otherwise) what they make.
    Tasks,
    /// The whole machine, or some of its CPUs, or a cgroup.
    System,
}

/// The armed events: how to read the records of each.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct EventTable {
    pub events: Vec<EventSpec>,
    /// From the kernel's identifiers in the records to the events; one event has many (one a CPU and target).
    pub ids: FxHashMap<u64, EventIndex>,
    /// From the `common_type` of records that come by a tracefs instance to the events.
    #[serde(default)]
    pub types: FxHashMap<u16, EventIndex>,
}

/// One armed event.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct EventSpec {
    /// `subsystem:name`, or the software event's name.
    pub name: String,
    pub role: Role,
    /// PERF_SAMPLE_* bits: the layout of its samples; none of what comes by a tracefs instance ([`EventSpec::is_by_instance`]).
    pub sample_type: u64,
    /// The tracepoint's format file, parsed; `None` for software events.
    pub format: Option<Format>,
    /// It is there because the user asked to see it; otherwise rtrace needs it to understand the others.
    pub shown: bool,
    /// The item's terms.
    pub terms: Terms,
}

impl EventSpec {
    /// perf gives no samples of it: its records are read from a tracefs instance ([`crate::source::instance`]).
    pub fn is_by_instance(&self) -> bool {
        self.sample_type == 0
    }
}

/// What an event is to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Role {
    /// `raw_syscalls:sys_enter` and `sys_exit`.
    RawEnter,
    RawExit,
    /// `syscalls:sys_enter_X` and `sys_exit_X`, with the row in [`crate::beauty::tables::SYSCALLS`].
    Enter {
        syscall: u16,
    },
    Exit {
        syscall: u16,
    },
    /// Whole calls, and how tasks end, written by rtrace's BPF programs ([`crate::bpf::record`]).
    BpfCall,
    /// What a program of the user's own writes: its records come from whatever runs, and are of the traced tasks or left out.
    Output,
    /// `signal:signal_generate`, of all tasks, because who sends may be anybody.
    SignalGenerate,
    /// `sched:sched_process_exec`, `task:task_newtask`, `signal:signal_deliver`, `sched:sched_process_exit`.
    ProcessExec,
    NewTask,
    SignalDeliver,
    ProcessExit,
    /// `cgroup:cgroup_attach_task`: somebody, traced or not, moved a task into another cgroup.
    CgroupMove,
    /// A probe in the kernel's function that copies path names from user space: its records have names of calls that are under way.
    PathName,
    /// `sched:sched_stat_runtime`.
    StatRuntime,
    /// The software events.
    FaultMajor,
    FaultMinor,
    /// PERF_COUNT_SW_DUMMY with task, comm and mmap records.
    SideBand,
    /// Any other tracepoint or probe.
    Tracepoint,
}

impl Role {
    /// Its records begin or end calls.
    pub fn is_of_syscalls(self) -> bool {
        matches!(self, Role::RawEnter | Role::RawExit | Role::Enter { .. } | Role::Exit { .. } | Role::BpfCall)
    }
}

/// Terms of an item of `-e`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Terms {
    /// `nr=N`: at most so many of this event are printed.
    pub nr: Option<u64>,
    /// `max-stack=N`
    pub max_stack: Option<u16>,
    /// `call-graph=fp|dwarf[:SIZE]`
    pub call_graph: Option<CallGraph>,
    pub kernel_stack: bool,
    /// `name=X`: printed instead of the event's own.
    pub name: Option<String>,
    pub no_inherit: bool,
    /// The function that a probe is on, as far as its name is known.
    pub function: Option<String>,
}

/// How user stacks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum CallGraph {
    FramePointer,
    /// Bytes of stack that are dumped at most.
    Dwarf {
        size: Option<u32>,
    },
}

impl EventTable {
    pub fn get(&self, index: EventIndex) -> Option<&EventSpec> {
        self.events.get(usize::from(index.0))
    }

    /// The first event with this role.
    pub fn find(&self, role: Role) -> Option<EventIndex> {
        self.events.iter().position(|e| e.role == role).map(|i| EventIndex(i as u16))
    }
}
