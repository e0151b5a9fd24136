//! The engine: turns records in time order into events in order, between source and sinks.

mod follow;
mod outbox;
pub mod view;

#[cfg(test)]
mod tests;

use crate::event::{Event, Notice, Synthesized, Time};
use crate::session::Session;
use crate::source::merge::Merge;
use crate::source::{Input, Round};
#[cfg(test)]
use crate::stack::library::Closed;
use crate::stack::library::{Library, Open};
use crate::syscall::ledger::Ledger;
use crate::task::tasks::Change;
use crate::task::{ProcRead, Tasks};
use follow::Follower;

/// The number of records that [`Engine::advance`] processes at most. Their events, which a caller shows before it goes
/// on, fit into the cache of a CPU; those of a whole round would pass through memory.
const RECORDS_AT_ONCE: usize = 256;

/// The state of one run. Its events follow from the session and from what is passed to [`Engine::input`]; their stacks
/// also from the files of the processes.
pub struct Engine {
    merge: Merge,
    follower: Follower,
    /// The reads of /proc that the last round has made necessary.
    reads: Vec<ProcRead>,
    /// A round was added that is not processed completely.
    has_round: bool,
}

impl Engine {
    /// Creates an engine. Calls that are in flight for longer than `pending_after` nanoseconds are reported as pending;
    /// with `None`, none is reported before the end. `files` opens the files that processes have mapped, for unwinding.
    pub fn new(session: &Session, pending_after: Option<u64>, files: Box<dyn Open>) -> Engine {
        let follower = Follower::new(session, pending_after, crate::beauty::tables::SYSCALLS, files);
        Engine { merge: Merge::new(), follower, reads: Vec::new(), has_round: false }
    }

    /// As [`Engine::new`], with other rows than the built-in ones.
    #[cfg(test)]
    fn with_rows(session: &Session, pending_after: Option<u64>, rows: &'static [crate::beauty::row::Syscall]) -> Engine {
        let follower = Follower::new(session, pending_after, rows, Box::new(Closed));
        Engine { merge: Merge::new(), follower, reads: Vec::new(), has_round: false }
    }

    /// Takes one piece of input; events that are due are appended to `events` in order.
    pub fn input(&mut self, session: &Session, input: Input, events: &mut Vec<Event>) {
        self.add(session, input);
        while self.advance(session, events) {}
    }

    /// Takes one piece of input. What is due is processed by [`Engine::advance`].
    pub fn add(&mut self, session: &Session, input: Input) {
        match input {
            Input::Round(round) => self.round(session, round),
            Input::Answers(records) => records.into_iter().for_each(|(time, record)| self.merge.synthesized(time, record)),
        }
    }

    /// Processes some of the records that are due; their events are appended to `events` in order. Returns whether more
    /// are due, for which it is called again before more input is added.
    pub fn advance(&mut self, session: &Session, events: &mut Vec<Event>) -> bool {
        if !self.has_round {
            return false;
        }
        let has_more = self.merge.release(&session.events, RECORDS_AT_ONCE, |record| self.follower.record(record, events));
        self.follower.emit_tallied(events);
        if !has_more {
            self.has_round = false;
            self.follower.tick(self.merge.horizon(), events);
            self.reads = self.follower.take_reads();
            self.follower.trouble(self.merge.trouble());
        }
        has_more
    }

    /// Takes the reads of /proc that the last round has made necessary. Their answers are the next input. In a replay
    /// nobody takes them, because the answers are recorded.
    pub fn take_reads(&mut self) -> Vec<ProcRead> {
        std::mem::take(&mut self.reads)
    }

    fn round(&mut self, session: &Session, round: Round) {
        let full: Vec<u32> = round
            .synthesized
            .iter()
            .filter_map(|(_, record)| if let Synthesized::Full { cpu } = record { Some(*cpu) } else { None })
            .collect();
        self.merge.add(&session.events, round);
        self.follower.gaps_ahead(self.merge.gaps_ahead());
        let merge = &self.merge;
        self.follower.gaps_ahead(full.into_iter().map(|cpu| (cpu, merge.last_of_ring(cpu))));
        self.has_round = true;
    }

    /// Processes some of the records that are left at the end of the stream, as [`Engine::advance`] does.
    pub fn advance_to_end(&mut self, session: &Session, events: &mut Vec<Event>) -> bool {
        let has_more = self.merge.release_all(&session.events, RECORDS_AT_ONCE, |record| self.follower.record(record, events));
        self.follower.emit_tallied(events);
        has_more
    }

    /// Ends the stream: all events that are still held are emitted, and calls in flight are reported.
    pub fn end(&mut self, session: &Session, events: &mut Vec<Event>) {
        while self.advance_to_end(session, events) {}
        self.follower.end(events);
        self.follower.trouble(self.merge.trouble());
        self.follower.count_unwritten(session.of_cgroup);
    }

    /// Emits a notice on how the events that were just emitted are shown. It is no input: whoever shows the events of
    /// a recording makes such notices anew.
    pub fn notice(&mut self, notice: Notice, events: &mut Vec<Event>) {
        self.follower.notice(notice, events);
    }

    /// Lets calls of which only numbers are shown be tallied: those of the rows that are `true`, by ABI. All of them
    /// are shown.
    pub fn tally(&mut self, rows: [Vec<bool>; 4]) {
        self.follower.tally(rows);
    }

    /// Counts calls whose records were not read, because no event follows from them that is shown.
    pub fn pass_over(&mut self, calls: u64) {
        self.follower.pass_over(calls);
    }

    /// Keeps the changes of tasks for [`Engine::take_changes`].
    pub fn keep_changes(&mut self) {
        self.follower.tasks.keep_changes();
    }

    /// Takes the changes of tasks since the last call, for a copy of [`Engine::tasks`].
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.follower.tasks.take_changes()
    }

    /// Takes rendered events back, to reuse their memory.
    pub fn recycle(&mut self, events: &mut Vec<Event>) {
        self.follower.recycle(events);
    }

    /// Returns used buffers of rounds, for reuse.
    pub fn spent(&mut self) -> Round {
        self.merge.spent()
    }

    /// Returns the stream's time: no later event is older.
    pub fn now(&self) -> Time {
        self.follower.now()
    }

    /// Returns the image files that stacks have been unwound through.
    pub fn library(&self) -> Option<&Library> {
        self.follower.library()
    }

    /// Returns the processes whose memory has gone away since the last call, so that what was cached about it can be
    /// dropped.
    pub fn gone(&mut self) -> Vec<i32> {
        self.follower.gone()
    }

    /// Returns the number of tasks that calls or signals name, and whose names nobody has read.
    pub fn unnamed_tasks(&self) -> usize {
        self.follower.unnamed_tasks()
    }

    /// Returns the state of all tasks at the stream's present time.
    pub fn tasks(&self) -> &Tasks {
        &self.follower.tasks
    }

    /// Returns the account of the calls and records that the engine has received so far.
    pub fn ledger(&self) -> &Ledger {
        &self.follower.ledger
    }
}
