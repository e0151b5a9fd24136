//! Stands in for the BPF programs in a build without the feature `bpf`.

use super::account::Account;
use super::in_flight::InFlight;
use super::settings::{Mode, Seed, Settings};
use crate::event::{Synthesized, Time};
use std::os::fd::BorrowedFd;

/// Returns false: this build cannot ask the kernel for the programs of other processes.
pub fn is_of_rtrace(_: u32) -> bool {
    false
}

/// Returns false: this build has no programs.
pub fn may_be_interrupted() -> bool {
    false
}

/// Returns false: this build has no programs.
pub fn may_override() -> bool {
    false
}

/// The programs, which this build does not have.
#[derive(Debug)]
pub enum Programs {}

impl Programs {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub fn load(_: &Settings) -> anyhow::Result<Programs> {
        Err(anyhow::anyhow!("this rtrace was built without the BPF engine (cargo feature bpf)"))
    }

    /// Stands in for the descriptor of the task storage. There is no value of this type, so this method is never
    /// called, and neither are the following ones.
    pub fn tasks(&self) -> Option<i32> {
        match *self {}
    }

    /// Stands in for directing the records of one kind that are written on one CPU to an event.
    ///
    /// # Errors
    /// None.
    pub fn write_to(&self, _: u32, _: u32, _: BorrowedFd) -> anyhow::Result<()> {
        match *self {}
    }

    /// Stands in for directing the reports of calls that ask for a snapshot to an event.
    ///
    /// # Errors
    /// None.
    pub fn write_matches_to(&self, _: u32, _: BorrowedFd) -> anyhow::Result<()> {
        match *self {}
    }

    /// Stands in for the report of the next call that asks for a snapshot.
    pub fn report_next_match(&self) {
        match *self {}
    }

    /// Stands in for the attachment of the program that answers calls.
    ///
    /// # Errors
    /// None.
    pub fn begin_to_answer(&mut self) -> anyhow::Result<()> {
        match *self {}
    }

    /// Stands in for following the tasks that are named here, and those that they create.
    ///
    /// # Errors
    /// None.
    pub fn follow(&mut self, _: impl Iterator<Item = (Seed, Mode)>) -> anyhow::Result<()> {
        match *self {}
    }

    /// Stands in for the start of tracing, which returns the calls in flight at that time.
    ///
    /// # Errors
    /// None.
    pub fn trace(&mut self) -> anyhow::Result<InFlight> {
        match *self {}
    }

    /// Stands in for tracing the calls of 32-bit programs, which have no `syscalls:` events.
    ///
    /// # Errors
    /// None.
    pub fn trace_32_bit_calls(&mut self) -> anyhow::Result<()> {
        match *self {}
    }

    /// Stands in for the number of 32-bit programs whose first calls were not traced.
    pub fn compat_unseen(&self) -> u64 {
        match *self {}
    }

    /// Stands in for the number of times that the kernel skipped a program on calls.
    pub fn skipped(&self) -> u64 {
        match *self {}
    }

    /// Stands in for the number of times that the kernel skipped a program that follows tasks.
    pub fn skipped_tasks(&self) -> u64 {
        match *self {}
    }

    /// Stands in for the descriptors of programs that the kernel takes long to detach.
    pub fn slow_to_close(&self) -> std::iter::Empty<BorrowedFd<'_>> {
        match *self {}
    }

    /// Stands in for the question whether any traced task is alive.
    pub fn has_living_tasks(&self) -> bool {
        match *self {}
    }

    /// Stands in for the list of calls that have been in flight for long.
    ///
    /// # Errors
    /// None.
    pub fn pending(&self) -> anyhow::Result<InFlight> {
        match *self {}
    }

    /// Stands in for the aggregates of tasks that ended before a time.
    pub fn ended_task_aggregates(&self, _: Time) -> std::iter::Empty<(Time, Synthesized)> {
        match *self {}
    }

    /// Stands in for the descriptor that becomes readable when many aggregates wait.
    pub fn aggregates_fd(&self) -> Option<BorrowedFd<'_>> {
        match *self {}
    }

    /// Stands in for the end of tracing, which returns the calls that are still in flight.
    ///
    /// # Errors
    /// None.
    pub fn stop(&mut self) -> anyhow::Result<InFlight> {
        match *self {}
    }

    /// Stands in for the descriptor of the signals that tasks are to get.
    pub fn due_signals(&self) -> Option<std::os::fd::OwnedFd> {
        match *self {}
    }

    /// Stands in for the numbers of requests of io_uring.
    pub fn requests_made(&self) -> Vec<(u8, u64)> {
        match *self {}
    }

    /// Stands in for the counters of the programs.
    pub fn account(&self) -> Account {
        match *self {}
    }
}
