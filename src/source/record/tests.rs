//! Records of the writer in [`crate::source::record_writer`], handwritten records, and invalid bytes.

mod events;
mod real;

use super::*;
use crate::event::FileId;
use crate::session::{EventSpec, Role, Terms};
use crate::source::frame::{HEADER_BYTES, field, kind};
use crate::source::record_writer::RecordWriter;
use proptest::prelude::*;

pub const TASK: TaskId = TaskId { pid: 70, tid: 71 };
const CHILD: TaskId = TaskId { pid: 72, tid: 73 };

/// Returns a table of events with these layouts. Event n has the identifiers `100 + n` and `200 + n`.
pub fn table(layouts: &[u64]) -> EventTable {
    let spec = |&sample_type| EventSpec {
        name: "a:b".into(),
        role: Role::Tracepoint,
        sample_type,
        format: None,
        shown: true,
        terms: Terms::default(),
    };
    let ids = (0..layouts.len() as u16).flat_map(|n| [(u64::from(100 + n), EventIndex(n)), (u64::from(200 + n), EventIndex(n))]);
    EventTable { events: layouts.iter().map(spec).collect(), ids: ids.collect(), ..EventTable::default() }
}

fn read(table: &EventTable, bytes: &[u8]) -> Vec<Result<String, Malformed>> {
    Records::new(table, 3, bytes).map(|record| record.map(|record| format!("{record:?}"))).collect()
}

/// Returns the only record in the bytes.
fn only<'a>(table: &'a EventTable, bytes: &'a [u8]) -> Record<'a> {
    let mut records = Records::new(table, 3, bytes);
    let record = records.next().unwrap().unwrap();
    assert!(records.next().is_none());
    record
}

/// Returns the layouts with all combinations of the optional fields.
fn layouts() -> impl Iterator<Item = u64> {
    const OPTIONAL: [u64; 8] =
        [field::IP, field::ADDR, field::ID, field::STREAM_ID, field::CPU, field::PERIOD, field::CALLCHAIN, field::RAW];
    (0..256).map(|chosen| {
        field::NEEDED | OPTIONAL.iter().enumerate().map(|(at, bit)| if chosen >> at & 1 == 1 { *bit } else { 0 }).sum::<u64>()
    })
}

#[test]
fn a_handwritten_sample_is_decoded() {
    let table =
        table(&[field::NEEDED, field::NEEDED | field::IP | field::ADDR | field::CPU | field::PERIOD | field::CALLCHAIN | field::RAW]);
    let words: [u64; 14] = [
        9 | 0x4002 << 32 | 112 << 48, // PERF_RECORD_SAMPLE, misc, size
        101,                          // identifier
        0xffff_ffff_8100_0000,        // ip
        70 | 71 << 32,                // pid, tid
        123_456_789,                  // time
        0xdead_beef,                  // addr
        5,                            // cpu
        1,                            // period
        2,                            // callchain: two frames
        0xffff_ffff_ffff_ff80,
        0x40_1000,
        20 | 0x0201_0000 << 32, // raw: size, then bytes
        0x0a09_0807_0605_0403,
        0x1211_100f_0e0d_0c0b,
    ];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let record = only(&table, &bytes);
    assert_eq!((record.time, record.cpu, record.task), (Time(123_456_789), 5, TASK));
    let Body::Sample(sample) = record.body else { panic!("{record:?}") };
    assert_eq!((sample.event, sample.origin, sample.ip, sample.address), (EventIndex(1), 101, 0xffff_ffff_8100_0000, 0xdead_beef));
    assert_eq!(sample.raw, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]);
}

#[test]
fn a_handwritten_comm_record_is_decoded() {
    let table = table(&[field::NEEDED | field::CPU]);
    let mut bytes = vec![3, 0, 0, 0, 0, 0x20, 64, 0]; // PERF_RECORD_COMM, COMM_EXEC, 64 bytes
    for word in [72 | 73 << 32, u64::from_le_bytes(*b"made-up\0"), 0, 70 | 71 << 32, 99, 4, 100] {
        bytes.extend(u64::to_le_bytes(word));
    }
    let record = only(&table, &bytes);
    assert_eq!((record.time, record.cpu, record.task), (Time(99), 4, TASK));
    assert!(matches!(record.body, Body::Comm { task: CHILD, comm: b"made-up", exec: true }), "{record:?}");
}

#[test]
fn written_samples_of_every_layout_are_read_back() {
    for layout in layouts() {
        let table = table(&[field::NEEDED, layout]);
        for (raw, origin) in [(&b""[..], 101), (b"abcd", 101), (b"abcdefghijk", 201)] {
            let mut ring = RecordWriter::new(&table, 9);
            let chunk = ring.sample_from(origin, TASK, Time(55), raw).chunk();
            let record = only(&table, &chunk.bytes);
            let cpu = if layout & field::CPU == 0 { 3 } else { 9 };
            assert_eq!((record.time, record.cpu, record.task), (Time(55), cpu, TASK), "{layout:#x}");
            let Body::Sample(sample) = record.body else { panic!("{record:?}") };
            assert_eq!((sample.event, sample.origin), (EventIndex(1), origin));
            let raw: &[u8] = if layout & field::RAW == 0 { b"" } else { raw };
            assert!(sample.raw.starts_with(raw) && sample.raw.len() < raw.len() + 8, "{layout:#x}: {:?}", sample.raw);
        }
    }
}

#[test]
fn written_side_band_records_of_every_layout_are_read_back() {
    for layout in layouts() {
        let table = table(&[layout]);
        let mut ring = RecordWriter::new(&table, 9);
        ring.comm(CHILD, Time(1), b"fifteen-bytes-x", false).fork(CHILD, TASK, Time(2)).exit(CHILD, TASK, Time(3));
        ring.map(CHILD, Time(4), (0x1000, 0x2000, 0x3000), true, b"/lib/x.so").lost(17, CHILD, Time(5));
        let cpu = if layout & field::CPU == 0 { 3 } else { 9 };
        let wanted = [
            format!(
                "Record {{ time: Time(1), cpu: {cpu}, task: {CHILD:?}, body: Comm {{ task: {CHILD:?}, comm: {:?}, exec: false }} }}",
                b"fifteen-bytes-x"
            ),
            format!("Record {{ time: Time(2), cpu: {cpu}, task: {TASK:?}, body: Fork {{ child: {CHILD:?}, parent: {TASK:?} }} }}"),
            format!("Record {{ time: Time(3), cpu: {cpu}, task: {CHILD:?}, body: Exit {{ task: {CHILD:?} }} }}"),
            format!(
                "Record {{ time: Time(4), cpu: {cpu}, task: {CHILD:?}, body: Map {{ task: {CHILD:?}, start: 4096, len: 8192, offset: 12288, file: {:?}, executable: true, path: {:?} }} }}",
                FileId::default(),
                b"/lib/x.so"
            ),
            format!("Record {{ time: Time(5), cpu: {cpu}, task: {CHILD:?}, body: Lost {{ records: 17, after: Some(Time(4)) }} }}"),
        ];
        assert_eq!(read(&table, &ring.chunk().bytes), wanted.map(Ok), "{layout:#x}");
    }
}

#[test]
fn a_fault_has_its_offset_and_the_next_record_is_read() {
    let table = table(&[field::NEEDED, field::NEEDED | field::READ, field::TID | field::TIME]);
    let mut ring = RecordWriter::new(&table, 0);
    ring.record(5, 0, &[0; 24]); // PERF_RECORD_THROTTLE: skipped
    ring.sample_from(999, TASK, Time(1), b"");
    ring.sample_from(101, TASK, Time(2), b"");
    ring.record(kind::SAMPLE, 0, &100u64.to_le_bytes());
    ring.record(kind::LOST, 0, &100u64.to_le_bytes());
    ring.sample_from(100, TASK, Time(4), b"");
    ring.record(kind::SAMPLE, 0, &[0; 4]);
    let bytes = ring.chunk().bytes;
    let got: Vec<_> = read(&table, &bytes)
        .into_iter()
        .map(|record| record.map(|_| ()).map_err(|malformed| (malformed.offset, malformed.fault)))
        .collect();
    let wanted = [
        Err((32, Fault::UnknownEvent(999))),
        Err((64, Fault::Layout(table.events[1].sample_type))),
        Err((96, Fault::Short { kind: kind::SAMPLE, size: 16 })),
        Err((112, Fault::Short { kind: kind::LOST, size: 16 })),
        Ok(()),
        Err((160, Fault::Short { kind: kind::SAMPLE, size: 12 })),
    ];
    assert_eq!(got, wanted);
    let error = read(&table, &bytes)[0].clone().unwrap_err().to_string();
    assert_eq!(error, "the record at byte 32 of a chunk of CPU 3 is of an event that is not in the session (identifier 999)");
}

#[test]
fn an_invalid_size_ends_the_chunk() {
    let table = table(&[field::NEEDED]);
    let good = RecordWriter::new(&table, 0).sample_from(100, TASK, Time(1), b"").chunk().bytes;
    for (tail, fault) in [
        (vec![9, 0, 0, 0, 0, 0, 0, 0, 1], Fault::Size { size: 0, left: 9 }),
        (vec![9, 0, 0, 0, 0, 0, 7, 0, 1], Fault::Size { size: 7, left: 9 }),
        (vec![9, 0, 0, 0, 0, 0, 10, 0, 1], Fault::Size { size: 10, left: 9 }),
        (vec![9, 0, 0], Fault::Size { size: 8, left: 3 }),
    ] {
        let got: Vec<_> =
            Records::new(&table, 0, &[good.clone(), tail].concat()).map(|record| record.err().map(|malformed| malformed.fault)).collect();
        assert_eq!(got, [None, Some(fault)]);
    }
}

#[test]
fn invalid_lengths_inside_a_sample_are_rejected() {
    let table = table(&[field::NEEDED | field::CALLCHAIN, field::NEEDED | field::RAW]);
    for (id, len) in [(100u64, u64::MAX), (100, 1 << 61), (100, 1), (101, u64::from(u32::MAX)), (101, 5)] {
        let body: Vec<u8> = [id, 0, 7, len].iter().flat_map(|word| word.to_le_bytes()).collect();
        let bytes = RecordWriter::new(&table, 0).record(kind::SAMPLE, 0, &body).chunk().bytes;
        assert_eq!(
            read(&table, &bytes),
            [Err(Malformed { cpu: 3, offset: 0, fault: Fault::Short { kind: kind::SAMPLE, size: 40 } })],
            "{len}"
        );
    }
}

proptest! {
    /// Any bytes are read to the end or rejected, also after valid headers and identifiers.
    #[test]
    fn any_bytes_are_read_without_panic(
        layout in any::<u64>(),
        records in prop::collection::vec((0u32..20, any::<u16>(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..120)), 0..20),
        rest in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let table = table(&[layout | field::NEEDED]);
        let mut ring = RecordWriter::new(&table, 0);
        for (kind, misc, known, mut body) in records {
            if let (true, Some(id)) = (known, body.first_chunk_mut()) {
                *id = 100u64.to_le_bytes();
            }
            if let (true, Some(id)) = (known, body.last_chunk_mut()) {
                *id = 100u64.to_le_bytes();
            }
            ring.record(kind, misc, &body);
        }
        let mut bytes = ring.chunk().bytes;
        bytes.extend(rest);
        prop_assert!(read(&table, &bytes).len() <= bytes.len() / HEADER_BYTES + 1);
    }
}
