//! Shared memory of 64-bit words: a memory-mapped BPF map, which is read and written without bpf(2), or memory that
//! forked processes share.
//!
//! While bpf(2) operates on a map, the kernel runs no program of a tracepoint's event on that CPU
//! (`bpf_disable_instrumentation()` in include/linux/bpf.h). If the kernel preempts the task meanwhile, other tasks run
//! there and their events are missed: some calls in 100,000 on one CPU of Linux 7.2.

use super::mapped::Mapping;
use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

/// Shared words: the first words of a map with `BPF_F_MMAPABLE`, or zeros that this process and its forks share.
#[derive(Debug)]
pub struct MapMemory(Mapping);

impl MapMemory {
    /// Maps this many words of 8 bytes.
    ///
    /// # Errors
    /// The errors of mmap(2): the map cannot be mapped, or is smaller by a page or more.
    pub fn of(map: BorrowedFd, words: usize) -> io::Result<MapMemory> {
        Mapping::of(map, words * size_of::<AtomicU64>(), ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED).map(MapMemory)
    }

    /// Maps this many words of zeros.
    ///
    /// # Errors
    /// The errors of mmap(2).
    pub fn zeros(words: usize) -> io::Result<MapMemory> {
        Mapping::zeros(words * size_of::<AtomicU64>()).map(MapMemory)
    }
}

impl Deref for MapMemory {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: this many words begin at the start of a page, and stay mapped until the drop (the mapping keeps the
        // map, which has a fixed size). The kernel's programs change them atomically.
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr().cast(), self.0.len / size_of::<AtomicU64>()) }
    }
}
