//! Sinks: text lines, summaries and graphs of events. Each sink has its own file and knows no other sink. A sink
//! renders events and does not decide which events are shown.

pub mod call_table;
mod call_tree;
pub mod graph;
pub mod interleaved;
pub mod output;
pub mod path;
pub mod report;
pub mod stack_summary;
pub mod summary;
pub mod text;

use crate::engine::view::View;
use crate::event::{Event, Notice, Verdict};
use crate::syscall::ledger::Ledger;

/// A consumer of events, which it gets in order.
pub trait Sink {
    /// Renders one event. `view` is the state at this event's time.
    ///
    /// # Errors
    /// The output cannot be written. A broken pipe is one of these errors.
    fn event(&mut self, event: &Event, view: &View) -> std::io::Result<()>;

    /// Renders the beginning of a call in flight. Its line goes on when the call ends, if no other line comes first.
    ///
    /// # Errors
    /// Those of [`event`](Sink::event).
    fn open(&mut self, event: &Event, view: &View) -> std::io::Result<()> {
        self.event(event, view)
    }

    /// Renders one event that nobody else needs any more. The sink may keep it, and then leaves another event, which it
    /// has rendered before, in its place, so that its memory is reused.
    ///
    /// # Errors
    /// Those of [`event`](Sink::event).
    fn take(&mut self, event: &mut Event, view: &View) -> std::io::Result<()> {
        self.event(event, view)
    }

    /// Takes an event that is not shown because it is outside the span of `--time`. What later lines show of earlier
    /// ones, such as the time since then, is that of all lines.
    fn pass_over(&mut self, _event: &Event, _view: &View) {}

    /// Writes pending output. All events before this time were emitted.
    fn tick(&mut self, view: &View) -> std::io::Result<()>;

    /// Writes the final output, after the last event.
    fn end(&mut self, result: &TraceResult, view: &View) -> std::io::Result<()>;

    /// Returns the notice that the sink printed about its final output, for all sinks.
    fn said(&mut self) -> Option<Notice> {
        None
    }

    /// Writes the part of the output that must follow the final output of all sinks.
    fn finish(&mut self, _: &TraceResult, _: &View) -> std::io::Result<()> {
        Ok(())
    }

    /// Returns the number of calls that the sink could not write, after a write has failed.
    fn unwritten(&self) -> u64 {
        0
    }
}

/// The result of a trace, for the final output.
pub struct TraceResult<'a> {
    /// The counts of issued, received and lost records.
    pub ledger: &'a Ledger,
    /// The verdict of the trace, on the condition that the sinks can write the rest of their output.
    pub verdict: &'a Verdict,
}
