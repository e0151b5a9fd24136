//! The records and facts about tasks, as far back as the rings of calls may reach, and the state before them.

use super::tasks::KnownTasks;
use crate::event::{Synthesized, Time};
use crate::session::EventTable;
use crate::source::frame::{Frame, kind};
use crate::source::record::Body;
use crate::source::{Form, Round};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// One record or fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was written, or held.
    pub time: Time,
    /// What it is.
    pub what: What,
}

/// A record of a ring, or a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The bytes of a record, and the CPU of its ring.
    Record(u32, Box<[u8]>),
    /// A synthesized record.
    Fact(Synthesized),
}

impl Entry {
    /// Passes what the record says to a function, if the entry is a record.
    pub fn body(&self, table: &EventTable, act: impl FnOnce(&Body)) {
        if let What::Record(cpu, bytes) = &self.what
            && let Ok(frame) = Frame::at(bytes, 0)
            && let Ok(Some(stamp)) = frame.stamp(table)
            && let Ok(record) = frame.read(table, stamp, *cpu)
        {
            act(&record.body);
        }
    }
}

/// A call matched the condition that asks for snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The CPU on which it did.
    pub cpu: u32,
    /// The record, without its header.
    pub body: Vec<u8>,
}

/// The journal. Its size is bounded: what no longer fits becomes part of the state, and a snapshot then begins later.
#[derive(Clone, Debug)]
pub struct Journal {
    /// The state before the entries.
    tasks: KnownTasks,
    /// In the order of time.
    entries: Vec<Arc<Entry>>,
    bytes: usize,
    bytes_max: usize,
    /// The time of the latest entry that no longer fitted.
    begin: Option<Time>,
}

impl Journal {
    /// Returns a journal that holds about this many bytes and begins with this state.
    pub fn new(bytes_max: usize, tasks: KnownTasks) -> Journal {
        Journal { tasks, entries: Vec::new(), bytes: 0, bytes_max, begin: None }
    }

    /// Adds the records and facts of a round. Records of the events with these identifiers are not kept; they are
    /// returned.
    pub fn add(&mut self, table: &EventTable, matches: &FxHashSet<u64>, round: Round) -> Vec<Match> {
        let mut found = Vec::new();
        for (time, fact) in round.synthesized {
            self.push(time, What::Fact(fact));
        }
        for chunk in round.chunks.iter().filter(|chunk| chunk.form == Form::Records) {
            let mut at = 0;
            while let Ok(frame) = Frame::at(&chunk.bytes, at) {
                let bytes = &chunk.bytes[at..at + frame.size()];
                at += frame.size();
                let id = frame.body.first_chunk().copied().map(u64::from_le_bytes);
                if frame.kind == kind::SAMPLE && id.is_some_and(|id| matches.contains(&id)) {
                    found.push(Match { cpu: chunk.cpu, body: frame.body.to_vec() });
                } else if let Ok(Some(stamp)) = frame.stamp(table) {
                    self.push(stamp.time, What::Record(chunk.cpu, bytes.into()));
                }
            }
        }
        self.entries.sort_by_key(|entry| entry.time);
        let mut count = 0;
        let mut bytes = self.bytes;
        while bytes > self.bytes_max {
            bytes -= size(&self.entries[count]);
            count += 1;
        }
        self.begin = self.begin.max(self.entries[..count].last().map(|entry| entry.time));
        self.fold_first(table, count);
        found
    }

    /// Makes the entries before this time part of the state: no snapshot will begin earlier.
    pub fn fold(&mut self, table: &EventTable, until: Time) {
        let count = self.entries.partition_point(|entry| entry.time < until);
        self.fold_first(table, count);
    }

    /// Returns the time before which no snapshot may begin, if there is one.
    pub fn begin(&self) -> Option<Time> {
        self.begin
    }

    /// Returns the state at this time and the entries since then; without a time, the state before all entries.
    pub fn since(&self, table: &EventTable, begin: Option<Time>) -> (KnownTasks, Vec<Arc<Entry>>) {
        let mut tasks = self.tasks.clone();
        let count = begin.map_or(0, |begin| self.entries.partition_point(|entry| entry.time < begin));
        self.entries[..count].iter().for_each(|entry| apply(&mut tasks, table, entry));
        (tasks, self.entries[count..].to_vec())
    }

    fn push(&mut self, time: Time, what: What) {
        let entry = Entry { time, what };
        self.bytes += size(&entry);
        self.entries.push(Arc::new(entry));
    }

    fn fold_first(&mut self, table: &EventTable, count: usize) {
        for entry in self.entries.drain(..count) {
            self.bytes -= size(&entry);
            apply(&mut self.tasks, table, &entry);
        }
    }
}

/// Returns the approximate number of bytes that an entry takes.
fn size(entry: &Entry) -> usize {
    let own = match &entry.what {
        What::Record(_, bytes) => bytes.len(),
        What::Fact(Synthesized::Maps { maps, .. }) => maps.iter().map(|map| size_of_val(map) + map.path.len()).sum(),
        What::Fact(fact) => fact.bytes(),
    };
    size_of::<Entry>() + own
}

fn apply(tasks: &mut KnownTasks, table: &EventTable, entry: &Entry) {
    match &entry.what {
        What::Fact(fact) => tasks.fact(entry.time, fact),
        What::Record(..) => entry.body(table, |body| tasks.record(entry.time, body)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::TaskId;
    use crate::source::frame::field;
    use crate::source::record::tests::{TASK, table};
    use crate::source::record_writer::RecordWriter;

    fn round(table: &EventTable, times: std::ops::Range<u64>) -> Round {
        let mut ring = RecordWriter::new(table, 0);
        for time in times {
            let child = TaskId { pid: 100 + time as i32, tid: 100 + time as i32 };
            ring.fork(child, TASK, Time(time)).comm(child, Time(time), format!("task{time}").as_bytes(), true);
        }
        Round { chunks: vec![ring.chunk()], ..Round::default() }
    }

    #[test]
    fn what_is_older_than_the_beginning_becomes_state() {
        let table = table(&[field::NEEDED]);
        let mut journal = Journal::new(1 << 20, KnownTasks::default());
        assert_eq!(journal.add(&table, &FxHashSet::default(), round(&table, 10..20)), []);
        let (tasks, entries) = journal.since(&table, Some(Time(15)));
        assert_eq!((tasks.facts().len(), entries.len()), (5, 10));
        journal.fold(&table, Time(12));
        let (tasks, entries) = journal.since(&table, Some(Time(15)));
        assert_eq!((tasks.facts().len(), entries.len(), journal.begin()), (5, 10, None));
        assert_eq!(tasks.get(TaskId { pid: 114, tid: 114 }).and_then(|task| task.comm.clone()), Some(b"task14".to_vec()));
        let (tasks, entries) = journal.since(&table, None);
        assert_eq!((tasks.facts().len(), entries.len()), (2, 16));
    }

    #[test]
    fn a_full_journal_moves_the_beginning() {
        let table = table(&[field::NEEDED]);
        let mut journal = Journal::new(2_000, KnownTasks::default());
        for time in 0..1000 {
            let mut ring = RecordWriter::new(&table, 0);
            ring.comm(TaskId { pid: time, tid: time }, Time(time as u64), b"task", true);
            journal.add(&table, &FxHashSet::default(), Round { chunks: vec![ring.chunk()], ..Round::default() });
            assert!(journal.bytes <= 2_000);
        }
        let begin = journal.begin().unwrap();
        let (tasks, entries) = journal.since(&table, Some(begin));
        assert!(begin > Time(900) && !entries.is_empty());
        assert_eq!(tasks.facts().len() + entries.len(), 1000);
    }

    #[test]
    fn matches_are_returned_and_not_kept() {
        let table = table(&[field::NEEDED]);
        let mut journal = Journal::new(1 << 20, KnownTasks::default());
        let mut ring = RecordWriter::new(&table, 3);
        ring.record(kind::SAMPLE, 0, &[7u64.to_le_bytes(), 1u64.to_le_bytes()].concat());
        let found = journal.add(&table, &FxHashSet::from_iter([7]), Round { chunks: vec![ring.chunk()], ..Round::default() });
        assert_eq!((found.len(), found[0].cpu, found[0].body[8]), (1, 3, 1));
        assert_eq!(journal.entries.len(), 0);
    }
}
