//! The engine: turns records in time order into events in order, between source and sinks.

mod follow;
mod outbox;
pub mod view;

#[cfg(test)]
mod tests;

use crate::event::{Event, Notice, Synthesized, Time};
use crate::session::Session;
use crate::source::Round;
use crate::source::merge::Merge;
#[cfg(test)]
use crate::stack::library::Closed;
use crate::stack::library::{Library, Open};
use crate::syscall::ledger::Ledger;
use crate::task::{ProcReader, Tasks};
use follow::Follower;

/// The options of the engine.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Calls that are in flight for longer than this, in nanoseconds, are reported as pending; with `None`, none is
    /// reported before the end.
    pub pending_after: Option<u64>,
    /// Look up the files that descriptors refer to.
    pub fd_paths: bool,
    /// Report signals as events.
    pub signals: bool,
    /// Look up the cgroup of each task.
    pub cgroups: bool,
}

/// The state of one run.
pub struct Engine {
    merge: Merge,
    follower: Follower,
}

impl Engine {
    /// Creates an engine. `files` opens the files that processes have mapped, for unwinding.
    pub fn new(session: &Session, settings: Settings, files: Box<dyn Open>) -> Engine {
        Engine { merge: Merge::new(), follower: Follower::new(session, settings, crate::beauty::tables::SYSCALLS, files) }
    }

    /// As [`Engine::new`], with other rows than the built-in ones.
    #[cfg(test)]
    fn with_rows(session: &Session, settings: Settings, rows: &'static [crate::beauty::row::Syscall]) -> Engine {
        Engine { merge: Merge::new(), follower: Follower::new(session, settings, rows, Box::new(Closed)) }
    }

    /// Processes one round; events that are due are appended to `events` in order.
    pub fn round(&mut self, session: &Session, round: Round, proc: &mut dyn ProcReader, events: &mut Vec<Event>) {
        let full: Vec<u32> = round
            .synthesized
            .iter()
            .filter_map(|(_, record)| if let Synthesized::Full { cpu } = record { Some(*cpu) } else { None })
            .collect();
        self.merge.add(&session.events, round);
        self.follower.gaps_ahead(self.merge.gaps_ahead());
        let merge = &self.merge;
        self.follower.gaps_ahead(full.into_iter().map(|cpu| (cpu, merge.last_of_ring(cpu))));
        self.merge.release(&session.events, |record| self.follower.record(record, events));
        self.follower.tick(self.merge.horizon(), events);
        for (time, record) in self.follower.read_proc(proc) {
            self.merge.synthesized(time, record);
        }
        self.follower.trouble(self.merge.trouble());
    }

    /// Ends the stream: all events that are still held are emitted, and calls in flight are reported.
    pub fn end(&mut self, session: &Session, events: &mut Vec<Event>) {
        self.merge.release_all(&session.events, |record| self.follower.record(record, events));
        self.follower.end(events);
        self.follower.trouble(self.merge.trouble());
        if session.of_cgroup {
            self.follower.count_unwritten();
        }
    }

    /// Adds a notice of the worker, which is about the events that were just shown.
    pub fn notice(&mut self, notice: Notice, events: &mut Vec<Event>) {
        self.follower.notice(notice, events);
    }

    /// Takes rendered events back, to reuse their memory.
    pub fn recycle(&mut self, events: &mut Vec<Event>) {
        self.follower.recycle(events);
    }

    /// Returns used buffers of rounds, for [`crate::source::Source::recycle`].
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

    /// Returns the state of all tasks at the stream's present time.
    pub fn tasks(&self) -> &Tasks {
        &self.follower.tasks
    }

    /// Returns the account of the calls and records that the engine has received so far.
    pub fn ledger(&self) -> &Ledger {
        &self.follower.ledger
    }
}
