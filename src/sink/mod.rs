//! What becomes of events. One file a sink, none knows another; a sink renders and decides nothing.

pub mod graph;
pub mod output;
mod path;
pub mod stack_summary;
pub mod summary;
pub mod text;

use crate::engine::view::View;
use crate::event::Event;
use crate::gate::Account;
use crate::syscall::ledger::Ledger;

/// A receiver of events, in order.
pub trait Sink {
    /// One event. `view` is what is known at this event's time.
    ///
    /// # Errors
    /// The output cannot be written; a broken pipe is one of them.
    fn event(&mut self, event: &Event, view: &View) -> std::io::Result<()>;

    /// Everything before this time was given: write out what waits.
    fn tick(&mut self, view: &View) -> std::io::Result<()>;

    /// There is no more: print what comes last.
    fn end(&mut self, over: &Over, view: &View) -> std::io::Result<()>;

    /// How many of the calls that it was given it could not write.
    fn unwritten(&self) -> u64 {
        0
    }
}

/// How the trace went.
pub struct Over<'a> {
    /// What was issued, seen and lost.
    pub ledger: &'a Ledger,
    /// What was shown.
    pub account: Account,
}
