use super::*;
use crate::event::TaskId;
use crate::session::{EventSpec, EventTable, Role, Terms};
use crate::source::record::{Body, Records};
use proptest::prelude::*;

/// PERF_SAMPLE_* of `perf record -e raw_syscalls:*`.
const COMMON: u64 = field::IP | field::TID | field::TIME | field::CPU | field::PERIOD | field::RAW;
const SIDE_BAND: EventIndex = EventIndex(1);

fn event(sample_type: u64, ids: &[u64]) -> PerfEvent {
    PerfEvent { sample_type, sample_id_all: true, ids: ids.to_vec(), ..PerfEvent::default() }
}

/// Returns a record of this type with these words of 8 bytes.
fn record(kind: u32, misc: u16, words: &[u64], bytes: &[u8]) -> Vec<u8> {
    let body = [words.iter().flat_map(|word| word.to_le_bytes()).collect(), bytes.to_vec()].concat();
    let header = u64::from(kind) | u64::from(misc) << 32 | ((body.len() + HEADER_BYTES) as u64) << 48;
    [header.to_le_bytes().to_vec(), body].concat()
}

/// Returns the records that the engine reads of these records of one event with this layout.
fn read(event: PerfEvent, records: &[Vec<u8>]) -> Vec<String> {
    let spec = |role, sample_type| EventSpec { name: "a:b".into(), role, sample_type, format: None, shown: true, terms: Terms::default() };
    let events = vec![spec(Role::Tracepoint, layout(&event, 0)), spec(Role::SideBand, layout(&PerfEvent::default(), 0))];
    let ids = [EventIndex(0), SIDE_BAND].map(|event| (id(event), event));
    let table = EventTable { events, ids: ids.into_iter().collect(), ..EventTable::default() };
    let normalizer = Normalizer::new(vec![(event, Some(EventIndex(0)))], SIDE_BAND, 0);
    let mut out = Vec::new();
    for bytes in records {
        normalizer.append(&Frame::at(bytes, 0).unwrap(), &mut out).unwrap();
    }
    let text = |record: crate::source::Record| match record.body {
        Body::Sample(sample) => format!(
            "{} {} {} {} chain {:?} raw {:?}",
            record.time.0,
            record.cpu,
            record.task.tid,
            sample.event.0,
            sample.chain.chunks(8).map(|word| word[0]).collect::<Vec<_>>(),
            sample.raw
        ),
        body => format!("{} {} {} {body:?}", record.time.0, record.cpu, record.task.tid),
    };
    Records::new(&table, 99, &out).map(|record| text(record.unwrap())).collect()
}

/// A process and a thread as one word.
const fn pair(pid: u64, tid: u64) -> u64 {
    pid | tid << 32
}

#[test]
fn samples_of_any_layout_are_read() {
    let raw = [8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let expected = ["700 3 71 0 chain [] raw [1, 2, 3, 4, 5, 6, 7, 8]"];
    // IP, TID, TIME, ID, CPU, PERIOD: a command.
    let of_command = record(9, 0, &[0xdead, pair(70, 71), 700, 42, 3, 1], &raw);
    assert_eq!(read(event(COMMON | field::ID, &[41, 42]), &[of_command]), expected);
    // IDENTIFIER, IP, TID, TIME, CPU, PERIOD: the whole machine.
    let of_machine = record(9, 0, &[42, 0xdead, pair(70, 71), 700, 3, 1], &raw);
    assert_eq!(read(event(COMMON | field::IDENTIFIER, &[42]), &[of_machine]), expected);
    // One event needs no identifier, and no CPU.
    let alone = record(9, 0, &[pair(70, 71), 700], &raw);
    assert_eq!(read(event(field::TID | field::TIME | field::RAW, &[42]), &[alone]), [expected[0].replace(" 3 ", " 0 ")]);
    // IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD, READ of a group of two with all its fields, CALLCHAIN.
    let counters = [2, 10, 11, 1, 42, 0, 1, 43, 0];
    let words = [&[0xdead, pair(70, 71), 700, 0xbeef, 42, 44, 3, 1][..], &counters, &[2, 5, 6]].concat();
    let all = COMMON | field::ADDR | field::ID | field::STREAM_ID | field::READ | field::CALLCHAIN;
    let of_all = PerfEvent { read_format: 0b1_1111, ..event(all, &[42]) };
    assert_eq!(read(of_all, &[record(9, 0, &words, &raw)]), ["700 3 71 0 chain [5, 6] raw [1, 2, 3, 4, 5, 6, 7, 8]"]);
}

#[test]
fn other_records_get_task_time_and_cpu_at_their_end() {
    let trailer = [pair(70, 71), 700, 42, 3];
    let words = |own: &[u64]| [own, &trailer].concat();
    let maps: [u64; 4] = [pair(70, 71), 0x1000, 0x2000, 0];
    let of_command = || event(COMMON | field::ID, &[42]);
    let name = u64::from_le_bytes(*b"/bin/cat");
    let records = [
        record(kind::COMM, 0, &words(&[pair(70, 71), u64::from_le_bytes(*b"cat\0\0\0\0\0")]), &[]),
        record(kind::FORK, 0, &words(&[pair(72, 70), pair(72, 71), 700]), &[]),
        record(kind::LOST, 0, &words(&[42, 12]), &[]),
        record(MMAP, MISC_MMAP_DATA, &words(&[&maps[..], &[name, 0]].concat()), &[]),
        record(kind::MMAP2, 0, &words(&[&maps[..], &[pair(8, 1), 9, 2, 4, name, 0]].concat()), &[]),
        record(kind::MMAP2, MISC_MMAP_BUILD_ID, &words(&[&maps[..], &[20, 9, 2, 4, name, 0]].concat()), &[]),
    ];
    let map = |executable: bool, file: &str| {
        let path = b"/bin/cat";
        let task = TaskId { pid: 70, tid: 71 };
        format!(
            "700 3 71 Map {{ task: {task:?}, start: 4096, len: 8192, offset: 0, file: {file}, executable: {executable}, path: {path:?} }}"
        )
    };
    let read = read(of_command(), &records);
    assert_eq!(read[0], format!("700 3 71 Comm {{ task: {:?}, comm: {:?}, exec: false }}", TaskId { pid: 70, tid: 71 }, b"cat"));
    assert!(read[1].starts_with("700 3 71 Fork"), "{}", read[1]);
    assert_eq!(read[2], "700 3 71 Lost { records: 12, after: Some(Time(700)) }");
    assert_eq!(read[3], map(false, "FileId { device: (0, 0), inode: 0, generation: 0 }"));
    assert_eq!(read[4], map(true, "FileId { device: (8, 1), inode: 9, generation: 2 }"));
    assert_eq!(read[5], map(true, "FileId { device: (4294967295, 0), inode: 9, generation: 2 }"), "it has a build-id");
}

#[test]
fn what_perf_found_when_it_began_has_no_time() {
    let normalizer = Normalizer::new(vec![(event(COMMON | field::ID, &[42]), Some(EventIndex(0)))], SIDE_BAND, 0);
    let mut out = Vec::new();
    let mut append = |bytes: &[u8]| normalizer.append(&Frame::at(bytes, 0).unwrap(), &mut out);
    let comm = record(kind::COMM, 0, &[pair(70, 71), 0, 0, 0, 0, 0], &[]);
    assert_eq!(append(&comm), Ok(Some(Normalized { time: Time(0), cpu: 0, time_at: 32 })));
    let fork = record(kind::FORK, 0, &[pair(70, 1), pair(70, 1), 0, 0, 0, 0, 0], &[]);
    assert_eq!(append(&fork), Ok(None));
    let of_kernel = record(MMAP, 1, &[u64::MAX, 0, 100, 0, 0, 0, 0, 0, 0], &[]);
    assert_eq!(append(&of_kernel), Ok(None));
    assert_eq!(append(&record(9, 0, &[0, 0, 0, 77, 0, 0], &[0; 4])), Err(Fault::UnknownEvent(77)));
    assert_eq!(append(&record(9, 0, &[0, 0], &[])), Err(Fault::Short { kind: 9, size: 24 }));
    assert_eq!(out.len(), comm.len(), "records that are not used leave nothing");
}

proptest! {
    #[test]
    fn any_bytes_of_any_layout_are_rewritten_without_panic(
        kind in 1u32..15, misc: u16, body: Vec<u8>, sample_type in 0u64..1 << 17, read_format in 0u64..32, sample_id_all: bool
    ) {
        let event = PerfEvent { sample_type, read_format, sample_id_all, ids: vec![0, 1, 2], ..PerfEvent::default() };
        let normalizer = Normalizer::new(vec![(event.clone(), Some(EventIndex(0))), (event, None)], SIDE_BAND, 0);
        let bytes = record(kind, misc, &[], &body);
        let mut out = vec![1];
        match normalizer.append(&Frame::at(&bytes, 0).unwrap(), &mut out) {
            Ok(Some(done)) => {
                prop_assert_eq!(Frame::at(&out, 1).unwrap().size(), out.len() - 1);
                prop_assert!(done.time_at + 8 <= out.len());
            }
            _ => prop_assert_eq!(out.len(), 1),
        }
    }
}
