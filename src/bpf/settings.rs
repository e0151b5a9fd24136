//! What the programs are asked: which calls, of whom.

use crate::beauty::row::Syscall;
use crate::event::Abi;
use std::path::PathBuf;

/// `NR_COUNT`: numbers that have a plan in each ABI.
pub(super) const NR_COUNT: usize = 1024;

/// Whose calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Of tasks that are named when tracing begins, and of what they make.
    Tasks,
    Everyone,
    /// Of whoever is in this cgroup when it makes the call; a directory of the unified hierarchy.
    Cgroup(PathBuf),
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

/// What to trace, of whom.
#[derive(Clone, Debug)]
pub struct Settings {
    pub whose: Whose,
    /// No more tasks and processes than this will be named.
    pub seeds_max: u32,
    /// What a traced task makes is traced.
    pub inherit: bool,
    /// Tell how tasks end.
    pub ends: bool,
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
}
