//! A ring buffer of perf records, shared with the kernel: mapped, drained and unmapped.
//!
//! The kernel writes records between the tail, which rtrace advances, and the head, which the kernel advances. Both
//! count the bytes since the ring was created and never decrease (kernel/events/ring_buffer.c). [`Ring::drain`] copies
//! the bytes between them and advances the tail at once, so that the kernel has room again before any record is
//! decoded. It decodes no record itself. Rings that the kernel overwrites are [`OverwritingRing`]s.

mod overwriting;

pub use overwriting::{Copied, OverwritingRing};

use super::file_capabilities;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::mm::{MapFlags, ProtFlags};
use std::mem::offset_of;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

// include/uapi/linux/perf_event.h: the head and the tail are 1 KiB into the first page.
const _: () = assert!(offset_of!(perf_event_mmap_page, data_head) == 1024 && offset_of!(perf_event_mmap_page, data_tail) == 1032);

/// A mapped ring. Its event's descriptor may be closed before it, and other events may write into it
/// (PERF_EVENT_IOC_SET_OUTPUT).
#[derive(Debug)]
pub struct Ring {
    area: Area,
}

/// The reason why a ring could not be mapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    #[error("a ring cannot have {0} bytes: its size must be a power of two and at least one page")]
    Size(usize),
    #[error(
        "a ring of {0} bytes exceeds the memory this user may lock: take smaller rings with -m, raise `ulimit -l` or /proc/sys/kernel/perf_event_mlock_kb, or run with CAP_IPC_LOCK"
    )]
    Locked(usize),
    #[error("a ring of {bytes} bytes cannot be mapped: {error}")]
    System { bytes: usize, error: std::io::Error },
}

/// The head is invalid: behind the tail, or more than the ring's size ahead of it. The bytes between them were skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a ring of {size} bytes was overrun: its head is at {head}, its tail at {tail}")]
pub struct Overrun {
    /// The size of the ring in bytes.
    pub size: u64,
    /// The position up to which the kernel says that it has written, in bytes since the ring was mapped.
    pub head: u64,
    /// The position up to which rtrace has read, in bytes since the ring was mapped.
    pub tail: u64,
}

impl Ring {
    /// Maps the ring of an event, with room for `bytes` of records: a power of two, at least one page.
    ///
    /// # Errors
    /// The size is invalid, or the kernel does not provide the memory.
    pub fn map(event: BorrowedFd, bytes: usize) -> Result<Ring, MapError> {
        let area = map(event, bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Ring { area })
    }

    /// Returns the size of the ring's data area in bytes.
    pub fn bytes(&self) -> usize {
        self.area.size as usize
    }

    /// Returns the number of bytes that wait to be read; of an invalid ring, more than its size.
    pub fn filled(&self) -> usize {
        self.area.data_head().wrapping_sub(self.area.data_tail()) as usize
    }

    /// Appends the records that are in the ring to `into`, frees their room in the ring, and returns their size in
    /// bytes.
    ///
    /// # Errors
    /// The kernel's head is invalid. The content is skipped, and the ring can be drained further.
    pub fn drain(&mut self, into: &mut Vec<u8>) -> Result<usize, Overrun> {
        self.area.drain(into)
    }
}

/// Maps the ring of an event, with room for `bytes` of records. The kernel overwrites the records of a ring that is
/// mapped without write access.
fn map(event: BorrowedFd, bytes: usize, access: ProtFlags) -> Result<Area, MapError> {
    let page_bytes = rustix::param::page_size();
    let whole = bytes.checked_add(page_bytes).filter(|_| bytes.is_power_of_two() && bytes >= page_bytes).ok_or(MapError::Size(bytes))?;
    // SAFETY: the kernel chooses the address, so no other memory of this process is affected.
    let base =
        file_capabilities::with_raised(|| unsafe { rustix::mm::mmap(std::ptr::null_mut(), whole, access, MapFlags::SHARED, event, 0) });
    let base = base.map_err(|error| match error {
        // perf_mmap() in kernel/events/core.c returns EPERM only for the limit of locked memory.
        rustix::io::Errno::PERM => MapError::Locked(bytes),
        error => MapError::System { bytes, error: error.into() },
    })?;
    let base = NonNull::new(base.cast())
        .ok_or_else(|| MapError::System { bytes, error: std::io::Error::other("the ring was mapped at address zero") })?;
    // SAFETY: the mapping is `page_bytes + bytes` long, page-aligned, and unmapped only when the area is dropped.
    Ok(unsafe { Area::new(base, page_bytes, bytes, unmap) })
}

/// The memory of a ring: the control page, then the data area.
#[derive(Debug)]
struct Area {
    page: NonNull<perf_event_mmap_page>,
    data: NonNull<u8>,
    size: u64,
    free: unsafe fn(NonNull<u8>, usize),
}

// SAFETY: the memory belongs to this value alone. Only the kernel writes to it as well, independently of the thread.
unsafe impl Send for Area {}

impl Area {
    /// # Safety
    /// `base` is aligned to 8 bytes and begins `page_bytes + size` bytes that may be read, and written unless the ring
    /// is one that is overwritten, until `free(base, page_bytes + size)` was called. Nobody else accesses them but a
    /// writer that follows the kernel's protocol. `page_bytes` is at least the size of the control page, and `size` is
    /// a power of two.
    unsafe fn new(base: NonNull<u8>, page_bytes: usize, size: usize, free: unsafe fn(NonNull<u8>, usize)) -> Area {
        // SAFETY: inside the memory, as the caller guarantees.
        let data = unsafe { base.add(page_bytes) };
        Area { page: base.cast(), data, size: size as u64, free }
    }

    /// Returns the position at which the kernel writes next. The load is an acquire, so that the records before it are
    /// visible. It pairs with the smp_wmb() before `user_page->data_head` is written in perf_output_put_handle() of
    /// kernel/events/ring_buffer.c.
    fn data_head(&self) -> u64 {
        // SAFETY: inside the page and aligned (asserted above); the kernel writes it in one piece.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.page.as_ptr()).data_head) }.load(Ordering::Acquire)
    }

    /// Returns the position at which rtrace reads next. Only rtrace writes it.
    fn data_tail(&self) -> u64 {
        // SAFETY: as for the head.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.page.as_ptr()).data_tail) }.load(Ordering::Relaxed)
    }

    /// Frees everything before `tail`. The store is a release, so that all reads are complete before the kernel writes
    /// there. It pairs with the control dependency on `user_page->data_tail` in __perf_output_begin() of
    /// kernel/events/ring_buffer.c.
    fn set_data_tail(&mut self, tail: u64) {
        // SAFETY: as for the head.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.page.as_ptr()).data_tail) }.store(tail, Ordering::Release);
    }

    fn drain(&mut self, into: &mut Vec<u8>) -> Result<usize, Overrun> {
        let (head, tail) = (self.data_head(), self.data_tail());
        let filled = spans(self.size, head, tail).inspect_err(|_| self.set_data_tail(head))?;
        let bytes = filled.iter().map(|span| span.len()).sum();
        // The reservation, which can fail, comes before the copy, and nothing comes between the copy and the new tail.
        // So the tail is never wrong.
        into.reserve(bytes);
        for span in filled {
            // SAFETY: `spans` returns ranges inside the ring, between tail and head, where the kernel does not write.
            // The vector has the room, and does not overlap the ring.
            unsafe {
                into.as_mut_ptr().add(into.len()).copy_from_nonoverlapping(self.data.as_ptr().add(span.start), span.len());
                into.set_len(into.len() + span.len());
            }
        }
        self.set_data_tail(head);
        Ok(bytes)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        let base = self.page.cast::<u8>();
        let bytes = self.data.as_ptr() as usize - base.as_ptr() as usize + self.size as usize;
        // SAFETY: the caller of `Area::new` guarantees it, and nothing borrows from the memory.
        unsafe { (self.free)(base, bytes) };
    }
}

/// # Safety
/// `base` begins a mapping of `bytes` that is no longer used.
unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller guarantees it. An error would mean that it is no mapping, and cannot be handled here.
    let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), bytes) };
}

/// Returns the ranges of a ring of `size` bytes (a power of two) that hold the bytes from `tail` to `head`: one range,
/// and another from the ring's beginning if they wrap.
fn spans(size: u64, head: u64, tail: u64) -> Result<[Range<usize>; 2], Overrun> {
    let filled = head.wrapping_sub(tail);
    if filled > size {
        return Err(Overrun { size, head, tail });
    }
    let start = tail & (size - 1);
    let until_end = filled.min(size - start);
    Ok([start as usize..(start + until_end) as usize, 0..(filled - until_end) as usize])
}

#[cfg(test)]
pub(crate) mod tests;
