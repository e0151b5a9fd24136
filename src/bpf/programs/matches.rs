//! The reports of calls that ask for a snapshot.

use super::Programs;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

impl Programs {
    /// Directs the reports of calls that ask for a snapshot, as far as they return on this CPU, to this event.
    pub fn write_matches_to(&self, cpu: u32, event: BorrowedFd) -> anyhow::Result<()> {
        self.write_to(self.settings.kind_of_matches(), cpu, event)
    }

    /// Lets the programs report the next call that asks for a snapshot. They report none after it until this is called
    /// again.
    pub fn report_next_match(&self) {
        self.match_reported.iter().for_each(|word| word.store(0, Ordering::SeqCst));
    }
}
