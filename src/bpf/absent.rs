//! In place of the programs, in a build without the feature `bpf`.

use super::account::Account;
use super::in_flight::InFlight;
use super::settings::{Mode, Seed, Settings};
use crate::event::{Note, Time};
use std::os::fd::BorrowedFd;

/// There are none in this build, and no way to ask the kernel for others'.
pub fn is_of_rtrace(_: u32) -> bool {
    false
}

/// There are none that could be.
pub fn may_be_interrupted() -> bool {
    false
}

/// There are none.
#[derive(Debug)]
pub enum Programs {}

impl Programs {
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

    pub fn look_beside(&mut self) -> anyhow::Result<()> {
        match *self {}
    }

    pub fn unseen(&self) -> u64 {
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

    pub fn follow_anyone(&self) -> bool {
        match *self {}
    }

    pub fn pending(&self) -> anyhow::Result<InFlight> {
        match *self {}
    }

    pub fn kept(&self, _: Time) -> std::iter::Empty<(Time, Note)> {
        match *self {}
    }

    pub fn kept_fd(&self) -> Option<BorrowedFd<'_>> {
        match *self {}
    }

    pub fn stop(&mut self) -> anyhow::Result<InFlight> {
        match *self {}
    }

    pub fn account(&self) -> Account {
        match *self {}
    }
}
