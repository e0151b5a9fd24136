//! Merges the records of all rings and the synthesized records into one stream in time order.
//!
//! ```text
//! let mut merge = Merge::new();
//! merge.add(&session.events, round);              // takes ownership of the round; nothing is copied
//! merge.synthesized(time, record);                // a record that was synthesized since the round
//! while merge.release(&session.events, 1000, |record| ...) {} // emits all records older than merge.horizon()
//! merge.spent();                                  // emptied buffers
//! merge.release_all(&session.events, 1000, |record| ...) // the same at the end of the stream
//! merge.trouble()                                  // late and unreadable records, counted
//! ```
//!
//! The kernel stamps a record and then writes it, with preemption disabled. The two are not one step, but the record is
//! in its ring a moment later:
//!
//! ```text
//! round N-1                        round N
//! ──S────[ring 0]──[ring 1]────────S'───[ring 0]──[ring 1]──▶
//!   │ stamped before S: written long before round N looks at its ring, so it is in N or earlier
//! ```
//!
//! So when round N is complete, no record can arrive any more that is older than S, the clock read before round N-1. S
//! is the horizon. (A fixed delay would be a guess about how long a round takes.)
//!
//! The records of one ring are almost in order. An interrupt may write its record between the stamping and the writing
//! of another one, and a LOST record is stamped after the sample that it precedes. The merge puts both in order. A
//! record that arrives after the horizon has passed its time is emitted at once and counted.

use super::chunk::{Chunk, Form, Round};
use super::frame::{Fault, Frame, Stamp, kind};
use super::instance::page::{self, Missed, Page, PageRecord};
use super::record::{Body, Malformed, Record, Sample};
use crate::event::{EventIndex, Synthesized, TaskId, Time};
use crate::session::EventTable;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The merge, which holds rounds until their records are due.
#[derive(Debug, Default)]
pub struct Merge {
    /// The runs from old to new. Of two records with equal times, the one of the older run is emitted first.
    runs: Vec<Run>,
    /// The runs that have due records, by the time of their next record. It is empty unless a release has left due
    /// records.
    due: BinaryHeap<Reverse<(Time, usize)>>,
    /// Records that were synthesized outside rounds since the last release.
    loose: Vec<(Time, Synthesized)>,
    /// The `started` of the newest round.
    newest: Time,
    /// The `started` of the round before the newest.
    previous: Time,
    /// All records older than this were emitted.
    horizon: Time,
    /// The time of each ring's last record.
    last: FxHashMap<(Form, u32), Time>,
    trouble: Trouble,
    /// The gaps of perf's rings in rounds that were added since the last call of [`Merge::gaps_ahead`].
    ahead: Vec<(u32, Option<Time>)>,
    spent: Vec<Chunk>,
    spare: Vec<Vec<Key>>,
}

/// Counts of late and unreadable records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Records that arrived after the horizon had passed their time. They were emitted nevertheless.
    pub late: u64,
    /// Records that could not be read. If the size of a record is invalid, the rest of its chunk counts as one.
    pub unreadable: u64,
    /// The first unreadable record.
    pub first: Option<Malformed>,
}

impl Merge {
    /// Returns a merge that has no rounds yet.
    pub fn new() -> Merge {
        Merge::default()
    }

    /// Adds a complete round. Its records become due as later rounds are added.
    pub fn add(&mut self, table: &EventTable, round: Round) {
        self.previous = self.newest;
        self.newest = self.newest.max(round.started);
        self.add_synthesized(round.synthesized);
        for chunk in round.chunks {
            self.add_chunk(table, chunk);
        }
    }

    /// Adds a record that was synthesized outside a round.
    pub fn synthesized(&mut self, time: Time, record: Synthesized) {
        self.loose.push((time, record));
    }

    /// Returns the time up to which all records were emitted. Records that are emitted later are not older than this,
    /// except those counted by [`Trouble::late`].
    pub fn horizon(&self) -> Time {
        self.horizon
    }

    /// Returns how many records so far were late or unreadable.
    pub fn trouble(&self) -> &Trouble {
        &self.trouble
    }

    /// Moves the horizon to the start of the round before the newest, and emits the older records in order, but at most
    /// `records_max` of them. Returns whether more of them are left, for which it is called again before anything is
    /// added.
    pub fn release(&mut self, table: &EventTable, records_max: usize, emit: impl FnMut(Record<'_>)) -> bool {
        self.take_loose();
        self.horizon = self.horizon.max(self.previous);
        self.release_before(table, Some(self.horizon), records_max, emit)
    }

    /// Emits the remaining records at the end of the stream, but at most `records_max` of them. Returns whether more
    /// are left.
    pub fn release_all(&mut self, table: &EventTable, records_max: usize, emit: impl FnMut(Record<'_>)) -> bool {
        self.take_loose();
        let newest = self.runs.iter().filter_map(|run| run.keys.last()).map(|key| key.time).max();
        let has_more = self.release_before(table, None, records_max, emit);
        if !has_more {
            self.horizon = self.horizon.max(newest.unwrap_or_default());
        }
        has_more
    }

    /// Returns the time of the last record of this CPU's perf ring among the rounds that were added.
    pub fn last_of_ring(&self, cpu: u32) -> Option<Time> {
        self.last.get(&(Form::Records, cpu)).copied()
    }

    /// Drains the gaps of the LOST records that were added since the last call, due or not: the CPU, and the time of
    /// the ring's last record before the gap.
    pub fn gaps_ahead(&mut self) -> std::vec::Drain<'_, (u32, Option<Time>)> {
        self.ahead.drain(..)
    }

    /// Returns the emptied buffers of the chunks whose records were all emitted since the last call.
    pub fn spent(&mut self) -> Round {
        Round { chunks: std::mem::take(&mut self.spent), ..Round::default() }
    }

    /// Emits the records that are older than `bound`, or all of them if it is `None`, but at most `records_max`.
    /// Returns whether more of them are left.
    fn release_before(&mut self, table: &EventTable, bound: Option<Time>, records_max: usize, mut emit: impl FnMut(Record<'_>)) -> bool {
        let is_due = |time: Time| bound.is_none_or(|bound| time < bound);
        if self.due.is_empty() {
            let next = self.runs.iter().enumerate().filter_map(|(at, run)| Some(Reverse((run.time()?, at))));
            self.due.extend(next.filter(|next| is_due(next.0.0)));
        }
        let mut next = self.due.pop();
        let mut left = records_max;
        while let Some(Reverse((_, at))) = next
            && left > 0
        {
            let run = &mut self.runs[at];
            run.emit(table, &mut self.trouble, &mut emit);
            left -= 1;
            next = match run.time().filter(|&time| is_due(time)) {
                Some(time) => Some(self.older_of(Reverse((time, at)))),
                None => self.due.pop(),
            };
        }
        let has_more = next.is_some();
        self.due.extend(next);
        if !has_more {
            self.drop_finished();
        }
        has_more
    }

    /// Returns the older of this run and the first of the heap, and leaves the other one in the heap. Records arrive in
    /// bursts of one CPU, so the heap mostly stays as it is.
    #[inline]
    fn older_of(&mut self, mut run: Reverse<(Time, usize)>) -> Reverse<(Time, usize)> {
        if let Some(mut top) = self.due.peek_mut().filter(|top| **top > run) {
            std::mem::swap(&mut *top, &mut run);
        }
        run
    }

    fn take_loose(&mut self) {
        let synthesized = std::mem::take(&mut self.loose);
        self.add_synthesized(synthesized);
    }

    fn add_synthesized(&mut self, synthesized: Vec<(Time, Synthesized)>) {
        if synthesized.is_empty() {
            return;
        }
        let mut keys = self.spare.pop().unwrap_or_default();
        keys.extend(synthesized.iter().enumerate().map(|(at, record)| Key { time: record.0, offset: at as u32, event: EventIndex(0) }));
        self.add_run(Run { keys, next: 0, data: RunData::Synthesized(synthesized), gaps: Vec::new() });
    }

    fn add_chunk(&mut self, table: &EventTable, chunk: Chunk) {
        let mut run = Run { keys: self.spare.pop().unwrap_or_default(), next: 0, data: RunData::Synthesized(Vec::new()), gaps: Vec::new() };
        let ring = (chunk.form, chunk.cpu);
        let last = self.last.get(&ring).copied();
        let last = match chunk.form {
            Form::Records => run.index(table, &chunk, last, &mut self.trouble),
            Form::Pages => run.index_pages(table, &chunk, last, &mut self.trouble),
        };
        if let Some(last) = last {
            self.last.insert(ring, last);
        }
        run.data = match chunk.form {
            Form::Records => {
                self.ahead.extend(run.gaps.iter().map(|gap| (chunk.cpu, gap.1)));
                RunData::Chunk(chunk)
            }
            Form::Pages => RunData::Pages(chunk),
        };
        self.add_run(run);
    }

    fn add_run(&mut self, mut run: Run) {
        if !run.keys.is_sorted_by_key(|key| key.time) {
            run.keys.sort_by_key(|key| key.time); // a stable sort keeps the ring's order of records with equal times
        }
        self.trouble.late += run.keys.partition_point(|key| key.time < self.horizon) as u64;
        self.runs.push(run);
    }

    fn drop_finished(&mut self) {
        for mut run in self.runs.extract_if(.., |run| run.next == run.keys.len()) {
            run.keys.clear();
            self.spare.push(run.keys);
            if let RunData::Chunk(mut chunk) | RunData::Pages(mut chunk) = run.data {
                chunk.bytes.clear();
                self.spent.push(chunk);
            }
        }
    }
}

/// A sorted run: a chunk or a list of synthesized records, with the order in which its records are emitted.
#[derive(Debug)]
struct Run {
    /// Sorted by time.
    keys: Vec<Key>,
    /// The index of the next key to emit.
    next: usize,
    data: RunData,
    /// For each LOST record, and for each page before which records were missed: its offset, and the time of the record
    /// before it.
    gaps: Vec<(u32, Option<Time>)>,
}

/// The bytes or records that a run's keys refer to.
#[derive(Debug)]
enum RunData {
    Chunk(Chunk),
    Pages(Chunk),
    Synthesized(Vec<(Time, Synthesized)>),
}

/// The event of a key that stands for records that were missed before a page.
const MISSED: EventIndex = EventIndex(u16::MAX);

/// The time, place and event of a record.
#[derive(Clone, Copy, Debug)]
struct Key {
    time: Time,
    /// The record's offset in the chunk's bytes, or its index in the list of synthesized records.
    offset: u32,
    event: EventIndex,
}

impl Run {
    /// Returns the time of the next record.
    #[inline]
    fn time(&self) -> Option<Time> {
        self.keys.get(self.next).map(|key| key.time)
    }

    /// Emits the next record.
    #[inline]
    fn emit(&mut self, table: &EventTable, trouble: &mut Trouble, emit: &mut impl FnMut(Record<'_>)) {
        let Some(&Key { time, offset, event }) = self.keys.get(self.next) else { return };
        self.next += 1;
        let at = offset as usize;
        match &self.data {
            RunData::Synthesized(synthesized) => {
                if let Some((_, record)) = synthesized.get(at) {
                    emit(Record { time, cpu: 0, task: TaskId::default(), body: Body::Synthesized(record) });
                }
            }
            RunData::Chunk(chunk) => {
                match Frame::at(&chunk.bytes, at).and_then(|frame| frame.read(table, Stamp { time, event }, chunk.cpu)) {
                    Ok(mut record) => {
                        if let Body::Lost { after, .. } = &mut record.body {
                            *after = before_gap(&self.gaps, offset);
                        }
                        emit(record);
                    }
                    Err(fault) => trouble.unreadable(Malformed { cpu: chunk.cpu, offset: at, fault }),
                }
            }
            RunData::Pages(chunk) if event == MISSED => {
                let records = Page::at(&chunk.bytes, at).ok().and_then(|page| page.missed?.0);
                let body = Body::Missed { records, after: before_gap(&self.gaps, offset) };
                emit(Record { time, cpu: chunk.cpu, task: TaskId::default(), body });
            }
            RunData::Pages(chunk) => {
                let raw = page::record(&chunk.bytes, at).unwrap_or_default();
                let tid = raw.get(4..).and_then(|rest| rest.first_chunk().copied()).map_or(0, i32::from_le_bytes);
                let sample = Sample { event, origin: 0, count: 1, raw, ip: 0, address: 0, chain: &[], dump: &[] };
                emit(Record { time, cpu: chunk.cpu, task: TaskId { pid: tid, tid }, body: Body::Sample(sample) });
            }
        }
    }

    /// Does the same as [`Run::index`] for the pages of a tracefs instance.
    fn index_pages(&mut self, table: &EventTable, chunk: &Chunk, mut last: Option<Time>, trouble: &mut Trouble) -> Option<Time> {
        let bytes = &chunk.bytes[..chunk.bytes.len().min(u32::MAX as usize)];
        let malformed = |offset, fault| Malformed { cpu: chunk.cpu, offset, fault };
        let mut at = 0;
        while at < bytes.len() {
            let page = match Page::at(bytes, at) {
                Ok(page) => page,
                Err(fault) => {
                    trouble.unreadable(malformed(at, fault));
                    break;
                }
            };
            if let Some(Missed(_)) = page.missed {
                self.gaps.push((at as u32, last));
                self.keys.push(Key { time: page.time, offset: at as u32, event: MISSED });
            }
            for record in page.records() {
                match record.and_then(|record| Ok((record, event_of(table, record.raw).map_err(|fault| (record.offset, fault))?))) {
                    Ok((PageRecord { time, offset, .. }, event)) => {
                        self.keys.push(Key { time, offset: (at + offset) as u32, event });
                        last = Some(time);
                    }
                    Err((offset, fault)) => trouble.unreadable(malformed(at + offset, fault)),
                }
            }
            at += page.size();
        }
        last
    }

    /// Adds a key for each record of the chunk and returns the time of the last one. `last` is the time of the last
    /// record of the ring's previous chunk.
    fn index(&mut self, table: &EventTable, chunk: &Chunk, mut last: Option<Time>, trouble: &mut Trouble) -> Option<Time> {
        // A ring is smaller than 4 GiB. Anything beyond would be reported as a truncated record.
        let bytes = &chunk.bytes[..chunk.bytes.len().min(u32::MAX as usize)];
        let mut at = 0;
        let mut after_gap = false;
        while at < bytes.len() {
            let offset = at;
            let frame = match Frame::at(bytes, at) {
                Ok(frame) => frame,
                Err(fault) => {
                    trouble.unreadable(Malformed { cpu: chunk.cpu, offset, fault });
                    break;
                }
            };
            at += frame.size();
            let Stamp { time, event } = match frame.stamp(table) {
                Ok(Some(stamp)) => stamp,
                Ok(None) => continue,
                Err(fault) => {
                    trouble.unreadable(Malformed { cpu: chunk.cpu, offset, fault });
                    continue;
                }
            };
            // The kernel stamps a LOST record after the sample that follows it, but the gap is before both.
            if after_gap && let Some(gap) = self.keys.last_mut() {
                gap.time = gap.time.min(time);
            }
            after_gap = matches!(frame.kind, kind::LOST | kind::LOST_SAMPLES);
            if after_gap {
                self.gaps.push((offset as u32, last));
            }
            self.keys.push(Key { time, offset: offset as u32, event });
            if !after_gap {
                last = Some(time);
            }
        }
        last
    }
}

/// Returns the time of the record before the gap at `offset`.
fn before_gap(gaps: &[(u32, Option<Time>)], offset: u32) -> Option<Time> {
    gaps.binary_search_by_key(&offset, |gap| gap.0).ok().and_then(|gap| gaps[gap].1)
}

/// Returns the event of a tracefs instance's record by its `struct trace_entry` (include/linux/trace_events.h): u16
/// type, u8 flags, u8 preempt_count, s32 pid.
fn event_of(table: &EventTable, raw: &[u8]) -> Result<EventIndex, Fault> {
    let head: [u8; 8] = raw.first_chunk().copied().ok_or(Fault::Short { kind: 0, size: raw.len() })?;
    let kind = u16::from_le_bytes([head[0], head[1]]);
    table.types.get(&kind).copied().ok_or(Fault::UnknownEvent(kind.into()))
}

impl Trouble {
    #[cold]
    fn unreadable(&mut self, malformed: Malformed) {
        self.unreadable += 1;
        self.first.get_or_insert(malformed);
    }
}

#[cfg(test)]
mod tests;
