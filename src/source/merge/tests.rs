//! Rounds as a machine produces them, and rounds with late, lost and unreadable records.

use super::*;
use crate::bpf::record::tests::{returned, written};
use crate::source::frame::field;
use crate::source::instance::page::tests::PageWriter;
use crate::source::record::tests::{TASK, table};
use crate::source::record_writer::RecordWriter;
use proptest::prelude::*;

const LAYOUT: u64 = field::NEEDED | field::IP | field::CPU | field::RAW;

fn synthesized(fd: i32) -> Synthesized {
    Synthesized::NoTask { tid: fd }
}

/// Formats a record as a line of its time, CPU and distinguishing content.
fn line(record: Record<'_>) -> String {
    match record.body {
        Body::Sample(sample) => format!("{}.{} {}", record.time.0, record.cpu, String::from_utf8_lossy(sample.raw).trim_end_matches('\0')),
        Body::Lost { records, after } => format!("{}.{} lost {records} after {:?}", record.time.0, record.cpu, after.map(|time| time.0)),
        Body::Synthesized(Synthesized::NoTask { tid }) => format!("{} synthesized {tid}", record.time.0),
        body => format!("{body:?}"),
    }
}

fn released(merge: &mut Merge, table: &EventTable) -> Vec<String> {
    let mut lines = Vec::new();
    while merge.release(table, 2, |record| lines.push(line(record))) {}
    lines
}

fn rest(merge: &mut Merge, table: &EventTable) -> Vec<String> {
    let mut lines = Vec::new();
    while merge.release_all(table, 2, |record| lines.push(line(record))) {}
    lines
}

/// Returns a round with one chunk per CPU that has samples at these times. A sample's text is its index in the chunk.
fn round(table: &EventTable, started: u64, rings: &[&[u64]]) -> Round {
    let chunks = rings.iter().enumerate().filter(|(_, times)| !times.is_empty()).map(|(cpu, times)| {
        let mut ring = RecordWriter::new(table, cpu as u32);
        for (at, time) in times.iter().enumerate() {
            ring.sample(EventIndex(0), TASK, Time(*time), at.to_string().as_bytes());
        }
        ring.chunk()
    });
    Round { started: Time(started), chunks: chunks.collect(), synthesized: Vec::new() }
}

#[test]
fn release_emits_records_older_than_the_previous_round_s_start() {
    let table = table(&[LAYOUT]);
    let mut merge = Merge::new();
    merge.add(&table, round(&table, 100, &[&[10, 30, 101], &[20, 40]]));
    assert!(released(&mut merge, &table).is_empty(), "one round proves nothing");
    assert_eq!(merge.horizon(), Time(0));
    merge.add(&table, round(&table, 200, &[&[105, 110], &[99, 100, 120]]));
    assert_eq!(released(&mut merge, &table), ["10.0 0", "20.1 0", "30.0 1", "40.1 1", "99.1 0"]);
    assert_eq!(merge.horizon(), Time(100));
    merge.add(&table, round(&table, 300, &[]));
    assert_eq!(released(&mut merge, &table), ["100.1 1", "101.0 2", "105.0 0", "110.0 1", "120.1 2"]);
    assert!(rest(&mut merge, &table).is_empty());
    assert_eq!(*merge.trouble(), Trouble::default());
}

#[test]
fn release_all_emits_records_up_to_the_largest_time() {
    let table = table(&[LAYOUT]);
    let mut merge = Merge::new();
    merge.add(&table, round(&table, 0, &[&[7, u64::MAX], &[8]]));
    assert_eq!(rest(&mut merge, &table), ["7.0 0", "8.1 0", "18446744073709551615.0 1"]);
    assert_eq!(merge.horizon(), Time(u64::MAX));
    assert!(rest(&mut merge, &table).is_empty());
}

#[test]
fn a_ring_is_sorted_by_time_and_equal_times_keep_their_order() {
    let table = table(&[LAYOUT]);
    let mut merge = Merge::new();
    merge.add(&table, round(&table, 50, &[&[10, 30, 20, 30, 30], &[30]]));
    merge.add(&table, round(&table, 60, &[&[30, 52], &[51]]));
    merge.add(&table, round(&table, 70, &[&[51]]));
    assert_eq!(
        released(&mut merge, &table),
        ["10.0 0", "20.0 2", "30.0 1", "30.0 3", "30.0 4", "30.1 0", "30.0 0", "51.1 0", "51.0 0", "52.0 1"]
    );
    assert_eq!(merge.trouble().late, 0);
}

#[test]
fn a_late_record_is_emitted_and_counted() {
    let table = table(&[LAYOUT]);
    let mut merge = Merge::new();
    merge.add(&table, round(&table, 100, &[&[50]]));
    merge.add(&table, round(&table, 200, &[]));
    assert_eq!(released(&mut merge, &table), ["50.0 0"]);
    merge.add(&table, round(&table, 300, &[&[99, 100], &[98]]));
    assert_eq!(released(&mut merge, &table), ["98.1 0", "99.0 0", "100.0 1"]);
    assert_eq!(merge.trouble().late, 2);
}

#[test]
fn a_gap_is_placed_before_the_sample_that_follows_it() {
    let table = table(&[LAYOUT]);
    let mut merge = Merge::new();
    let mut ring = RecordWriter::new(&table, 0);
    ring.lost(1, TASK, Time(4)).sample(EventIndex(0), TASK, Time(5), b"a");
    merge.add(&table, ring.round(Time(10)));
    // Older kernels stamp the LOST record later than the sample for which it is written.
    ring.lost(7, TASK, Time(33)).sample(EventIndex(0), TASK, Time(30), b"b").lost(8, TASK, Time(40)).sample(
        EventIndex(0),
        TASK,
        Time(40),
        b"c",
    );
    let mut round = ring.round(Time(50));
    round.chunks.push(RecordWriter::new(&table, 1).sample(EventIndex(0), TASK, Time(31), b"x").chunk());
    merge.add(&table, round);
    let wanted =
        ["4.0 lost 1 after None", "5.0 a", "30.0 lost 7 after Some(5)", "30.0 b", "31.1 x", "40.0 lost 8 after Some(30)", "40.0 c"];
    assert_eq!(rest(&mut merge, &table), wanted);
}

/// The records of BPF programs have their time in their raw bytes, so the LOST record before one has no time.
#[test]
fn a_gap_without_a_time_takes_that_of_the_next_sample() {
    let table = table(&[field::PROGRAM_OUTPUT]);
    let mut merge = Merge::new();
    let mut ring = RecordWriter::new(&table, 0);
    let call = |end| written(&returned(TASK.tid, 0, 1, end), &[]);
    ring.sample(EventIndex(0), TASK, Time(0), &call(5)).lost(7, TASK, Time(0)).sample(EventIndex(0), TASK, Time(0), &call(9));
    merge.add(&table, ring.round(Time(10)));
    let mut emitted = Vec::new();
    merge.release_all(&table, usize::MAX, |record| {
        emitted.push((record.time, record.task.tid, matches!(record.body, Body::Lost { after: Some(Time(5)), .. })))
    });
    assert_eq!(emitted, [(Time(5), TASK.tid, false), (Time(9), 0, true), (Time(9), TASK.tid, false)]);
    assert_eq!(merge.last_of_ring(0), Some(Time(9)));
}

#[test]
fn synthesized_records_are_merged_by_time() {
    let table = table(&[LAYOUT]);
    let mut merge = Merge::new();
    merge.synthesized(Time(15), synthesized(3));
    let mut first = round(&table, 100, &[&[10, 20, 30]]);
    first.synthesized = vec![(Time(20), synthesized(2)), (Time(0), synthesized(1))];
    merge.add(&table, first);
    merge.add(&table, round(&table, 200, &[]));
    assert_eq!(released(&mut merge, &table), ["0 synthesized 1", "10.0 0", "15 synthesized 3", "20 synthesized 2", "20.0 1", "30.0 2"]);
    merge.synthesized(Time(250), synthesized(4));
    assert!(released(&mut merge, &table).is_empty());
    assert_eq!(rest(&mut merge, &table), ["250 synthesized 4"]);
    assert_eq!(merge.horizon(), Time(250));
    assert_eq!(merge.trouble().late, 0);
}

#[test]
fn buffers_are_returned_when_all_their_records_are_emitted() {
    let table = table(&[LAYOUT]);
    let mut merge = Merge::new();
    merge.add(&table, round(&table, 100, &[&[10], &[20, 150]]));
    merge.add(&table, round(&table, 200, &[]));
    released(&mut merge, &table);
    let spent = merge.spent();
    assert_eq!(spent.chunks.len(), 1, "the other chunk has a record that is not due");
    assert!(spent.chunks[0].bytes.is_empty() && spent.chunks[0].bytes.capacity() > 0);
    assert!(merge.spent().chunks.is_empty());
    rest(&mut merge, &table);
    assert_eq!(merge.spent().chunks.len(), 1);
}

#[test]
fn unreadable_records_are_counted_and_the_others_emitted() {
    let table = table(&[LAYOUT]);
    let mut ring = RecordWriter::new(&table, 2);
    ring.sample_from(999, TASK, Time(1), b"").sample(EventIndex(0), TASK, Time(2), b"a");
    // The record has its time stamp but lacks further fields.
    let cut: Vec<u8> = [100u64, 0, 0, 3].iter().flat_map(|word| word.to_le_bytes()).collect();
    ring.record(kind::SAMPLE, 0, &cut).sample(EventIndex(0), TASK, Time(4), b"b");
    let mut chunk = ring.chunk();
    chunk.bytes.extend([9, 0, 0, 0]);
    let mut merge = Merge::new();
    merge.add(&table, Round { started: Time(10), chunks: vec![chunk], synthesized: Vec::new() });
    assert_eq!(rest(&mut merge, &table), ["2.2 a", "4.2 b"]);
    let first = Malformed { cpu: 2, offset: 0, fault: Fault::UnknownEvent(999) };
    assert_eq!(*merge.trouble(), Trouble { late: 0, unreadable: 3, first: Some(first) });
}

/// A record that the kernel writes: its time stamp, its CPU, and the delay until it is in the ring.
type DelayedRecord = (u64, usize, u64);

const ROUND_NS: u64 = 1000;

/// Returns the rounds of a simulated machine. Each round begins `ROUND_NS` after the one before it and drains ring n
/// after `n * 50` more. A ring has its records in the order in which they were written, not in the order of their time
/// stamps.
fn machine(table: &EventTable, rings: usize, written: &[DelayedRecord]) -> Vec<Round> {
    let last = written.iter().map(|(stamp, _, delay)| stamp + delay).max().unwrap_or(0) / ROUND_NS + 2;
    let in_round = |n: u64, cpu: usize| {
        let drained = |n: u64| n * ROUND_NS + cpu as u64 * 50;
        let from = if n == 0 { 0 } else { drained(n - 1) };
        let mut times: Vec<_> =
            written.iter().filter(|w| w.1 == cpu && (from..drained(n)).contains(&(w.0 + w.2))).map(|w| (w.0 + w.2, w.0)).collect();
        times.sort_by_key(|time| time.0);
        times.into_iter().map(|time| time.1).collect::<Vec<_>>()
    };
    let rings_of = |n| (0..rings).map(|cpu| in_round(n, cpu)).collect::<Vec<_>>();
    (0..=last).map(|n| round(table, n * ROUND_NS, &rings_of(n).iter().map(Vec::as_slice).collect::<Vec<_>>())).collect()
}

proptest! {
    #[test]
    fn every_record_is_emitted_once_in_time_order(written in prop::collection::vec((0u64..20_000, 0usize..5, 0u64..400), 0..300)) {
        let table = table(&[LAYOUT]);
        let mut merge = Merge::new();
        let mut got = Vec::new();
        let mut horizon = Time(0);
        for round in machine(&table, 5, &written) {
            merge.add(&table, round);
            let before = got.len();
            while merge.release(&table, 3, |record| got.push((record.time.0, record.cpu as usize))) {}
            prop_assert!(got[before..].iter().all(|(time, _)| (horizon.0..merge.horizon().0).contains(time)));
            horizon = merge.horizon();
        }
        while merge.release_all(&table, 3, |record| got.push((record.time.0, record.cpu as usize))) {}
        prop_assert!(got.is_sorted_by_key(|record| record.0));
        prop_assert_eq!(merge.trouble(), &Trouble::default());
        let mut wanted: Vec<_> = written.iter().map(|w| (w.0, w.1)).collect();
        wanted.sort();
        got.sort();
        prop_assert_eq!(got, wanted);
    }
}

/// Returns a table in which events 0 and 1 have the tracepoint types 500 and 501.
fn by_instance() -> EventTable {
    let mut table = table(&[0, 0, LAYOUT]);
    table.types = [(500, EventIndex(0)), (501, EventIndex(1))].into_iter().collect();
    table
}

/// Returns the bytes of an instance's record with this type, thread ID and text.
fn traced(kind: u16, tid: i32, text: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &[0, 0], &tid.to_le_bytes(), text].concat()
}

fn pages(cpu: u32, pages: &[Vec<u8>]) -> Chunk {
    Chunk { cpu, form: Form::Pages, bytes: pages.concat() }
}

#[test]
fn records_of_an_instance_are_merged_with_those_of_perf() {
    let table = by_instance();
    let mut merge = Merge::new();
    let first = PageWriter::new(10).record(10, &traced(500, 7, b"abcd")).record(30, &traced(501, 8, b"efgh")).page(None);
    let second = PageWriter::new(40).record(41, &traced(500, 7, b"ijkl")).page(Some(Missed(Some(3))));
    let mut ring = RecordWriter::new(&table, 0);
    ring.sample(EventIndex(2), TASK, Time(20), b"perf").sample(EventIndex(2), TASK, Time(40), b"perf");
    let round = Round { started: Time(50), chunks: vec![ring.chunk(), pages(0, &[first, second])], synthesized: Vec::new() };
    merge.add(&table, round);
    assert_eq!(merge.gaps_ahead().count(), 0, "no call is lost by that");
    assert_eq!(merge.last_of_ring(0), Some(Time(40)));
    let mut seen = Vec::new();
    merge.release_all(&table, usize::MAX, |record| {
        seen.push(match record.body {
            Body::Sample(sample) => format!("{}: {} {:?}", record.time.0, sample.event.0, record.task.tid),
            Body::Missed { records, after } => format!("{}: missed {records:?} after {after:?}", record.time.0),
            body => format!("{body:?}"),
        });
    });
    assert_eq!(seen, ["10: 0 7", "20: 2 71", "30: 1 8", "40: 2 71", "40: missed Some(3) after Some(Time(30))", "41: 0 7"]);
    assert_eq!((*merge.trouble(), merge.spent().chunks.len()), (Trouble::default(), 2));
}

#[test]
fn unreadable_records_of_an_instance_are_counted() {
    let table = by_instance();
    let mut merge = Merge::new();
    let strange = PageWriter::new(10).record(10, &traced(502, 7, b"abcd")).record(11, b"abcd").record(12, &traced(500, 7, b"")).page(None);
    let cut = PageWriter::new(20).record(20, &traced(500, 7, b"abcd")).page(None);
    merge.add(&table, Round { chunks: vec![pages(1, &[strange, cut[..30].to_vec()])], ..Round::default() });
    assert_eq!(rest(&mut merge, &table).len(), 1);
    let trouble = *merge.trouble();
    let first = Malformed { cpu: 1, offset: 16, fault: Fault::UnknownEvent(502) };
    assert_eq!((trouble.unreadable, trouble.first), (3, Some(first)));
}
