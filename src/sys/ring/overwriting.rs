//! A ring whose oldest records the kernel overwrites. It is copied when somebody wants its content, while the kernel
//! goes on writing, so that neither a record is lost nor a writer waits.
//!
//! The kernel writes such a ring backwards: its head decreases, the newest record is at the head, and each older one
//! follows it.
//!
//! ```text
//! head                                   head + size
//!  ▼                                          ▼
//!  [newest][...][...][...][...][oldest][part of an overwritten one]      positions, modulo the size
//!  ◀── the next record is written here, over the end of the oldest
//! ```
//!
//! So the kernel damages a copy in progress only at its old end. The copy begins there, and after each piece the head
//! says whether the kernel has come that far.

use super::{Area, MapError, map};
use rustix::mm::ProtFlags;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The size of the pieces in which a ring is copied, in bytes.
const PIECE: usize = 64 << 10;

/// A mapped ring that the kernel overwrites.
#[derive(Debug)]
pub struct OverwritingRing {
    area: Area,
}

/// The content of a ring at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// The records from the newest to the oldest. The last one may be incomplete.
    pub bytes: Vec<u8>,
    /// The number of bytes that had been written to the ring since it was mapped.
    pub written: u64,
    /// Older bytes were asked for and are missing, because the kernel has overwritten them.
    pub is_cut: bool,
}

impl OverwritingRing {
    /// Maps the ring of an event that was opened with [`super::super::perf::Delivery::Overwriting`].
    ///
    /// # Errors
    /// Those of [`super::Ring::map`].
    pub fn map(event: BorrowedFd, bytes: usize) -> Result<OverwritingRing, MapError> {
        Ok(OverwritingRing { area: map(event, bytes, ProtFlags::READ)? })
    }

    /// Returns the size of the ring's data area in bytes.
    pub fn bytes(&self) -> usize {
        self.area.size as usize
    }

    /// Returns the number of bytes that were written since the ring was mapped.
    pub fn written(&self) -> u64 {
        self.area.data_head().wrapping_neg()
    }

    /// Copies what was written after the first `since` bytes, as far as it is still there. At most `in_progress` bytes
    /// are being written at any moment and not yet behind the head.
    pub fn copy(&self, since: u64, in_progress: usize) -> Copied {
        let written = self.written();
        let wanted = written.saturating_sub(since);
        let there = wanted.min(self.area.size) as usize & !7;
        let mut bytes = vec![0; there];
        let mut intact = there;
        let mut end = there;
        while end > 0 {
            let begin = end.saturating_sub(PIECE);
            self.copy_words(written, begin, &mut bytes[begin..end]);
            // The head is read after the words: what it says was overwritten may have been overwritten before.
            fence(Ordering::Acquire);
            let overwritten = (self.written() - written).saturating_add(in_progress as u64);
            let left = self.area.size.saturating_sub(overwritten) as usize;
            if end > left {
                intact = left.max(begin) & !7;
            }
            end = begin;
        }
        bytes.truncate(intact);
        Copied { bytes, written, is_cut: (intact as u64) < wanted }
    }

    /// Copies the words that begin `from` bytes behind the head that belongs to `written`.
    fn copy_words(&self, written: u64, from: usize, into: &mut [u8]) {
        let mask = self.area.size as usize - 1;
        let head = written.wrapping_neg() as usize;
        for (at, word) in into.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let place = head.wrapping_add(from + 8 * at) & mask & !7;
            // SAFETY: the place is inside the data area, whose size is a power of two and a multiple of 8, and is
            // aligned to 8 bytes. The kernel may write there at the same time; the load is atomic, and the caller finds
            // out whether the word was overwritten.
            let read = unsafe { AtomicU64::from_ptr(self.area.data.as_ptr().add(place).cast()) }.load(Ordering::Relaxed);
            *word = read.to_ne_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::ring::tests::overwritten;

    const SIZE: u64 = 64;

    /// Returns the ring after this many bytes were written to it, 8 at a time: word n has the value n.
    fn ring(words: u64) -> OverwritingRing {
        OverwritingRing { area: overwritten(SIZE as usize, words) }
    }

    fn words(copied: &Copied) -> Vec<u64> {
        copied.bytes.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn the_newest_words_come_first_and_the_oldest_are_overwritten() {
        let copied = ring(5).copy(0, 0);
        assert_eq!((words(&copied), copied.written, copied.is_cut), (vec![4, 3, 2, 1, 0], 40, false));
        let copied = ring(19).copy(0, 0);
        assert_eq!((words(&copied), copied.written, copied.is_cut), ((11..19).rev().collect(), 152, true));
        assert_eq!(words(&ring(0).copy(0, 0)), [0; 0]);
    }

    #[test]
    fn only_what_was_written_later_is_copied() {
        let copied = ring(19).copy(17 * 8, 0);
        assert_eq!((words(&copied), copied.is_cut), (vec![18, 17], false));
        assert!(ring(19).copy(10 * 8, 0).is_cut);
        assert_eq!(ring(19).copy(19 * 8, 0), Copied { bytes: Vec::new(), written: 152, is_cut: false });
    }

    #[test]
    fn what_may_be_half_overwritten_is_left_out() {
        let copied = ring(19).copy(0, 20);
        assert_eq!((words(&copied), copied.is_cut), ((14..19).rev().collect(), true));
        assert_eq!(words(&ring(3).copy(0, 32)), [2, 1, 0], "that part of the ring is still unused");
        assert!(words(&ring(19).copy(0, 1000)).is_empty());
    }
}
