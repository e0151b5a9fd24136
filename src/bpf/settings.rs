//! The settings of the BPF programs: which calls of which tasks they trace.

use super::effects::Effects;
use super::filter::Clause;
use super::stacks::Stacks;
use crate::beauty::row::Syscall;
use crate::event::Abi;
use std::path::PathBuf;

/// `NR_COUNT`: the number of syscall numbers in each ABI that have a plan.
pub(super) const NR_COUNT: usize = 1024;

/// The tasks whose calls are traced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TaskScope {
    /// The tasks that are named when tracing begins, and those that they create.
    #[default]
    Tasks,
    Everyone,
    /// Tasks that are in this cgroup when they make the call. The path is a directory of the unified hierarchy
    /// (cgroup2).
    Cgroup(PathBuf),
    /// Tasks whose real or effective user is this one when they make the call.
    User(u32),
}

/// A task, or a process with all its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    Task(i32),
    Process(i32),
}

/// `enum mode`: how the programs treat a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    Traced = 1,
    /// rtrace's child before it executes the command.
    SetUp = 2,
    Excluded = 3,
}

/// The tracepoints that the programs on calls are attached to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hooks {
    /// The tracepoints of all calls.
    #[default]
    All,
    /// The `syscalls:` events of each traced syscall, which fire only for calls of the machine's native ABI.
    Own {
        events: Vec<OwnEvents>,
        /// An online CPU.
        cpu: u32,
    },
}

/// The ids of a syscall's two `syscalls:` events, for perf_event_open(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnEvents {
    /// The id of `syscalls:sys_enter_NAME`.
    pub enter: u64,
    /// The id of `syscalls:sys_exit_NAME`.
    pub exit: u64,
}

/// The calls whose entries have records of their own, with the memory and files of that moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// The indices of their rows.
    pub rows: Vec<u16>,
    /// Whether calls without a row are among them.
    pub nameless: bool,
}

impl Entries {
    /// Returns whether there is any such call.
    pub fn is_any(&self) -> bool {
        self.nameless || !self.rows.is_empty()
    }

    /// Returns whether the entries of calls with this row have records; `None` stands for calls without a row.
    #[cfg(feature = "bpf")]
    pub(super) fn contains(&self, row: Option<u16>) -> bool {
        row.map_or(self.nameless, |row| self.rows.contains(&row))
    }
}

/// The requests of io_uring that concern the programs, by IORING_OP_*.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// The requests whose arguments are read.
    pub opcodes: Vec<u8>,
    /// The requests that are only counted. There are none if the arguments of any are read.
    pub counted: Vec<u8>,
    /// The kernel's tracepoint of submissions has the name that it had before Linux 6.3 (`io_uring_submit_sqe`).
    pub old_name: bool,
}

/// The settings. By default, nothing is traced.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The tasks whose calls are traced.
    pub scope: TaskScope,
    /// The tracepoints by which calls are traced.
    pub hooks: Hooks,
    /// The maximum number of tasks and processes that will be named.
    pub seeds_max: u32,
    /// Whether existing processes are traced.
    pub attaches: bool,
    /// Whether tasks that a traced task creates are traced too.
    pub inherit: bool,
    /// Whether ends of tasks are recorded.
    pub ends: bool,
    /// Whether signals are recorded.
    pub signals: bool,
    /// Nanoseconds after which a call in flight is listed as pending.
    pub pending_after: u32,
    /// The traced calls.
    pub calls: Vec<&'static Syscall>,
    /// The traced calls that have a name but no row.
    pub others: Vec<(Abi, u32)>,
    /// Whether calls with neither a row nor a name are traced.
    pub unknown: bool,
    /// The maximum number of bytes that are copied of strings other than paths, and of buffers.
    pub string_limit: usize,
    /// Whether strings that are usually only counted (an environment) are copied.
    pub full: bool,
    /// The maximum number of bytes that are copied of netlink messages and of control messages.
    pub struct_limit: usize,
    /// Whether the path of the current directory is recorded for AT_FDCWD.
    pub directories: bool,
    /// Whether calls are aggregated in the kernel ([`crate::event::Aggregate`]). The memory that their arguments point
    /// to is not copied then.
    pub sums: bool,
    /// The size in bytes of the buffer for aggregates of ended tasks: a power of two, at least a page.
    pub ended_tasks_bytes: u32,
    /// Whether calls that succeed are only counted.
    pub failures: bool,
    /// Calls that take fewer nanoseconds than this are only counted.
    pub min_duration: Option<u64>,
    /// The stacks that the records have.
    pub stacks: Stacks,
    /// The user and group of the caller who was lent rtrace's privileges ([`crate::sys::file_capabilities`]): only the
    /// caller's own tasks are traced.
    pub own_only: Option<(u32, u32)>,
    /// The calls whose entries have records of their own.
    pub entries: Entries,
    /// Calls without an entry may have been answered by the supervisor of `--inject`: a further program begins them at
    /// their exit.
    pub answered: bool,
    /// The supervisor may want tasks to get signals.
    pub sends_signals: bool,
    /// What the programs themselves do to calls (`--inject`).
    pub effects: Option<Effects>,
    /// The requests of io_uring whose arguments are read, or that are counted.
    pub requests: Requests,
    /// Conditions on calls, by the index of the row and the ABI. Calls that certainly do not satisfy them are only
    /// counted.
    pub filters: Vec<(u16, Abi, Vec<Clause>)>,
    /// Where rings are overwritten: after how many bytes of a CPU's ring files are named again, a power of two.
    pub epoch_bytes: Option<u32>,
    /// The conditions for snapshots, by the index of the row and the ABI. A call that satisfies all clauses is
    /// reported.
    pub conditions: Vec<(u16, Abi, Vec<Clause>)>,
}
