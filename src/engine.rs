//! Records in time order → events in order: the core between source and sinks.

use crate::event::Event;
use crate::source::{Round, Session};
use crate::syscall::ledger::Ledger;
use crate::task::{Look, Tasks};

/// What the engine is told to do.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Calls in flight for longer than this are reported as pending, nanoseconds; `None` reports none before the end.
    pub pending_after: Option<u64>,
    /// Find out what descriptors point to.
    pub fd_paths: bool,
    /// Report task ends, signals and page faults as events of their own.
    pub signals: bool,
}

/// The state of one run.
pub struct Engine {
    settings: Settings,
    tasks: Tasks,
    ledger: Ledger,
}

impl Engine {
    pub fn new(_session: &Session, settings: Settings) -> Engine {
        Engine { settings, tasks: Tasks::default(), ledger: Ledger::default() }
    }

    /// Takes one round; events that are due are appended to `events` in order.
    pub fn round(&mut self, _session: &Session, _round: &Round, _look: &mut dyn Look, _events: &mut Vec<Event>) {
        let _ = self.settings;
    }

    /// The stream is over: everything that still waits is due.
    pub fn end(&mut self, _session: &Session, _events: &mut Vec<Event>) {}

    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}
