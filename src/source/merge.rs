//! Merge by time: the records of all rings, and the notes, as one stream.
//!
//! ```text
//! let mut merge = Merge::new();
//! merge.add(&session.events, round);              // takes the round; nothing is copied
//! merge.note(time, note);                         // what was learnt since (an answer of a look)
//! merge.release(&session.events, |record| ...);   // what is certainly in order: everything older than merge.horizon()
//! source.recycle(merge.spent());                  // buffers that are used up
//! merge.release_all(&session.events, |record| ...) // at the end of the stream
//! merge.trouble()                                  // late and unreadable records, counted
//! ```
//!
//! Why the order is right. A record is stamped, then written, with preemption off: not in one step, but it is in its ring a moment later.
//!
//! ```text
//! round N-1                        round N
//! ──S────[ring 0]──[ring 1]────────S'───[ring 0]──[ring 1]──▶
//!   │ stamped before S: written long before round N looks at its ring, so it is in N or earlier
//! ```
//!
//! So when round N is here, nothing older than S, the clock read before round N-1, can still come: that is the horizon. (A fixed delay would be a guess
//! about how long a round takes.) Records of one ring are almost in order: an interrupt may write its record between the stamping and the writing of another, and
//! a LOST record is stamped after the sample that it precedes. Both are put right here. A record from before the horizon, should one come,
//! is given at once and counted.

use super::chunk::{Chunk, Form, Round};
use super::frame::{Fault, Frame, Stamp, kind};
use super::instance::page::{self, Entry, Missed, Page};
use super::record::{Body, Malformed, Record, Sample};
use crate::event::{EventIndex, Note, TaskId, Time};
use crate::session::EventTable;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Holds rounds until their records are due.
#[derive(Debug, Default)]
pub struct Merge {
    /// From old to new: where two times are equal, the older run goes first.
    runs: Vec<Run>,
    /// The runs with something due, by the time of their next record. Empty between releases; kept for its memory.
    due: BinaryHeap<Reverse<(Time, usize)>>,
    /// Notes that came apart from rounds, since the last release.
    loose: Vec<(Time, Note)>,
    /// The `started` of the newest round and of the one before it.
    newest: Time,
    previous: Time,
    /// Everything older was given.
    horizon: Time,
    /// When each ring's last record was written.
    last: FxHashMap<(Form, u32), Time>,
    trouble: Trouble,
    /// The gaps of perf's rings in rounds that came since they were last asked for.
    ahead: Vec<(u32, Option<Time>)>,
    spent: Vec<Chunk>,
    spare: Vec<Vec<Key>>,
}

/// What was not as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Records that came after the horizon had passed their time; they were given nevertheless.
    pub late: u64,
    /// Records that could not be read; the rest of a chunk counts as one, where not even its records' sizes make sense.
    pub unreadable: u64,
    /// The first of these.
    pub first: Option<Malformed>,
}

impl Merge {
    pub fn new() -> Merge {
        Merge::default()
    }

    /// Takes a complete round. Its records become due as later rounds come.
    pub fn add(&mut self, table: &EventTable, round: Round) {
        self.previous = self.newest;
        self.newest = self.newest.max(round.started);
        self.add_notes(round.notes);
        for chunk in round.chunks {
            self.add_chunk(table, chunk);
        }
    }

    /// Takes a note that did not come with a round.
    pub fn note(&mut self, time: Time, note: Note) {
        self.loose.push((time, note));
    }

    /// Everything older than this has been given; what will be given is not older, but for what [`Trouble::late`] counts.
    pub fn horizon(&self) -> Time {
        self.horizon
    }

    pub fn trouble(&self) -> &Trouble {
        &self.trouble
    }

    /// Moves the horizon to the start of the round before the newest, and gives what is older, in order.
    pub fn release(&mut self, table: &EventTable, give: impl FnMut(Record<'_>)) {
        self.take_loose_notes();
        self.horizon = self.horizon.max(self.previous);
        self.release_before(table, Some(self.horizon), give);
    }

    /// Gives everything: no round will follow.
    pub fn release_all(&mut self, table: &EventTable, give: impl FnMut(Record<'_>)) {
        self.take_loose_notes();
        let newest = self.runs.iter().filter_map(|run| run.keys.last()).map(|key| key.time).max();
        self.release_before(table, None, give);
        self.horizon = self.horizon.max(newest.unwrap_or_default());
    }

    /// When the last record of this CPU's ring of perf was written, of those that are here.
    pub fn last_of_ring(&self, cpu: u32) -> Option<Time> {
        self.last.get(&(Form::Records, cpu)).copied()
    }

    /// The gaps whose LOST records are here since this was last asked, due or not: the CPU, and when the ring's last record before the gap was written.
    pub fn gaps_ahead(&mut self) -> std::vec::Drain<'_, (u32, Option<Time>)> {
        self.ahead.drain(..)
    }

    /// The buffers of chunks that were given completely since the last call, emptied.
    pub fn spent(&mut self) -> Round {
        Round { chunks: std::mem::take(&mut self.spent), ..Round::default() }
    }

    /// `None`: no bound.
    fn release_before(&mut self, table: &EventTable, bound: Option<Time>, mut give: impl FnMut(Record<'_>)) {
        let is_due = |time: Time| bound.is_none_or(|bound| time < bound);
        self.due
            .extend(self.runs.iter().enumerate().filter_map(|(at, run)| Some(Reverse((run.time()?, at)))).filter(|next| is_due(next.0.0)));
        let mut next = self.due.pop();
        while let Some(Reverse((_, at))) = next {
            let run = &mut self.runs[at];
            run.give(table, &mut self.trouble, &mut give);
            next = match run.time().filter(|&time| is_due(time)) {
                Some(time) => Some(self.older_of(Reverse((time, at)))),
                None => self.due.pop(),
            };
        }
        self.drop_finished();
    }

    /// This run or, in exchange for it, the one in the heap that is older. Records come in bursts of one CPU, so mostly the heap stays as it is.
    #[inline]
    fn older_of(&mut self, mut run: Reverse<(Time, usize)>) -> Reverse<(Time, usize)> {
        if let Some(mut top) = self.due.peek_mut().filter(|top| **top > run) {
            std::mem::swap(&mut *top, &mut run);
        }
        run
    }

    fn take_loose_notes(&mut self) {
        let notes = std::mem::take(&mut self.loose);
        self.add_notes(notes);
    }

    fn add_notes(&mut self, notes: Vec<(Time, Note)>) {
        if notes.is_empty() {
            return;
        }
        let mut keys = self.spare.pop().unwrap_or_default();
        keys.extend(notes.iter().enumerate().map(|(at, note)| Key { time: note.0, offset: at as u32, event: EventIndex(0) }));
        self.add_run(Run { keys, next: 0, held: Held::Notes(notes), gaps: Vec::new() });
    }

    fn add_chunk(&mut self, table: &EventTable, chunk: Chunk) {
        let mut run = Run { keys: self.spare.pop().unwrap_or_default(), next: 0, held: Held::Notes(Vec::new()), gaps: Vec::new() };
        let ring = (chunk.form, chunk.cpu);
        let last = self.last.get(&ring).copied();
        let last = match chunk.form {
            Form::Records => run.index(table, &chunk, last, &mut self.trouble),
            Form::Pages => run.index_pages(table, &chunk, last, &mut self.trouble),
        };
        if let Some(last) = last {
            self.last.insert(ring, last);
        }
        run.held = match chunk.form {
            Form::Records => {
                self.ahead.extend(run.gaps.iter().map(|gap| (chunk.cpu, gap.1)));
                Held::Chunk(chunk)
            }
            Form::Pages => Held::Pages(chunk),
        };
        self.add_run(run);
    }

    fn add_run(&mut self, mut run: Run) {
        if !run.keys.is_sorted_by_key(|key| key.time) {
            run.keys.sort_by_key(|key| key.time); // stable: the ring's order decides between equal times
        }
        self.trouble.late += run.keys.partition_point(|key| key.time < self.horizon) as u64;
        self.runs.push(run);
    }

    fn drop_finished(&mut self) {
        for mut run in self.runs.extract_if(.., |run| run.next == run.keys.len()) {
            run.keys.clear();
            self.spare.push(run.keys);
            if let Held::Chunk(mut chunk) | Held::Pages(mut chunk) = run.held {
                chunk.bytes.clear();
                self.spent.push(chunk);
            }
        }
    }
}

/// A chunk, or some notes, and the order in which they are given.
#[derive(Debug)]
struct Run {
    /// Sorted by time.
    keys: Vec<Key>,
    /// How many of them were given.
    next: usize,
    held: Held,
    /// For each LOST record, and each page before which records were missed, by offset: when the record before it was written.
    gaps: Vec<(u32, Option<Time>)>,
}

#[derive(Debug)]
enum Held {
    Chunk(Chunk),
    Pages(Chunk),
    Notes(Vec<(Time, Note)>),
}

/// In place of a record's event: records are missing before this page.
const MISSED: EventIndex = EventIndex(u16::MAX);

/// When a record is due and where it is.
#[derive(Clone, Copy, Debug)]
struct Key {
    time: Time,
    /// In the chunk's bytes, or in the list of notes.
    offset: u32,
    event: EventIndex,
}

impl Run {
    /// The time of the next record.
    #[inline]
    fn time(&self) -> Option<Time> {
        self.keys.get(self.next).map(|key| key.time)
    }

    /// Gives the next record.
    #[inline]
    fn give(&mut self, table: &EventTable, trouble: &mut Trouble, give: &mut impl FnMut(Record<'_>)) {
        let Some(&Key { time, offset, event }) = self.keys.get(self.next) else { return };
        self.next += 1;
        let at = offset as usize;
        match &self.held {
            Held::Notes(notes) => {
                if let Some((_, note)) = notes.get(at) {
                    give(Record { time, cpu: 0, task: TaskId::default(), body: Body::Note(note) });
                }
            }
            Held::Chunk(chunk) => match Frame::at(&chunk.bytes, at).and_then(|frame| frame.read(table, Stamp { time, event }, chunk.cpu)) {
                Ok(mut record) => {
                    if let Body::Lost { after, .. } = &mut record.body {
                        *after = before_gap(&self.gaps, offset);
                    }
                    give(record);
                }
                Err(fault) => trouble.unreadable(Malformed { cpu: chunk.cpu, offset: at, fault }),
            },
            Held::Pages(chunk) if event == MISSED => {
                let records = Page::at(&chunk.bytes, at).ok().and_then(|page| page.missed?.0);
                let body = Body::Missed { records, after: before_gap(&self.gaps, offset) };
                give(Record { time, cpu: chunk.cpu, task: TaskId::default(), body });
            }
            Held::Pages(chunk) => {
                let raw = page::record(&chunk.bytes, at).unwrap_or_default();
                let tid = raw.get(4..).and_then(|rest| rest.first_chunk().copied()).map_or(0, i32::from_le_bytes);
                let sample = Sample { event, origin: 0, count: 1, raw, ip: 0, address: 0, chain: &[], dump: &[] };
                give(Record { time, cpu: chunk.cpu, task: TaskId { pid: tid, tid }, body: Body::Sample(sample) });
            }
        }
    }

    /// The same as [`Run::index`], for the pages of a tracefs instance.
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
            for entry in page.entries() {
                match entry.and_then(|entry| Ok((entry, event_of(table, entry.raw).map_err(|fault| (entry.offset, fault))?))) {
                    Ok((Entry { time, offset, .. }, event)) => {
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

    /// Notes where each record of the chunk is and when it was written; returns the time of the last one. `last` is that of the ring's chunk before.
    fn index(&mut self, table: &EventTable, chunk: &Chunk, mut last: Option<Time>, trouble: &mut Trouble) -> Option<Time> {
        // A ring is smaller than 4 GiB; what were beyond would be reported as a record that is cut.
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

/// When the record before the gap at `offset` was written.
fn before_gap(gaps: &[(u32, Option<Time>)], offset: u32) -> Option<Time> {
    gaps.binary_search_by_key(&offset, |gap| gap.0).ok().and_then(|gap| gaps[gap].1)
}

/// The event of a tracefs instance's record, by its `struct trace_entry` (include/linux/trace_events.h): u16 type, u8 flags, u8 preempt_count, s32 pid.
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
