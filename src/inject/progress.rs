//! What the supervisor was doing, in memory that it shares with rtrace: another one can take its place if it is killed.

use crate::sys::map_memory::MapMemory;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// The words of the memory: the kernel's numbers of the oldest call that waits (0: none does) and of the latest one,
/// and how many calls were executed unchanged.
const OLDEST: usize = 0;
const LATEST: usize = 1;
const UNCHANGED: usize = 2;
const WORDS: usize = 3;

/// The greatest number of calls that are considered to be waiting.
const WAITING_MAX: u64 = 1 << 20;

/// The shared memory.
#[derive(Debug)]
pub(super) struct Progress(MapMemory);

impl Progress {
    /// Creates the memory, and returns it with the descriptor by which another process can map it.
    ///
    /// # Errors
    /// The memory cannot be created; `ulimit -f` may prohibit it.
    pub fn create() -> io::Result<(OwnedFd, Progress)> {
        let fd = rustix::fs::memfd_create("rtrace-inject", rustix::fs::MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&fd, (WORDS * size_of::<AtomicU64>()) as u64)?;
        let progress = Progress::of(&fd)?;
        Ok((fd, progress))
    }

    /// Maps the memory.
    ///
    /// # Errors
    /// The errors of mmap(2).
    pub fn of(fd: &OwnedFd) -> io::Result<Progress> {
        MapMemory::of(fd.as_fd(), WORDS).map(Progress)
    }

    /// Stores that the supervisor has received a call. The kernel numbers calls in the order in which it asks.
    pub fn received(&self, id: u64) {
        self.0[LATEST].store(id, Ordering::Release);
        _ = self.0[OLDEST].compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Stores which call has waited longest, now that the latest one was dealt with.
    pub fn oldest(&self, id: Option<u64>) {
        self.0[OLDEST].store(id.unwrap_or_default(), Ordering::Release);
    }

    /// Returns the numbers of the calls that may wait for an answer of a supervisor that has ended. It may have
    /// received one more than it could store.
    pub fn waiting(&self) -> RangeInclusive<u64> {
        let [oldest, latest] = [OLDEST, LATEST].map(|at| self.0[at].load(Ordering::Acquire));
        let last = latest.wrapping_add(1);
        let first = if oldest == 0 { last } else { oldest };
        if last.wrapping_sub(first) > WAITING_MAX { last..=last } else { first..=last }
    }

    /// Counts calls that are executed unchanged.
    pub fn count_unchanged(&self, count: u64) {
        self.0[UNCHANGED].fetch_add(count, Ordering::Relaxed);
    }

    /// Returns how many calls were executed unchanged.
    pub fn unchanged(&self) -> u64 {
        self.0[UNCHANGED].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_that_may_wait_are_those_from_the_oldest_on() {
        let (fd, progress) = Progress::create().unwrap();
        let there = Progress::of(&fd).unwrap();
        there.received(70);
        assert_eq!(progress.waiting(), 70..=71, "the latest is being dealt with, and one more may have been received");
        there.oldest(Some(70));
        there.received(75);
        assert_eq!(progress.waiting(), 70..=76);
        there.oldest(None);
        assert_eq!(progress.waiting(), 76..=76, "none was waiting");
        there.count_unchanged(2);
        there.count_unchanged(1);
        assert_eq!(progress.unchanged(), 3);
    }
}
