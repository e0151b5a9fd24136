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
pub struct Objects(());

impl Objects {
    /// Checks that no item names a file of programs.
    ///
    /// # Errors
    /// An item names one.
    pub fn open(items: &[Item], _: &Tracefs) -> anyhow::Result<Objects> {
        match items.iter().find(|item| matches!(item.selector, Selector::Object(_))) {
            Some(item) => Err(anyhow::anyhow!("{}: this rtrace was built without BPF programs (cargo feature bpf)", item.selector)),
            None => Ok(Objects::default()),
        }
    }

    /// Returns no events, because there are no programs.
    pub fn outputs(&self) -> &[Output] {
        &[]
    }

    /// Does nothing: there are no programs to load.
    ///
    /// # Errors
    /// None.
    pub fn load(&mut self, _: &Targets, _: bool, _: Option<&Programs>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Does nothing: there are no programs that follow tasks.
    ///
    /// # Errors
    /// None.
    pub fn follow(&mut self, _: &[(Seed, Mode)]) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns 0: no tasks are followed.
    pub fn tasks_lost(&self) -> u64 {
        0
    }

    /// Does nothing: no program writes records.
    ///
    /// # Errors
    /// None.
    pub fn write_to(&self, _: usize, _: u32, _: BorrowedFd) -> anyhow::Result<()> {
        Ok(())
    }

    /// Does nothing: there are no programs to attach.
    ///
    /// # Errors
    /// None.
    pub fn attach(&mut self, _: u32) -> anyhow::Result<()> {
        Ok(())
    }

    /// Does nothing: no program is attached.
    pub fn detach(&mut self) {}

    /// Returns 0: the kernel runs no programs of the user.
    pub fn skipped(&self) -> u64 {
        0
    }

    /// Returns nothing: there are no descriptors of programs.
    pub fn slow_to_close(&self) -> std::iter::Empty<BorrowedFd<'_>> {
        std::iter::empty()
    }
}
