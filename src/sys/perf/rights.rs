//! The tasks that an event follows, and with whose rights it is opened.
//!
//! Events that record what tasks do are opened with the caller's own rights, even if rtrace is lent more
//! ([`file_capabilities`]). The kernel then checks whether the caller may trace a task while it opens the event on it,
//! and no program can start in between: both hold `exec_update_lock` (perf_event_open() in kernel/events/core.c,
//! begin_new_exec() in fs/exec.c). When the task later executes a program with more rights, the kernel removes the
//! event. A check of rtrace's own would be about another moment, and maybe about another task.

use super::{Attr, Counts};
use crate::sys::file_capabilities;
use std::os::fd::BorrowedFd;

/// The tasks that an event follows.
#[derive(Clone, Copy, Debug)]
pub enum On<'a> {
    /// One task.
    Task(i32),
    /// The process that rtrace created for the command and that executes it only later. Until then it runs rtrace's
    /// own code and has rtrace's rights, so a caller who is lent these could not trace it.
    Command(i32),
    /// All tasks.
    Everyone,
    /// The tasks of a cgroup, given by its directory.
    Cgroup(BorrowedFd<'a>),
}

/// Whose rights count when an event is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    /// The caller's.
    Own,
    /// Those that rtrace is lent as well.
    Lent,
}

impl Rights {
    /// Returns the rights for an event. The lent ones are for events that record nothing by themselves, and for the
    /// command, whose events the kernel removes if it gets more rights than the caller has.
    pub(super) fn of(attr: &Attr, on: On) -> Rights {
        match on {
            On::Command(_) => Rights::Lent,
            On::Everyone if attr.counts == Counts::BpfOutput => Rights::Lent,
            On::Task(_) | On::Everyone | On::Cgroup(_) => Rights::Own,
        }
    }

    /// Calls a function with these rights.
    pub(super) fn during<T>(self, call: impl FnOnce() -> T) -> T {
        match self {
            Rights::Own => call(),
            Rights::Lent => file_capabilities::with_raised(call),
        }
    }
}
