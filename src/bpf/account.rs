//! The counters of the BPF programs.

use std::sync::atomic::{AtomicU64, Ordering};

/// The size of `struct account` in words of 8 bytes.
pub const WORDS: usize = 12;

/// The counters of calls: the counterpart of `struct account`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Traced calls, counted when they begin.
    pub calls: u64,
    /// Lost records of calls.
    pub calls_lost: u64,
    /// Lost records of ends of tasks and of signals.
    pub ends_lost: u64,
    /// Tasks that could not be followed because the kernel had no memory for their state.
    pub tasks_lost: u64,
    /// Calls whose data was not copied because the kernel had no memory for the copy.
    pub scratch_lost: u64,
    /// Lost partial records of calls.
    pub parts_lost: u64,
    /// 32-bit programs, for whose calls the `syscalls:` events do not fire.
    pub compat: u64,
    /// Calls without a record, because a filter certainly excludes them.
    pub left_out: u64,
    /// Calls of tasks that are not the caller's own, where rtrace was lent its privileges.
    pub withheld: u64,
    /// Calls that `--inject` should have answered, but that were executed.
    pub unchanged: u64,
    /// Calls that satisfied the condition for a snapshot.
    pub matches: u64,
}

impl Account {
    /// Returns the sums of the counters of all CPUs.
    pub fn of_cpus(accounts: &[AtomicU64]) -> Account {
        let sum = |at: usize| accounts.iter().skip(at).step_by(WORDS).map(|word| word.load(Ordering::Relaxed)).sum();
        Account {
            calls: sum(0),
            calls_lost: sum(1),
            ends_lost: sum(2),
            tasks_lost: sum(3),
            scratch_lost: sum(4),
            parts_lost: sum(5),
            compat: sum(6),
            left_out: sum(7),
            withheld: sum(8),
            unchanged: sum(9),
            matches: sum(10),
        }
    }
}
