//! Records that the running kernel writes into perf rings.

use super::table;
use crate::event::{EventIndex, Time};
use crate::session::EventTable;
use crate::source::frame::field;
use crate::source::record::{Body, Records};
use crate::sys::ring::tests::{open_ring, touch_new_pages};
use perf_event_open_sys::bindings::{PERF_COUNT_SW_DUMMY, PERF_COUNT_SW_PAGE_FAULTS, perf_event_attr};

/// Returns a table of one event with this layout and identifier.
fn table_of(layout: u64, id: u64) -> EventTable {
    EventTable { ids: [(id, EventIndex(0))].into_iter().collect(), ..table(&[layout]) }
}

/// Reads the kernel's records of this thread's comm, which changes often enough to wrap the smallest ring many times.
#[test]
fn side_band_records_of_the_kernel_are_decoded() {
    let layout = field::NEEDED | field::CPU;
    let attr = perf_event_attr { config: u64::from(PERF_COUNT_SW_DUMMY), sample_type: layout, ..perf_event_attr::default() };
    let Some((mut ring, id)) = open_ring(attr) else { return };
    let table = table_of(layout, id);
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

/// Reads the kernel's samples of page faults at known addresses, with all optional fields.
#[test]
fn samples_of_the_kernel_are_decoded() {
    const OPTIONAL: u64 =
        field::IP | field::ADDR | field::ID | field::STREAM_ID | field::CPU | field::PERIOD | field::CALLCHAIN | field::RAW;
    let layout = field::NEEDED | OPTIONAL;
    let mut attr = perf_event_attr { config: u64::from(PERF_COUNT_SW_PAGE_FAULTS), sample_type: layout, ..perf_event_attr::default() };
    attr.__bindgen_anon_1.sample_period = 1;
    let Some((mut ring, id)) = open_ring(attr) else { return };
    let table = table_of(layout, id);
    let touched = touch_new_pages(8);
    let mut bytes = Vec::new();
    ring.drain(&mut bytes).unwrap();
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
