//! Rings on fake pages, written to as the kernel does; and one real ring.

use super::*;
use crate::event::{EventIndex, Time};
use crate::source::EventTable;
use crate::source::frame::{Frame, field};
use crate::source::record::tests::table;
use crate::source::record::{Body, Records};
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_DUMMY, PERF_COUNT_SW_PAGE_FAULTS, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

const PAGE: usize = 4096;
const SIZE: usize = 64;

/// A ring in ordinary memory, with all bytes of its data counted on: byte n since the ring was made is `n % 251`.
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

    /// Writes so many bytes more and publishes the head.
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

fn counted(range: Range<u64>) -> Vec<u8> {
    range.map(|position| (position % 251) as u8).collect()
}

#[test]
fn every_length_at_every_offset_comes_out_whole() {
    for start in 1000..1000 + SIZE as u64 {
        for len in 0..=SIZE as u64 {
            let mut fake = Fake::at(start);
            fake.write(len);
            let mut got = b"before".to_vec();
            assert_eq!(fake.area.drain(&mut got), Ok(len as usize));
            assert_eq!(got, [b"before".to_vec(), counted(start..start + len)].concat(), "{len} bytes at {start}");
            assert_eq!(fake.area.data_tail(), start + len);
            assert_eq!(fake.area.drain(&mut got), Ok(0), "what was taken is not there any more");
        }
    }
}

#[test]
fn a_stream_goes_through_unchanged() {
    let mut fake = Fake::at(0);
    let mut got = Vec::new();
    for step in 0..1000 {
        fake.write(step * 7 % (SIZE as u64 + 1));
        fake.area.drain(&mut got).unwrap();
    }
    assert_eq!(got, counted(0..fake.head));
}

#[test]
fn a_record_header_that_is_split_by_the_wrap_is_whole_again() {
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
    assert_eq!(Frame::at(&got, 0).unwrap(), Frame { kind: 2, misc: 0, body: &[7; 16] });
}

#[test]
fn an_impossible_head_is_an_error_once() {
    for head in [500 + SIZE as u64 + 1, 499, u64::MAX, 0] {
        let mut fake = Fake::at(500);
        fake.set_head(head);
        let mut got = Vec::new();
        assert_eq!(fake.area.drain(&mut got), Err(Overrun { size: SIZE as u64, head, tail: 500 }));
        assert!(got.is_empty());
        fake.set_head(head.wrapping_add(8));
        assert_eq!(fake.area.drain(&mut got), Ok(8), "after it the ring is of use again");
    }
}

#[test]
fn the_counters_may_pass_their_end() {
    assert_eq!(spans(64, 8, u64::MAX - 7), Ok([56..64, 0..8]));
}

#[test]
fn sizes_that_no_ring_has_are_refused() {
    let page = rustix::param::page_size();
    for bytes in [0, 1, 3 * page, page / 2, usize::MAX] {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(matches!(Ring::map(file.as_fd(), bytes), Err(MapError::Size(_))), "{bytes}");
    }
}

/// The kernel's own records: this thread's name, changed often enough to wrap the smallest ring many times.
#[test]
fn a_real_ring_gives_real_side_band_records() {
    let layout = field::NEEDED | field::CPU;
    let attr = perf_event_attr { config: u64::from(PERF_COUNT_SW_DUMMY), sample_type: layout, ..perf_event_attr::default() };
    let Some((mut ring, table)) = open_ring(attr) else { return };
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    let (mut bytes, mut names, mut before) = (Vec::new(), 0, Time(0));
    for round in 0..300 {
        for step in 0..5 {
            let name = std::ffi::CString::new(format!("name-{round}-{step}")).unwrap();
            rustix::thread::set_name(&name).unwrap();
        }
        bytes.clear();
        ring.drain(&mut bytes).unwrap();
        for record in Records::new(&table, 0, &bytes) {
            let record = record.unwrap();
            assert!(record.time >= before);
            before = record.time;
            let Body::Comm { task, comm, exec: false } = record.body else { panic!("{record:?}") };
            assert_eq!((task.tid, record.task), (tid, task));
            assert_eq!(comm, format!("name-{}-{}", names / 5, names % 5).as_bytes());
            names += 1;
        }
    }
    assert_eq!(names, 1500);
}

/// The kernel's own samples, with all fields that may be asked for: page faults at addresses that we know.
#[test]
fn a_real_ring_gives_real_samples() {
    const OPTIONAL: u64 =
        field::IP | field::ADDR | field::ID | field::STREAM_ID | field::CPU | field::PERIOD | field::CALLCHAIN | field::RAW;
    let layout = field::NEEDED | OPTIONAL;
    let mut attr = perf_event_attr { config: u64::from(PERF_COUNT_SW_PAGE_FAULTS), sample_type: layout, ..perf_event_attr::default() };
    attr.__bindgen_anon_1.sample_period = 1;
    let Some((mut ring, table)) = open_ring(attr) else { return };
    let id = *table.ids.keys().next().unwrap();
    let page = rustix::param::page_size();
    // SAFETY: new memory, at an address that the kernel chooses; the advice does not change what is in it.
    let memory = unsafe {
        let memory =
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), 8 * page, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE).unwrap();
        rustix::mm::madvise(memory, 8 * page, rustix::mm::Advice::LinuxNoHugepage).unwrap();
        memory.cast::<u8>()
    };
    let touched: Vec<u64> = (0..8).map(|at| (memory as usize + at * page + 17) as u64).collect();
    for address in &touched {
        // SAFETY: inside the new memory.
        unsafe { (*address as *mut u8).write_volatile(1) };
    }
    let mut bytes = Vec::new();
    ring.drain(&mut bytes).unwrap();
    // SAFETY: nobody uses it any more.
    unsafe { rustix::mm::munmap(memory.cast(), 8 * page).unwrap() };
    let mut seen = Vec::new();
    for record in Records::new(&table, 0, &bytes) {
        let record = record.unwrap();
        let Body::Sample(sample) = record.body else { panic!("{record:?}") };
        assert_eq!(record.task.tid, rustix::thread::gettid().as_raw_nonzero().get());
        assert_eq!((sample.event, sample.origin), (EventIndex(0), id));
        assert!(sample.ip > 0 && sample.raw.len() == 4, "a software event's raw bytes are a size and padding: {sample:?}");
        seen.push(sample.address);
    }
    seen.retain(|address| touched.contains(address));
    assert_eq!(seen, touched);
}

/// A one-page ring of a software event of this thread, with comm records, and the table to read it with. The mapping alone keeps the event. `None`, with the reason on stderr, where
/// perf_event_open(2) is not allowed.
fn open_ring(mut attr: perf_event_attr) -> Option<(Ring, EventTable)> {
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
    // SAFETY: the kernel writes one u64 through the pointer; the descriptor is new and nobody else's.
    let fd = unsafe {
        assert_eq!(perf_event_open_sys::ioctls::ID(fd, &mut id), 0);
        OwnedFd::from_raw_fd(fd)
    };
    let mut table = table(&[attr.sample_type]);
    table.ids = [(id, EventIndex(0))].into_iter().collect();
    Some((Ring::map(fd.as_fd(), rustix::param::page_size()).unwrap(), table))
}
