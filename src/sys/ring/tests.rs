//! Tests with rings in ordinary memory, written as the kernel does. Real rings are tested by other modules.

use super::*;
use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE, perf_event_attr};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

const PAGE: usize = 4096;
const SIZE: usize = 64;

/// A ring in ordinary memory. Byte n since the ring was created has the value `n % 251`.
struct Fake {
    area: Area,
    head: u64,
}

impl Fake {
    fn at(position: u64) -> Fake {
        let memory = vec![0u64; (PAGE + SIZE) / 8].into_boxed_slice();
        let base = NonNull::from(Box::leak(memory)).cast::<u8>();
        unsafe fn free(base: NonNull<u8>, bytes: usize) {
            // SAFETY: this is the box that was leaked.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(base.as_ptr().cast::<u64>(), bytes / 8)) });
        }
        // SAFETY: the memory is as long as said and aligned as u64 is.
        let mut area = unsafe { Area::new(base, PAGE, SIZE, free) };
        area.set_data_tail(position);
        let mut fake = Fake { area, head: position };
        fake.write(0);
        fake
    }

    /// Writes this many bytes more and publishes the head.
    fn write(&mut self, bytes: u64) {
        for position in self.head..self.head + bytes {
            // SAFETY: inside the data.
            unsafe { self.area.data.add((position % SIZE as u64) as usize).write((position % 251) as u8) };
        }
        self.set_head(self.head + bytes);
    }

    fn set_head(&mut self, head: u64) {
        self.head = head;
        // SAFETY: inside the page, as in `Area::data_head`.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.area.page.as_ptr()).data_head) }.store(head, Ordering::Release);
    }
}

/// Returns a ring of this many bytes to which these many words were written backwards, each with its number as value.
pub(super) fn overwritten(size: usize, words: u64) -> Area {
    assert_eq!(size, SIZE);
    let mut fake = Fake::at(0);
    for word in 0..words {
        let place = (word + 1).wrapping_mul(8).wrapping_neg() as usize % size;
        // SAFETY: inside the data, and aligned.
        unsafe { fake.area.data.add(place).cast::<u64>().write(word) };
    }
    fake.set_head((8 * words).wrapping_neg());
    fake.area
}

fn counted(range: Range<u64>) -> Vec<u8> {
    range.map(|position| (position % 251) as u8).collect()
}

#[test]
fn every_length_at_every_offset_is_drained_completely() {
    for start in 1000..1000 + SIZE as u64 {
        for len in 0..=SIZE as u64 {
            let mut fake = Fake::at(start);
            fake.write(len);
            let mut got = b"before".to_vec();
            assert_eq!(fake.area.drain(&mut got), Ok(len as usize));
            assert_eq!(got, [b"before".to_vec(), counted(start..start + len)].concat(), "{len} bytes at {start}");
            assert_eq!(fake.area.data_tail(), start + len);
            assert_eq!(fake.area.drain(&mut got), Ok(0), "drained bytes are not returned again");
        }
    }
}

#[test]
fn a_stream_of_bytes_is_drained_unchanged() {
    let mut fake = Fake::at(0);
    let mut got = Vec::new();
    for step in 0..1000 {
        fake.write(step * 7 % (SIZE as u64 + 1));
        fake.area.drain(&mut got).unwrap();
    }
    assert_eq!(got, counted(0..fake.head));
}

#[test]
fn a_record_header_split_by_the_wrap_is_joined() {
    let mut record = 2u32.to_le_bytes().to_vec();
    record.extend([0, 0, 24, 0]);
    record.extend([7; 16]);
    let mut fake = Fake::at(SIZE as u64 - 3);
    for (at, byte) in record.iter().enumerate() {
        // SAFETY: inside the data.
        unsafe { fake.area.data.add((SIZE - 3 + at) % SIZE).write(*byte) };
    }
    fake.set_head(SIZE as u64 - 3 + 24);
    let mut got = Vec::new();
    fake.area.drain(&mut got).unwrap();
    assert_eq!(got, record);
}

#[test]
fn an_invalid_head_is_an_error_once() {
    for head in [500 + SIZE as u64 + 1, 499, u64::MAX, 0] {
        let mut fake = Fake::at(500);
        fake.set_head(head);
        let mut got = Vec::new();
        assert_eq!(fake.area.drain(&mut got), Err(Overrun { size: SIZE as u64, head, tail: 500 }));
        assert!(got.is_empty());
        fake.set_head(head.wrapping_add(8));
        assert_eq!(fake.area.drain(&mut got), Ok(8), "the ring works again after the error");
    }
}

#[test]
fn the_positions_may_wrap() {
    assert_eq!(spans(64, 8, u64::MAX - 7), Ok([56..64, 0..8]));
}

#[test]
fn invalid_ring_sizes_are_rejected() {
    let page = rustix::param::page_size();
    for bytes in [0, 1, 3 * page, page / 2, usize::MAX] {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(matches!(Ring::map(file.as_fd(), bytes), Err(MapError::Size(_))), "{bytes}");
    }
}

/// Writes to this many new pages, and returns the addresses that were written.
pub(crate) fn touch_new_pages(pages: usize) -> Vec<u64> {
    let page = rustix::param::page_size();
    // SAFETY: new memory, at an address that the kernel chooses. The advice does not change its content.
    let memory = unsafe {
        let memory =
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), pages * page, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE).unwrap();
        rustix::mm::madvise(memory, pages * page, rustix::mm::Advice::LinuxNoHugepage).unwrap();
        memory.cast::<u8>()
    };
    let touched: Vec<u64> = (0..pages).map(|at| (memory as usize + at * page + 17) as u64).collect();
    for address in &touched {
        // SAFETY: inside the new memory.
        unsafe { (*address as *mut u8).write_volatile(1) };
    }
    // SAFETY: the memory is no longer used.
    unsafe { rustix::mm::munmap(memory.cast(), pages * page).unwrap() };
    touched
}

/// Opens a software event of this thread with comm records, and returns its one-page ring and its identifier. The
/// mapping alone keeps the event. Returns `None`, with the reason on stderr, if perf_event_open(2) is not permitted.
pub(crate) fn open_ring(mut attr: perf_event_attr) -> Option<(Ring, u64)> {
    attr.type_ = PERF_TYPE_SOFTWARE;
    attr.size = size_of::<perf_event_attr>() as u32;
    attr.set_comm(1);
    attr.set_sample_id_all(1);
    attr.set_exclude_kernel(1);
    attr.set_exclude_callchain_kernel(1);
    attr.set_exclude_hv(1);
    // SAFETY: the attributes outlive the call.
    let fd = unsafe { perf_event_open_sys::perf_event_open(&mut attr, 0, -1, -1, u64::from(PERF_FLAG_FD_CLOEXEC)) };
    if fd < 0 {
        eprintln!("skipped: perf_event_open: {}", std::io::Error::last_os_error());
        return None;
    }
    let mut id = 0;
    // SAFETY: the kernel writes one u64 through the pointer. The descriptor is new and owned by nothing else.
    let fd = unsafe {
        assert_eq!(perf_event_open_sys::ioctls::ID(fd, &mut id), 0);
        OwnedFd::from_raw_fd(fd)
    };
    Some((Ring::map(fd.as_fd(), rustix::param::page_size()).unwrap(), id))
}
