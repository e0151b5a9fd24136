//! The signals that tasks are to get at the call that waits. The BPF programs send them, in the task itself, so that
//! they come from the kernel (SI_KERNEL) and at a certain point of the call: at its entry, or when it was answered.

use crate::sys::map_memory::MapMemory;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

/// `SIGNAL_SLOTS` and `SIGNAL_PROBES` in src/bpf/due_signals.h.
const SLOTS: usize = 1024;
const PROBES: usize = 4;

/// The memory that the supervisor and the BPF programs share. A word has the thread in its upper half, and the signal
/// in its lower half; 0 is a free slot.
#[derive(Debug)]
pub(super) struct DueSignals(MapMemory);

impl DueSignals {
    /// Maps the memory.
    ///
    /// # Errors
    /// The errors of mmap(2).
    pub fn of(map: &OwnedFd) -> io::Result<DueSignals> {
        MapMemory::of(map.as_fd(), SLOTS).map(DueSignals)
    }

    /// Stores the signal of a thread. Returns false if there is no room near the thread's slot.
    pub fn put(&self, tid: i32, signal: i32) -> bool {
        let of_tid = |word: u64| (word >> 32) as i32 == tid;
        (0..PROBES).map(|probe| &self.0[(tid as usize + probe) % SLOTS]).any(|slot| {
            let present = slot.load(Ordering::Acquire);
            let word = (tid as u64) << 32 | signal as u64;
            (present == 0 || of_tid(present)) && slot.compare_exchange(present, word, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_signal_in_a_slot_near_its_number() {
        let signals = DueSignals(MapMemory::zeros(SLOTS).unwrap());
        assert!(signals.put(5, 10) && signals.put(5, 12), "a later one replaces an earlier one");
        assert_eq!(signals.0[5].load(Ordering::Relaxed), 5 << 32 | 12);
        assert!((1..4).all(|turn| signals.put(5 + turn * SLOTS as i32, 9)), "other threads take the next slots");
        assert!(!signals.put(5 + 4 * SLOTS as i32, 9), "until these are taken");
        signals.0[6].store(0, Ordering::Relaxed);
        assert!(signals.put(5 + 4 * SLOTS as i32, 9));
    }
}
