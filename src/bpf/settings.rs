//! What the programs are asked: which calls, of whom.

use super::filter::Clause;
use super::stacks::Stacks;
use crate::beauty::row::Syscall;
use crate::event::Abi;
use std::path::PathBuf;

/// `NR_COUNT`: numbers that have a plan in each ABI.
pub(super) const NR_COUNT: usize = 1024;

/// Whose calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Whose {
    /// Of tasks that are named when tracing begins, and of what they make.
    #[default]
    Tasks,
    Everyone,
    /// Of whoever is in this cgroup when it makes the call; a directory of the unified hierarchy.
    Cgroup(PathBuf),
    /// Of whoever has this user, really or effectively, when it makes the call.
    User(u32),
}

/// A task, or a process and all threads that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    Task(i32),
    Process(i32),
}

/// What a task is to the programs: `enum mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    Traced = 1,
    /// rtrace's child before it executes the command.
    SetUp = 2,
    Excluded = 3,
}

/// What the programs on calls are attached to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hooks {
    /// The tracepoints of all calls.
    #[default]
    All,
    /// The `syscalls:` events of each syscall, which only calls of the machine's own ABI have.
    Own {
        events: Vec<OwnEvents>,
        /// One that is online.
        cpu: u32,
    },
}

/// The numbers of a syscall's two `syscalls:` events, for perf_event_open(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnEvents {
    pub enter: u64,
    pub exit: u64,
}

/// What to trace, of whom; nothing of nobody, if nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub whose: Whose,
    pub hooks: Hooks,
    /// No more tasks and processes than this will be named.
    pub seeds_max: u32,
    /// Processes are named that are there already.
    pub attaches: bool,
    /// What a traced task makes is traced.
    pub inherit: bool,
    /// Tell how tasks end.
    pub ends: bool,
    /// Tell of signals.
    pub signals: bool,
    /// A call in flight for longer is listed, nanoseconds.
    pub pending_after: u32,
    /// The calls that are wanted.
    pub calls: Vec<&'static Syscall>,
    /// Those that have no row but a name.
    pub others: Vec<(Abi, u32)>,
    /// And those that have neither.
    pub unknown: bool,
    /// Strings other than paths, and counted bytes, are copied up to here.
    pub string_limit: usize,
    /// Calls are summed up in the kernel ([`crate::event::Tally`]); nothing is copied of what they name.
    pub sums: bool,
    /// Room for sums of tasks that have ended, until they are read: a power of two, at least a page.
    pub kept_bytes: u32,
    /// Calls that do not fail are counted and left out.
    pub failures: bool,
    /// The same of calls that take less than so many nanoseconds.
    pub least: Option<u64>,
    /// What of the stack comes with their records.
    pub stacks: Stacks,
    /// The user and the group of whoever was lent rtrace's privileges ([`crate::sys::lent`]): only what is his alone is
    /// shown.
    pub own_only: Option<(u32, u32)>,
    /// What calls must fulfil, by the place of their row and their ABI; the same of those that certainly do not.
    pub filters: Vec<(u16, Abi, Vec<Clause>)>,
}
