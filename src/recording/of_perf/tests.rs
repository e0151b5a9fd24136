use super::*;
use crate::recording::layout::{ATTR_BYTES, HEADER_BYTES, Section, attr_bytes, feature};
use crate::recording::tracing_data::TracingData;
use crate::session::{Role, Scope};
use crate::source::frame::field;
use crate::source::merge::Merge;
use crate::source::record::Body;
use crate::sys::perf::AttrNumbers;
use std::io::Write;

const LAYOUT: u64 = field::IP | field::TID | field::TIME | field::ID | field::CPU | field::RAW;
/// The bits `enable_on_exec` and `sample_id_all`.
const OF_COMMAND: u64 = 1 << 12 | 1 << 18;
const ENTER: u64 = 5;
const EXIT: u64 = 6;

/// Returns a file with these records, of the events `raw_syscalls:sys_enter` and `sys_exit` with the identifiers 5 and
/// 6, as a machine of this architecture writes it.
fn file(records: &[Vec<u8>], arch: &str, flags: u64) -> (Regular, Header) {
    let format = |name: &str, id: u64| {
        let field = |name: &str, offset: u32, size: u32| format!("\tfield:long {name};\toffset:{offset};\tsize:{size};\tsigned:1;\n");
        format!("name: {name}\nID: {id}\nformat:\n{}{}", field("id", 8, 8), field(if id == 1 { "args[6]" } else { "ret" }, 16, 8))
            .into_bytes()
    };
    let tracing = TracingData {
        systems: vec![("raw_syscalls".into(), vec![format("sys_enter", 1), format("sys_exit", 2)])],
        ..TracingData::default()
    };
    let text = [&64u32.to_le_bytes()[..], arch.as_bytes(), &[0; 64]].concat();
    let sections = [(feature::TRACING_DATA, tracing.to_bytes()), (feature::ARCH, text)];
    let attrs = Section { offset: HEADER_BYTES, size: 2 * (ATTR_BYTES as u64 + 16) };
    let ids_at = attrs.offset + attrs.size;
    let mut head = Vec::new();
    for (at, config) in [(0, 1), (1, 2)] {
        head.extend(attr_bytes(&AttrNumbers { kind: attrs::TRACEPOINT, config, flags, ..AttrNumbers::default() }, LAYOUT));
        head.extend(Section { offset: ids_at + 8 * at, size: 8 }.to_bytes());
    }
    head.extend([ENTER, EXIT].iter().flat_map(|id| id.to_le_bytes()));
    let data = Section { offset: HEADER_BYTES + head.len() as u64, size: records.concat().len() as u64 };
    let mut header = Header { attr_bytes: ATTR_BYTES as u64 + 16, attrs, data, ..Header::default() };
    let mut at = data.offset + data.size + 16 * sections.len() as u64;
    let (mut table, mut contents) = (Vec::new(), Vec::new());
    for (number, bytes) in &sections {
        header.add_feature(*number);
        table.extend(Section { offset: at, size: bytes.len() as u64 }.to_bytes());
        contents.extend(bytes);
        at += bytes.len() as u64;
    }
    let bytes = [&header.to_bytes()[..], &head, &records.concat(), &table, &contents].concat();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    (Regular { file, size: bytes.len() as u64 }, header)
}

fn open(records: &[Vec<u8>]) -> PerfReader {
    let (file, header) = file(records, "x86_64", OF_COMMAND);
    PerfReader::open(file, &header).unwrap()
}

fn record(kind: u32, words: &[u64]) -> Vec<u8> {
    let header = u64::from(kind) | (8 * words.len() as u64 + 8) << 48;
    [&[header], words].concat().iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns a sample of this event, without raw bytes.
fn sample(id: u64, time: u64, cpu: u64) -> Vec<u8> {
    record(9, &[0, 70 | 70 << 32, time, id, cpu, 0])
}

fn mark() -> Vec<u8> {
    record(kind::FINISHED_ROUND, &[])
}

/// Returns the times of the samples in the order in which the engine gets them, the facts, and the number of records
/// that came too late.
fn merged(mut reader: PerfReader) -> (Vec<u64>, Vec<Synthesized>, u64) {
    let table = reader.begin().session.events.clone();
    let (mut merge, mut times, mut facts) = (Merge::new(), Vec::new(), Vec::new());
    let mut take = |record: crate::source::Record| match record.body {
        Body::Sample(_) => times.push(record.time.0),
        Body::Synthesized(fact) => facts.push(fact.clone()),
        _ => {}
    };
    while let Some(Input::Round(round)) = reader.next_input() {
        merge.add(&table, round);
        merge.release(&table, usize::MAX, &mut take);
    }
    merge.release_all(&table, usize::MAX, &mut take);
    (times, facts, merge.trouble().late)
}

#[test]
fn records_are_in_order_as_far_as_perf_promises_it() {
    // The second round has a record that is older than the newest of the first one, but not than the one before.
    let rounds = [
        vec![sample(ENTER, 10, 0), sample(EXIT, 20, 0), sample(ENTER, 15, 1), mark()],
        vec![sample(ENTER, 30, 0), sample(EXIT, 12, 1), sample(ENTER, 35, 1), mark()],
        vec![sample(EXIT, 40, 0), sample(EXIT, 25, 1), mark()],
        vec![sample(EXIT, 36, 1), sample(EXIT, 50, 1)],
    ];
    assert_eq!(merged(open(&rounds.concat())), (vec![10, 12, 15, 20, 25, 30, 35, 36, 40, 50], vec![], 0));
}

#[test]
fn a_file_without_marks_is_read_in_rounds_of_bounded_size() {
    let count = UNMARKED_ROUND_BYTES as u64 / 64 * 4;
    let records: Vec<Vec<u8>> = (1..=count).map(|time| sample(ENTER, time, time % 3)).collect();
    let mut reader = open(&records);
    let mut largest = 0;
    while let Some(Input::Round(round)) = reader.next_input() {
        largest = largest.max(round.bytes());
    }
    assert!((UNMARKED_ROUND_BYTES..UNMARKED_ROUND_BYTES + 100).contains(&largest), "{largest}");
    let (times, _, late) = merged(open(&records));
    assert_eq!((times.len() as u64, times.is_sorted(), late), (count, true, 0));
}

#[test]
fn lost_records_are_counted_once() {
    let lost = |records: u64| record(2, &[ENTER, records, 70, 21, ENTER, 0]);
    let counted = |records: u64, id: u64| record(13, &[records, 0, 0, id, 0]);
    let side_band = EventIndex(2);
    let (_, facts, _) = merged(open(&[sample(ENTER, 20, 0), lost(7), sample(ENTER, 21, 0)]));
    assert_eq!(facts, [Synthesized::Lost { event: side_band, records: 7 }]);
    // perf 6.1 and later read the counts of the events, too.
    let (_, facts, _) = merged(open(&[sample(ENTER, 20, 0), lost(7), sample(ENTER, 21, 0), counted(4, ENTER), counted(2, EXIT)]));
    let expected = [(0, 4), (1, 2), (2, 1)].map(|(event, records)| Synthesized::Lost { event: EventIndex(event), records });
    assert_eq!(facts, expected);
    assert_eq!(merged(open(&[sample(ENTER, 20, 0)])).1, []);
}

#[test]
fn the_session_is_that_of_the_recorded_machine() {
    let session = |arch: &str, flags: u64, records: &[Vec<u8>]| {
        let (file, header) = file(records, arch, flags);
        PerfReader::open(file, &header).map(|reader| reader.begin().session.clone())
    };
    let found = session("aarch64", OF_COMMAND, &[sample(ENTER, 1, 0)]).unwrap();
    assert_eq!((found.abi, found.scope), (crate::event::Abi::Aarch64, Scope::Command));
    let roles: Vec<Role> = found.events.events.iter().map(|spec| spec.role).collect();
    assert_eq!(roles, [Role::RawEnter, Role::RawExit, Role::SideBand]);
    let map = |task: u64| record(kind::THREAD_MAP, &[1, task, 0, 0]);
    let of = |task: u64| session("x86_64", 1 << 18, &[map(task), sample(ENTER, 1, 0)]).unwrap().scope;
    assert_eq!((of(u64::MAX), of(70)), (Scope::System, Scope::Tasks));
    assert!(session("s390x", 0, &[sample(ENTER, 1, 0)]).unwrap_err().contains("was recorded on s390x"));
    assert!(session("x86_64", 0, &[]).unwrap_err().contains("was not completed"));
}

#[test]
fn what_cannot_be_read_is_said_and_the_rest_is_shown() {
    let mut bad = vec![sample(ENTER, 10, 0)];
    bad.extend((0..300).map(|_| sample(77, 11, 0)));
    let mut reader = open(&[bad, vec![sample(EXIT, 12, 0)]].concat());
    while reader.next_input().is_some() {}
    assert_eq!((reader.damages().len(), reader.unreadable()), (DAMAGES_MAX, 300 - DAMAGES_MAX as u64));
    let first = reader.damages()[0].to_string();
    assert!(first.ends_with("is of an event that is not in the session (identifier 77)"), "{first}");
}
