//! Records in time order → events in order: the core between source and sinks.

mod follow;
mod outbox;
pub mod view;

#[cfg(test)]
mod tests;

use crate::event::{Event, Note, Time};
use crate::session::Session;
use crate::source::Round;
use crate::source::merge::Merge;
#[cfg(test)]
use crate::stack::library::Closed;
use crate::stack::library::{Library, Open};
use crate::syscall::ledger::Ledger;
use crate::task::{Look, Tasks};
use follow::Follower;

/// What the engine is told to do.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Calls in flight for longer than this are reported as pending, nanoseconds; `None` reports none before the end.
    pub pending_after: Option<u64>,
    /// Find out what descriptors point to.
    pub fd_paths: bool,
    /// Report signals as events of their own.
    pub signals: bool,
    /// Find out which cgroup each task is in.
    pub cgroups: bool,
}

/// The state of one run.
pub struct Engine {
    merge: Merge,
    follower: Follower,
}

impl Engine {
    /// `files` opens what processes have mapped, to unwind their stacks.
    pub fn new(session: &Session, settings: Settings, files: Box<dyn Open>) -> Engine {
        Engine { merge: Merge::new(), follower: Follower::new(session, settings, crate::beauty::tables::SYSCALLS, files) }
    }

    /// The same, with other rows than the built-in ones.
    #[cfg(test)]
    fn with_rows(session: &Session, settings: Settings, rows: &'static [crate::beauty::row::Syscall]) -> Engine {
        Engine { merge: Merge::new(), follower: Follower::new(session, settings, rows, Box::new(Closed)) }
    }

    /// Takes one round; events that are due are appended to `events` in order.
    pub fn round(&mut self, session: &Session, round: Round, look: &mut dyn Look, events: &mut Vec<Event>) {
        let full: Vec<u32> =
            round.notes.iter().filter_map(|(_, note)| if let Note::Full { cpu } = note { Some(*cpu) } else { None }).collect();
        self.merge.add(&session.events, round);
        self.follower.gaps_ahead(self.merge.gaps_ahead());
        let merge = &self.merge;
        self.follower.gaps_ahead(full.into_iter().map(|cpu| (cpu, merge.last_of_ring(cpu))));
        self.merge.release(&session.events, |record| self.follower.record(record, events));
        self.follower.tick(self.merge.horizon(), events);
        for (time, note) in self.follower.looks(look) {
            self.merge.note(time, note);
        }
        self.follower.trouble(self.merge.trouble());
    }

    /// The stream is over: everything that still waits is due. Calls in flight are given as such.
    pub fn end(&mut self, session: &Session, events: &mut Vec<Event>) {
        self.merge.release_all(&session.events, |record| self.follower.record(record, events));
        self.follower.end(events);
        self.follower.trouble(self.merge.trouble());
        if session.of_cgroup {
            self.follower.count_unwritten();
        }
    }

    /// Takes events back that were rendered, for their memory.
    pub fn recycle(&mut self, events: &mut Vec<Event>) {
        self.follower.recycle(events);
    }

    /// Buffers of rounds that are used up, for [`crate::source::Source::recycle`].
    pub fn spent(&mut self) -> Round {
        self.merge.spent()
    }

    /// No event that is still to come is older.
    pub fn now(&self) -> Time {
        self.follower.now()
    }

    /// Events are held until a look's answer has passed through the stream: the sooner the next round, the sooner they are out.
    pub fn is_waiting(&self) -> bool {
        self.follower.is_waiting()
    }

    /// The files that stacks lead through.
    pub fn library(&self) -> Option<&Library> {
        self.follower.library()
    }

    /// Processes whose memory is gone since this was asked last: what was learnt of it is of no use any more.
    pub fn gone(&mut self) -> Vec<i32> {
        self.follower.gone()
    }

    pub fn tasks(&self) -> &Tasks {
        &self.follower.tasks
    }

    pub fn ledger(&self) -> &Ledger {
        &self.follower.ledger
    }
}
