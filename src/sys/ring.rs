//! One ring of perf records, shared with the kernel: mapped, drained, unmapped.
//!
//! The kernel writes records between the tail, which is ours, and the head, which is its own; both count bytes since the ring was made and never go
//! back (kernel/events/ring_buffer.c). [`Ring::drain`] copies what lies between and moves the tail at once, so that the kernel has room again before anybody looks at a
//! record. It looks at no record itself, and it is for rings that are not overwritten (mapped writable).

use super::lent;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::mm::{MapFlags, ProtFlags};
use std::mem::offset_of;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

// include/uapi/linux/perf_event.h: the head and tail stand 1 KiB into the first page.
const _: () = assert!(offset_of!(perf_event_mmap_page, data_head) == 1024 && offset_of!(perf_event_mmap_page, data_tail) == 1032);

/// A mapped ring. Its event's descriptor may be closed before it; other events may write into it (PERF_EVENT_IOC_SET_OUTPUT).
#[derive(Debug)]
pub struct Ring {
    area: Area,
}

/// Why a ring was not mapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    #[error("a ring of {0} bytes is not possible: the size is a power of two and at least one page")]
    Size(usize),
    #[error(
        "a ring of {0} bytes exceeds the memory this user may lock: take smaller rings with -m, raise `ulimit -l` or /proc/sys/kernel/perf_event_mlock_kb, or run with CAP_IPC_LOCK"
    )]
    Locked(usize),
    #[error("a ring of {bytes} bytes cannot be mapped: {error}")]
    System { bytes: usize, error: std::io::Error },
}

/// The head is not where it can be: more than the ring's size before the tail, or behind it. What was between was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a ring of {size} bytes was overrun: its head is at {head}, its tail at {tail}")]
pub struct Overrun {
    pub size: u64,
    pub head: u64,
    pub tail: u64,
}

impl Ring {
    /// Maps the ring of an event, with room for `bytes` of records: a power of two, at least one page.
    ///
    /// # Errors
    /// The size is not possible, or the kernel does not give the memory.
    pub fn map(event: BorrowedFd, bytes: usize) -> Result<Ring, MapError> {
        let page_bytes = rustix::param::page_size();
        let whole =
            bytes.checked_add(page_bytes).filter(|_| bytes.is_power_of_two() && bytes >= page_bytes).ok_or(MapError::Size(bytes))?;
        // SAFETY: the kernel chooses the address, so that no other memory of ours is touched.
        let base = lent::with(|| unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), whole, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, event, 0)
        });
        let base = base.map_err(|error| match error {
            // perf_mmap() in kernel/events/core.c: the bound of locked memory, and nothing else.
            rustix::io::Errno::PERM => MapError::Locked(bytes),
            error => MapError::System { bytes, error: error.into() },
        })?;
        let base = NonNull::new(base.cast())
            .ok_or_else(|| MapError::System { bytes, error: std::io::Error::other("it was mapped at address zero") })?;
        // SAFETY: the mapping is `page_bytes + bytes` long, page-aligned, and unmapped only when the area is dropped.
        let area = unsafe { Area::new(base, page_bytes, bytes, unmap) };
        Ok(Ring { area })
    }

    /// Its room for records, bytes.
    pub fn bytes(&self) -> usize {
        self.area.size as usize
    }

    /// Appends the records that are in the ring now to `into`, frees their room, and returns how many bytes they were.
    ///
    /// # Errors
    /// The kernel's head makes no sense; the ring can be drained further, what was in it is skipped.
    pub fn drain(&mut self, into: &mut Vec<u8>) -> Result<usize, Overrun> {
        self.area.drain(into)
    }
}

/// The memory of a ring: a page of accounts, then the records' bytes.
#[derive(Debug)]
struct Area {
    page: NonNull<perf_event_mmap_page>,
    data: NonNull<u8>,
    size: u64,
    free: unsafe fn(NonNull<u8>, usize),
}

// SAFETY: the memory belongs to this value alone; only the kernel writes to it as well, whichever thread we are in.
unsafe impl Send for Area {}

impl Area {
    /// # Safety
    /// `base` is aligned to 8 bytes and begins `page_bytes + size` bytes that may be read and written until `free(base, page_bytes + size)` was called, by nobody
    /// else but a writer that keeps the kernel's protocol. `page_bytes` is at least the size of the page of accounts and `size` is a power of two.
    unsafe fn new(base: NonNull<u8>, page_bytes: usize, size: usize, free: unsafe fn(NonNull<u8>, usize)) -> Area {
        // SAFETY: inside the memory, as the caller promises.
        let data = unsafe { base.add(page_bytes) };
        Area { page: base.cast(), data, size: size as u64, free }
    }

    /// Where the kernel will write next. Acquire, so that the records before it are seen; pairs with the smp_wmb() before `user_page->data_head` is written in
    /// perf_output_put_handle() of kernel/events/ring_buffer.c.
    fn data_head(&self) -> u64 {
        // SAFETY: inside the page and aligned (asserted above); whoever else writes it does so in one piece.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.page.as_ptr()).data_head) }.load(Ordering::Acquire)
    }

    /// Where we shall read next. Nobody else writes it.
    fn data_tail(&self) -> u64 {
        // SAFETY: as for the head.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.page.as_ptr()).data_tail) }.load(Ordering::Relaxed)
    }

    /// Frees all before `tail`. Release, so that our reads are over before the kernel writes there; pairs with the control dependency on
    /// `user_page->data_tail` in __perf_output_begin() of kernel/events/ring_buffer.c.
    fn set_data_tail(&mut self, tail: u64) {
        // SAFETY: as for the head.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.page.as_ptr()).data_tail) }.store(tail, Ordering::Release);
    }

    fn drain(&mut self, into: &mut Vec<u8>) -> Result<usize, Overrun> {
        let (head, tail) = (self.data_head(), self.data_tail());
        let filled = spans(self.size, head, tail).inspect_err(|_| self.set_data_tail(head))?;
        let bytes = filled.iter().map(|span| span.len()).sum();
        // Whatever can fail (here: memory) comes before the copying, nothing comes between the copying and the new tail: the tail is never wrong.
        into.reserve(bytes);
        for span in filled {
            // SAFETY: `spans` gives ranges inside the ring, between tail and head, where the kernel does not write; the vector has the room, and is not the ring.
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
        // SAFETY: promised to `Area::new`; nothing borrows from the memory.
        unsafe { (self.free)(base, bytes) };
    }
}

/// # Safety
/// `base` begins a mapping of `bytes` that nobody uses any more.
unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: promised by the caller. An error would mean that it is no mapping; there is nothing to be done about it here.
    let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), bytes) };
}

/// Where in a ring of `size` bytes (a power of two) the bytes from `tail` to `head` are: one range, and another from the ring's beginning when they wrap.
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
