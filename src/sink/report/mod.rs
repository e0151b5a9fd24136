//! `rtrace report`: the call paths of all shown calls, with their numbers and the time that they took.
//!
//! A call without a known duration (it never returned, or a record is missing) counts, and has no time. Frames of the
//! kernel are left out: stacks are taken where calls return, so they are the same for all calls.

mod json;
mod rows;
mod text;

use super::call_tree::{CallPath, NodeKind, Sum, Tree};
use super::output::SharedOutput;
use super::{Sink, TraceResult, View};
use crate::event::frame::StackEnd;
use crate::event::{Call, Event, EventKind};
use crate::request;
use crate::show::Style;
use std::io;
use std::sync::PoisonError;

/// What is added up of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    calls: u64,
    /// The calls whose duration is known.
    timed: u64,
    /// The time of these calls in nanoseconds.
    time: u64,
}

impl Sum for Sums {
    fn add(&mut self, other: Sums) {
        self.calls.add(other.calls);
        self.timed.add(other.timed);
        self.time.add(other.time);
    }
}

impl Sums {
    /// Returns the average duration in nanoseconds, if one is known.
    fn average(&self) -> Option<u64> {
        self.time.checked_div(self.timed)
    }
}

/// The numbers of all calls.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    sums: Sums,
    /// Calls that have no frames of the program.
    without_stack: u64,
    /// Calls whose outermost callers are unknown, because their stacks end early.
    ends_early: u64,
    /// Calls whose paths are cut off, because there are too many different paths.
    cut_off: u64,
}

/// The sink that sums up call paths and prints them at the end.
pub struct Report {
    wanted: request::Report,
    style: Style,
    output: SharedOutput,
    tree: Tree<Sums>,
    totals: Totals,
    /// The path of the present call, kept for its allocation.
    path: CallPath,
    is_written: bool,
}

impl Report {
    /// Creates the sink, which prints to `output` at the end.
    pub fn new(wanted: request::Report, style: Style, output: SharedOutput) -> Report {
        let (tree, totals, path) = (Tree::new(), Totals::default(), CallPath::default());
        Report { wanted, style, output, tree, totals, path, is_written: true }
    }

    fn call(&mut self, event: &Event, call: &Call, view: &View) {
        let duration = call.duration();
        let sums = Sums { calls: 1, timed: u64::from(duration.is_some()), time: duration.unwrap_or(0) };
        self.path.set(event, call, view.names);
        let of_kind =
            |wanted: NodeKind| self.path.names.iter().filter(move |(_, kind)| *kind == wanted).map(|(name, kind)| (&name[..], *kind));
        let frames: Vec<(&[u8], NodeKind)> = of_kind(NodeKind::User).collect();
        let end = call.stack.as_ref().and_then(|stack| stack.end);
        let ends_early = !frames.is_empty() && end.is_some_and(|end| !matches!(end, StackEnd::Root | StackEnd::Limit));
        let unknown = ends_early.then_some((&b"[callers unknown]"[..], NodeKind::Unknown));
        let most = self.wanted.frames_max.unwrap_or(usize::MAX);
        let (task, syscall) = (of_kind(NodeKind::Task), of_kind(NodeKind::Syscall));
        let is_whole = if self.wanted.is_inverted {
            let unknown = unknown.filter(|_| frames.len() <= most);
            self.tree.add_path(syscall.chain(frames.iter().rev().take(most).copied()).chain(unknown).chain(task), sums)
        } else {
            self.tree.add_path(task.chain(unknown).chain(frames.iter().take(most).copied()).chain(syscall), sums)
        };
        self.totals.sums.add(sums);
        self.totals.without_stack += u64::from(frames.is_empty());
        self.totals.ends_early += u64::from(ends_early);
        self.totals.cut_off += u64::from(!is_whole);
    }
}

impl Sink for Report {
    fn event(&mut self, event: &Event, view: &View) -> io::Result<()> {
        if let EventKind::Call(call) = &event.kind {
            self.call(event, call, view);
        }
        Ok(())
    }

    fn tick(&mut self, _: &View) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, result: &TraceResult, _: &View) -> io::Result<()> {
        let text = match self.style {
            Style::Perf | Style::Strace => text::report(&self.tree, &self.wanted, &self.totals, result.verdict),
            Style::Json => json::objects(&self.tree, &self.wanted)?,
        };
        let written = self.output.lock().unwrap_or_else(PoisonError::into_inner).write(None, &text);
        self.is_written = written.is_ok();
        Ok(written?)
    }

    fn unwritten(&self) -> u64 {
        if self.is_written { 0 } else { self.totals.sums.calls }
    }
}

#[cfg(test)]
mod tests;
