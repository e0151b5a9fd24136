//! Memory of numbers that several write and read at once: of a BPF map, mapped, so that it is read and written without bpf(2), or of processes that fork.
//!
//! While bpf(2) works on a map, the kernel runs no program of a tracepoint's event on that CPU (`bpf_disable_instrumentation()` in include/linux/bpf.h), and where kernels take the CPU away from a task in
//! between, others run there unseen for as long: some calls in 100,000 on one CPU of Linux 7.2.

use super::mapped::Mapping;
#[cfg(feature = "bpf")]
use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::ops::Deref;
#[cfg(feature = "bpf")]
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

/// Words that are shared: the first ones of a map that has `BPF_F_MMAPABLE`, or zeros that this process and those that it forks see change.
#[derive(Debug)]
pub struct MapMemory(Mapping);

impl MapMemory {
    /// Maps so many words of 8 bytes.
    ///
    /// # Errors
    /// mmap(2)'s: the map cannot be mapped, or is smaller by a page or more.
    #[cfg(feature = "bpf")]
    pub fn of(map: BorrowedFd, words: usize) -> io::Result<MapMemory> {
        Mapping::of(map, words * size_of::<AtomicU64>(), ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED).map(MapMemory)
    }

    /// So many words of zeros.
    ///
    /// # Errors
    /// mmap(2)'s.
    pub fn zeros(words: usize) -> io::Result<MapMemory> {
        Mapping::zeros(words * size_of::<AtomicU64>()).map(MapMemory)
    }
}

impl Deref for MapMemory {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: so many words begin at a page's start, were mapped and stay so until the drop (the mapping keeps the map, which has a fixed size); the kernel's programs change them as atomics do.
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr().cast(), self.0.len / size_of::<AtomicU64>()) }
    }
}
