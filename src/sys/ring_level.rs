//! How full a ring buffer is, for a process that does not read it: the positions of the kernel and of the reader are in
//! shared memory.

use super::mapped::Mapping;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::mem::offset_of;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// The positions of a mapped ring.
#[derive(Debug)]
pub struct RingLevel {
    mapping: Mapping,
    /// The offsets of the two positions in the mapping, in bytes.
    head: usize,
    tail: usize,
    /// The size of the ring's data in bytes.
    bytes: u64,
}

impl RingLevel {
    /// Maps the ring of an event, whose data have this many bytes. The kernel maps such a ring only as a whole
    /// (perf_mmap() in kernel/events/core.c).
    ///
    /// # Errors
    /// The errors of mmap(2).
    pub fn of_event(event: BorrowedFd, bytes: usize) -> io::Result<RingLevel> {
        let mapping = Mapping::of(event, rustix::param::page_size() + bytes, ProtFlags::READ, MapFlags::SHARED)?;
        let (head, tail) = (offset_of!(perf_event_mmap_page, data_head), offset_of!(perf_event_mmap_page, data_tail));
        Ok(RingLevel { mapping, head, tail, bytes: bytes as u64 })
    }

    /// Maps the positions of a BPF ring buffer with this many bytes of data: the reader's position is at the beginning
    /// of the first page, that of the programs at the beginning of the second (kernel/bpf/ringbuf.c).
    ///
    /// # Errors
    /// The errors of mmap(2).
    pub fn of_map(map: BorrowedFd, bytes: usize) -> io::Result<RingLevel> {
        let page = rustix::param::page_size();
        let mapping = Mapping::of(map, 2 * page, ProtFlags::READ, MapFlags::SHARED)?;
        Ok(RingLevel { mapping, head: page, tail: 0, bytes: bytes as u64 })
    }

    /// Returns the size of the ring in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of bytes that were ever written.
    pub fn written(&self) -> u64 {
        self.position(self.head)
    }

    /// Returns the number of bytes that wait to be read.
    pub fn filled(&self) -> u64 {
        // The reader may advance between the two loads, so its position is loaded first: the result is never too small.
        let tail = self.position(self.tail);
        self.position(self.head).saturating_sub(tail)
    }

    fn position(&self, offset: usize) -> u64 {
        // SAFETY: the offset is inside the mapping, which this value owns, and aligned to 8 bytes. The kernel and the
        // reader change the position in one piece.
        unsafe { AtomicU64::from_ptr(self.mapping.start.add(offset).as_ptr().cast()) }.load(Ordering::Acquire)
    }
}
