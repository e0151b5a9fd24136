//! What the kernel side counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// As many words of 8 bytes has `struct account`.
pub const WORDS: usize = 9;

/// The kernel's account of calls: the mirror of `struct account`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Calls that were wanted, counted when they began.
    pub calls: u64,
    /// Their records that found no room.
    pub calls_lost: u64,
    /// Ends of tasks, and signals, that found no room.
    pub ends_lost: u64,
    /// Tasks that could not be followed for want of memory.
    pub tasks_lost: u64,
    /// Calls whose memory could not be copied for want of memory.
    pub scratch_lost: u64,
    /// Records with more of the data of calls that found no room.
    pub parts_lost: u64,
    /// 32-bit programs whose calls the events of single syscalls do not see.
    pub compat: u64,
    /// Calls that were left out because it was certain that they are not to be shown.
    pub left_out: u64,
    /// Calls of tasks that are not the caller's alone, where rtrace was lent its privileges.
    pub withheld: u64,
}

impl Account {
    /// The sum of what was counted on each CPU.
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
        }
    }
}
