//! Stands in for the user's BPF programs in a build without the feature `bpf`.

mod output;

use crate::bpf::{Mode, Programs, Seed};
use crate::kernel::tracefs::Tracefs;
use crate::request::{Item, Selector};
use crate::session::Targets;
use std::os::fd::BorrowedFd;

pub use output::Output;

/// The user's programs, which this build cannot load.
#[derive(Debug, Default)]
pub struct Objects;

impl Objects {
    /// Checks that no item names a file of programs.
    ///
    /// # Errors
    /// An item names one.
    pub fn open(items: &[Item], _: &Tracefs) -> anyhow::Result<Objects> {
        match items.iter().find(|item| matches!(item.selector, Selector::Object(_))) {
            Some(item) => Err(anyhow::anyhow!("{}: this rtrace was built without BPF programs (cargo feature bpf)", item.selector)),
            None => Ok(Objects),
        }
    }

    pub fn outputs(&self) -> &[Output] {
        &[]
    }

    pub fn load(&mut self, _: &Targets, _: bool, _: Option<&Programs>) -> anyhow::Result<()> {
        Ok(())
    }

    pub fn follow(&mut self, _: &[(Seed, Mode)]) -> anyhow::Result<()> {
        Ok(())
    }

    pub fn tasks_lost(&self) -> u64 {
        0
    }

    pub fn write_to(&self, _: usize, _: u32, _: BorrowedFd) -> anyhow::Result<()> {
        Ok(())
    }

    pub fn attach(&mut self, _: u32) -> anyhow::Result<()> {
        Ok(())
    }

    pub fn detach(&mut self) {}

    pub fn skipped(&self) -> u64 {
        0
    }

    pub fn slow_to_close(&self) -> std::iter::Empty<BorrowedFd<'_>> {
        std::iter::empty()
    }
}
