//! Calls of which only numbers are shown: many of them in one event.

use super::{Abi, Comm, TaskId};

/// Calls that were entered and have returned, in their order, for sinks that show no more of them than their number,
/// durations and results. Any other call is a [`super::Call`] event of its own.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The tasks of the calls with their comms, in the order of their first calls here.
    pub tasks: Vec<(TaskId, Option<Comm>)>,
    /// The calls.
    pub calls: Vec<TalliedCall>,
}

/// A call of which only numbers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TalliedCall {
    /// The index of its task in [`Tally::tasks`].
    pub task: u16,
    /// The errno that it returned; 0 if it did not fail.
    pub errno: u16,
    /// The row of its syscall in [`crate::beauty::tables::SYSCALLS`].
    pub row: u16,
    /// Its ABI.
    pub abi: Abi,
    /// Its number in this ABI (x32's without bit 30).
    pub nr: u32,
    /// The nanoseconds between its entry and its exit.
    pub duration: u64,
}
