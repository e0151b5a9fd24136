//! Rewrites the records of a ring for a file, where nothing else says which ring they come from: each record gets its
//! time, its task and its CPU, in the layout that [`file_layout`] returns.
//!
//! The kernel writes these fields only if an event requests them. rtrace's BPF programs write time and task into their
//! own bytes instead, and the CPU is that of the ring. The records of these programs are packed
//! ([`crate::bpf::record::packed`]); [`super::restore`] reads them.

use super::bytes_of_pair;
use super::chunk::Chunk;
use super::frame::{Fault, Frame, HEADER_BYTES, Stamp, field, kind};
use super::record::{Body, Malformed, Sample};
use crate::bpf::record::{self, packed};
use crate::event::{TaskId, Time};
use crate::session::EventTable;

/// The layout of a packed record, apart from its stack: `IDENTIFIER, IP, TID, TIME, RAW`. The address is zero: `perf
/// script` refuses files whose software events have none. The CPU is in the packed bytes.
const PACKED: u64 = field::NEEDED | field::IP | field::RAW;

/// What [`append`] did with the records of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// The number of samples that were appended.
    pub samples: u64,
    /// The number of other records that were appended.
    pub others: u64,
    /// The number of samples that are calls from which nothing follows for later records
    /// ([`crate::bpf::record::is_plain`]).
    pub plain: u64,
    /// The number of records that say that others were lost.
    pub gaps: u64,
    /// Records that could not be read, and are missing in the file. If the size of a record is invalid, the rest of the
    /// chunk counts as one.
    pub unreadable: u64,
    /// The first unreadable record.
    pub first: Option<Malformed>,
    /// The times of the oldest and the newest sample.
    pub span: Option<(Time, Time)>,
}

/// Returns whether the records of an event are packed in a file: those of BPF programs.
pub fn is_packed(layout: u64) -> bool {
    layout & !field::STACK == field::PROGRAM_OUTPUT
}

/// Returns the sample layout of an event's records in a file. The records of an event that is read from a tracefs
/// instance have no layout (0), there either.
pub fn file_layout(layout: u64) -> u64 {
    match layout & !field::STACK {
        0 => 0,
        field::PROGRAM_OUTPUT => layout & field::STACK | PACKED,
        _ => layout & !(field::ID | field::STREAM_ID) | field::NEEDED | field::CPU,
    }
}

/// Returns the layout that the records of an event have when they were read from a file: that of the ring if they are
/// packed in the file, and otherwise that of the file.
pub fn restored_layout(layout: u64) -> u64 {
    if is_packed(layout) { layout } else { file_layout(layout) }
}

/// Appends the records of a chunk of perf records to `out`, in the layouts that [`file_layout`] returns for those of
/// the table. Records that rtrace does not decode are left out.
pub fn append(table: &EventTable, chunk: &Chunk, out: &mut Vec<u8>) -> Rewritten {
    let mut done = Rewritten::default();
    // The place of the time of a gap, which is that of the record behind it.
    let mut gap: Option<usize> = None;
    let mut at = 0;
    while at < chunk.bytes.len() {
        let offset = at;
        let malformed = |fault| Malformed { cpu: chunk.cpu, offset, fault };
        let frame = match Frame::at(&chunk.bytes, at) {
            Ok(frame) => frame,
            Err(fault) => {
                done.skip(malformed(fault));
                break;
            }
        };
        at += frame.size();
        let begin = out.len();
        let stamp = match frame.stamp(table) {
            Ok(None) => continue,
            Ok(Some(stamp)) => rewrite(&frame, table, stamp, chunk.cpu, out).map(|is_plain| {
                done.plain += u64::from(is_plain);
                stamp
            }),
            Err(fault) => Err(fault),
        };
        let stamp = match stamp {
            Ok(stamp) => stamp,
            Err(fault) => {
                out.truncate(begin);
                done.skip(malformed(fault));
                continue;
            }
        };
        if let Some(place) = gap.take().and_then(|place| out.get_mut(place..)?.first_chunk_mut::<8>()) {
            *place = u64::from_le_bytes(*place).min(stamp.time.0).to_le_bytes();
        }
        match frame.kind {
            kind::SAMPLE => {
                done.samples += 1;
                let (oldest, newest) = done.span.unwrap_or((stamp.time, stamp.time));
                done.span = Some((oldest.min(stamp.time), newest.max(stamp.time)));
            }
            _ => done.others += 1,
        }
        let is_gap = matches!(frame.kind, kind::LOST | kind::LOST_SAMPLES);
        done.gaps += u64::from(is_gap);
        gap = is_gap.then(|| out.len() - trailing_time(table.get(stamp.event).map_or(0, |spec| spec.sample_type)));
    }
    done
}

impl Rewritten {
    fn skip(&mut self, which: Malformed) {
        self.unreadable += 1;
        self.first.get_or_insert(which);
    }
}

/// Appends one record. `cpu` is that of the ring. Returns whether it is a call from which nothing follows.
fn rewrite(frame: &Frame, table: &EventTable, stamp: Stamp, cpu: u32, out: &mut Vec<u8>) -> Result<bool, Fault> {
    let layout = table.get(stamp.event).map_or(0, |spec| spec.sample_type);
    let record = frame.read(table, stamp, cpu)?;
    let begin = out.len();
    let mut is_plain = false;
    out.extend_from_slice(&[0; HEADER_BYTES]);
    match &record.body {
        Body::Sample(sample) if is_packed(layout) => {
            is_plain = record::is_plain(sample.raw);
            append_packed(sample, record.task, stamp.time, record.cpu, layout, out);
        }
        Body::Sample(sample) => append_sample(sample, record.task, stamp.time, record.cpu, file_layout(layout), out),
        _ => {
            let own = frame.body.len() - frame.trailer_bytes(layout);
            let cpu = bytes_of_pair(record.cpu as i32, 0);
            out.extend(&frame.body[..own]);
            // Tools read the trailer from its end, so what stands before it is the record's own.
            out.extend(Some(cpu).filter(|_| is_packed(layout)).into_iter().flatten());
            out.extend(bytes_of_pair(record.task.pid, record.task.tid));
            out.extend(stamp.time.0.to_le_bytes());
            out.extend(Some(cpu).filter(|_| !is_packed(layout)).into_iter().flatten());
            out.extend(frame.body.last_chunk::<8>().unwrap_or(&[0; 8]));
        }
    }
    let size = out.len() - begin;
    let size = u16::try_from(size).map_err(|_| Fault::Large { size })?;
    let header = u64::from(frame.kind) | u64::from(frame.misc) << 32 | u64::from(size) << 48;
    out[begin..][..HEADER_BYTES].copy_from_slice(&header.to_le_bytes());
    Ok(is_plain)
}

/// Returns the distance of the time from the end of a rewritten record that is no sample: `TIME, CPU, IDENTIFIER` end
/// it, or `TIME, IDENTIFIER` if the event's samples have no CPU.
fn trailing_time(layout: u64) -> usize {
    if is_packed(layout) { 16 } else { 24 }
}

/// Appends the fields of a sample whose raw bytes are packed. `layout` is that of the ring.
fn append_packed(sample: &Sample, task: TaskId, time: Time, cpu: u32, layout: u64, out: &mut Vec<u8>) {
    let mut head = [0; 32];
    head[..8].copy_from_slice(&sample.origin.to_le_bytes());
    head[16..24].copy_from_slice(&bytes_of_pair(task.pid, task.tid));
    head[24..].copy_from_slice(&time.0.to_le_bytes());
    out.extend_from_slice(&head);
    if layout & field::CALLCHAIN != 0 {
        out.extend((sample.chain.len() as u64 / 8).to_le_bytes());
        out.extend_from_slice(sample.chain);
    }
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    packed::pack(sample.raw, cpu, time, task, out);
    out.resize(begin + (out.len() - begin).next_multiple_of(8), 0);
    let size = (out.len() - begin - 4) as u32;
    out[begin..begin + 4].copy_from_slice(&size.to_le_bytes());
    out.extend_from_slice(sample.dump);
}

/// Appends the fields of a sample in the order of perf_event_open(2). `layout` is that of the file.
fn append_sample(sample: &Sample, task: TaskId, time: Time, cpu: u32, layout: u64, out: &mut Vec<u8>) {
    let optional = |bit: u64, word: u64, out: &mut Vec<u8>| {
        if layout & bit != 0 {
            out.extend(word.to_le_bytes());
        }
    };
    out.extend(sample.origin.to_le_bytes());
    optional(field::IP, sample.ip, out);
    out.extend(bytes_of_pair(task.pid, task.tid));
    out.extend(time.0.to_le_bytes());
    optional(field::ADDR, sample.address, out);
    out.extend(bytes_of_pair(cpu as i32, 0));
    optional(field::PERIOD, sample.count, out);
    optional(field::CALLCHAIN, sample.chain.len() as u64 / 8, out);
    out.extend(sample.chain);
    if layout & field::RAW != 0 {
        out.extend((sample.raw.len() as u32).to_le_bytes());
        out.extend(sample.raw);
    }
    out.extend(sample.dump);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventIndex;
    use crate::source::record::Records;
    use crate::source::record::tests::{TASK, table};
    use crate::source::record_writer::RecordWriter;
    use proptest::prelude::*;

    fn in_file(table: &EventTable) -> EventTable {
        let mut table = table.clone();
        table.events.iter_mut().for_each(|spec| spec.sample_type = restored_layout(spec.sample_type));
        table
    }

    /// Returns the records as text. `cpu` is that of the ring; records of a file have their own.
    fn read(table: &EventTable, cpu: u32, bytes: &[u8]) -> Vec<String> {
        Records::new(table, cpu, bytes).map(|record| format!("{:?}", record.unwrap())).collect()
    }

    #[test]
    fn rewritten_records_say_the_same_without_their_ring() {
        let table = table(&[
            field::NEEDED,
            field::NEEDED | field::RAW,
            field::NEEDED | field::IP | field::ADDR | field::CPU | field::PERIOD | field::CALLCHAIN | field::RAW,
            field::NEEDED | field::ID | field::STREAM_ID | field::PERIOD | field::RAW,
        ]);
        let mut ring = RecordWriter::new(&table, 3);
        ring.comm(TASK, Time(5), b"cat", true).fork(TASK, TASK, Time(6)).map(TASK, Time(7), (1, 2, 3), true, b"/bin/cat");
        (0..4).for_each(|n| _ = ring.sample(EventIndex(n), TASK, Time(8), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]));
        ring.lost(4, TASK, Time(12)).fault(EventIndex(2), TASK, Time(10), 0x1000, 0x2000).exit(TASK, TASK, Time(11));
        let chunk = ring.chunk();
        let mut out = Vec::new();
        let done = append(&table, &chunk, &mut out);
        assert_eq!(done, Rewritten { samples: 5, others: 5, gaps: 1, span: done.span, ..Rewritten::default() });
        let (before, after) = (read(&table, 3, &chunk.bytes), read(&in_file(&table), 99, &out));
        // A gap has the time of the record behind it, as the merge assigns it.
        let before: Vec<String> = before.into_iter().map(|text| text.replace("Time(12)", "Time(10)")).collect();
        assert_eq!(after, before);
    }

    #[test]
    fn what_cannot_be_read_is_counted() {
        let table = table(&[field::NEEDED]);
        let mut ring = RecordWriter::new(&table, 0);
        ring.comm(TASK, Time(5), b"cat", false).record(kind::SAMPLE, 0, &99u64.to_le_bytes()).record(kind::SAMPLE, 0, &[]);
        let mut chunk = ring.chunk();
        chunk.bytes.extend([9, 0, 0, 0, 0, 0, 200, 0, 1]);
        let mut out = Vec::new();
        let done = append(&table, &chunk, &mut out);
        assert_eq!((done.samples, done.others, done.unreadable), (0, 1, 3));
        assert_eq!(done.first.map(|first| first.offset), Some(out.len() - 8), "the record behind the first one, which got a CPU");
    }

    proptest! {
        #[test]
        fn any_bytes_are_rewritten_without_panic(bytes: Vec<u8>) {
            let table = table(&[field::PROGRAM_OUTPUT, field::NEEDED | field::RAW]);
            let mut out = Vec::new();
            append(&table, &Chunk { cpu: 1, bytes, ..Chunk::default() }, &mut out);
            let table = in_file(&table);
            prop_assert!(Records::new(&table, 0, &out).all(|record| record.is_ok()));
        }
    }
}
