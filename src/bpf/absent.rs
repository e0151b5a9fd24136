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

    pub fn tasks(&self) -> Option<i32> {
        match *self {}
    }

    pub fn write_to(&self, _: u32, _: u32, _: BorrowedFd) -> anyhow::Result<()> {
        match *self {}
    }

    pub fn follow(&mut self, _: impl Iterator<Item = (Seed, Mode)>) -> anyhow::Result<()> {
        match *self {}
    }

    pub fn trace(&mut self) -> anyhow::Result<InFlight> {
        match *self {}
    }

    pub fn trace_32_bit_calls(&mut self) -> anyhow::Result<()> {
        match *self {}
    }

    pub fn compat_unseen(&self) -> u64 {
        match *self {}
    }

    pub fn skipped(&self) -> u64 {
        match *self {}
    }

    pub fn skipped_tasks(&self) -> u64 {
        match *self {}
    }

    pub fn slow_to_close(&self) -> std::iter::Empty<BorrowedFd<'_>> {
        match *self {}
    }

    pub fn has_living_tasks(&self) -> bool {
        match *self {}
    }

    pub fn pending(&self) -> anyhow::Result<InFlight> {
        match *self {}
    }

    pub fn ended_task_aggregates(&self, _: Time) -> std::iter::Empty<(Time, Synthesized)> {
        match *self {}
    }

    pub fn aggregates_fd(&self) -> Option<BorrowedFd<'_>> {
        match *self {}
    }

    pub fn stop(&mut self) -> anyhow::Result<InFlight> {
        match *self {}
    }

    pub fn account(&self) -> Account {
        match *self {}
    }
}
