//! Puts lines into the order of strace, in which a call has one line only if nothing else happens until it returns:
//!
//! ```text
//! 7 wait4(-1,  <unfinished ...>
//! 8 exit_group(0) = ?
//! 8 +++ exited with 0 +++
//! 7 <... wait4 resumed>NULL, 0, NULL) = 8
//! ```
//! The engine emits a call when it ends, or as pending some 0.2 seconds after it began. Events therefore wait until all
//! calls that began before them are known.

use super::{Sink, TraceResult, View};
use crate::event::{Call, CallId, Disposition, EntryState, Event, EventKind, ExitState, TaskEnd, TaskId, Time};
use crate::show::strace::Lines;
use libc::SIGKILL;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

/// How long an event waits, in nanoseconds. Calls are listed as pending after 0.1 seconds, in rounds that are 0.1
/// seconds apart.
const WAIT: u64 = 300_000_000;

/// The maximum number of moments that wait. If there are more, the oldest half is passed on, and calls that began among
/// them and end later have one line.
const WAITING_MAX: usize = 1 << 17;

/// The sink that passes events to another one in the order of strace: calls as pending when something else happens
/// before they return.
pub struct Interleaved<S> {
    inner: S,
    lines: Lines,
    /// Whether a call that takes long is shown before something else happens.
    shows_open: bool,
    /// By time and order of arrival.
    waiting: BTreeMap<(Time, u64), Moment>,
    arrived: u64,
    /// The time up to which moments were passed on.
    done: Time,
    /// The call that has begun last, if nothing happened since.
    open: Option<Rc<Event>>,
    /// Calls whose beginning waits or was passed on.
    begun: FxHashSet<CallId>,
    /// Calls that were passed on as pending.
    split: FxHashSet<CallId>,
    /// The number of tasks that are alive; `None` if it is not known. While there is one, nothing has to wait.
    alive: Option<usize>,
}

/// What happens at a time.
enum Moment {
    Begins(Rc<Event>),
    Ends(Rc<Event>),
    /// An event that is no call.
    Other(Rc<Event>),
}

impl<S: Sink> Interleaved<S> {
    /// Creates the sink. `shows_open`: the output is watched while it is written. `alive`: the number of tasks that are
    /// traced at the beginning, if it is known.
    pub fn new(inner: S, lines: &Lines, shows_open: bool, alive: Option<usize>) -> Interleaved<S> {
        Interleaved {
            inner,
            lines: lines.clone(),
            shows_open,
            waiting: BTreeMap::new(),
            arrived: 0,
            done: Time(0),
            open: None,
            begun: FxHashSet::default(),
            split: FxHashSet::default(),
            alive,
        }
    }

    /// Returns whether an event can be passed on at once, because its task is the only one.
    fn is_alone(&mut self, event: &Event) -> bool {
        let is_alone = self.alive == Some(1) && self.waiting.is_empty() && self.open.is_none();
        self.alive = self.alive.map(|alive| match &event.kind {
            EventKind::Fork { .. } => alive + 1,
            EventKind::Exit(_) => alive.saturating_sub(1),
            _ => alive,
        });
        is_alone && !matches!(&event.kind, EventKind::Pending(_)) && call_of(event).is_none_or(|call| !self.begun.contains(&call.id))
    }

    /// Stores a moment. One that is too late happens now.
    fn wait(&mut self, time: Time, moment: Moment) {
        self.arrived += 1;
        self.waiting.insert((time.max(self.done), self.arrived), moment);
    }

    /// Passes on all moments up to a time.
    fn pass_until(&mut self, until: Time, view: &View) -> io::Result<()> {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= until) {
            self.done = first.key().0;
            match first.remove() {
                Moment::Begins(event) => {
                    self.split_open(view)?;
                    self.open = Some(event);
                }
                Moment::Ends(event) => self.ends(&event, view)?,
                Moment::Other(event) => {
                    if self.is_printed(&event.kind) {
                        self.split_open(view)?;
                    }
                    self.inner.event(&event, view)?;
                }
            }
        }
        Ok(())
    }

    fn ends(&mut self, event: &Event, view: &View) -> io::Result<()> {
        let EventKind::Call(call) = &event.kind else { return Ok(()) };
        self.begun.remove(&call.id);
        let is_split = self.split.remove(&call.id);
        match self.open.as_deref().and_then(call_of).is_some_and(|open| open.id == call.id) {
            true => self.open = None,
            false => self.split_open(view)?,
        }
        match call.shown_pending == is_split {
            true => self.inner.event(event, view),
            false => {
                let call = Call { shown_pending: is_split, ..(**call).clone() };
                self.inner.event(&Event { kind: EventKind::Call(Box::new(call)), ..event.clone() }, view)
            }
        }
    }

    /// Passes on the open call as pending.
    fn split_open(&mut self, view: &View) -> io::Result<()> {
        let Some(event) = self.open.take() else { return Ok(()) };
        let Some(call) = call_of(&event) else { return Ok(()) };
        self.split.insert(call.id);
        let pending = Call { exit: ExitState::Pending, shown_pending: false, ..call.clone() };
        // An exec by another thread than the leader ends with the leader's number.
        let task = TaskId { tid: call.id.tid, ..event.task };
        self.inner.event(&Event { time: call.id.start, task, kind: EventKind::Pending(Box::new(pending)), ..(*event).clone() }, view)
    }

    /// Returns whether the style prints a line for an event that is no call.
    fn is_printed(&self, kind: &EventKind) -> bool {
        match kind {
            // These are printed behind the call that they arrive in.
            EventKind::Signal(signal) if matches!(signal.disposition, Disposition::Ignored | Disposition::Kills) => false,
            EventKind::Signal(signal) => signal.number != SIGKILL && self.lines.shows(signal.number),
            EventKind::Exit(TaskEnd::Killed { signal, .. }) => self.lines.ends && self.lines.shows(*signal),
            EventKind::Exit(_) => self.lines.ends,
            EventKind::Fork { .. } => self.lines.attached,
            EventKind::Lost(_) => true,
            _ => false,
        }
    }
}

/// Returns the call of an event.
fn call_of(event: &Event) -> Option<&Call> {
    match &event.kind {
        EventKind::Call(call) | EventKind::Pending(call) => Some(call),
        _ => None,
    }
}

impl<S: Sink> Sink for Interleaved<S> {
    fn event(&mut self, event: &Event, view: &View) -> io::Result<()> {
        if self.is_alone(event) {
            self.done = self.done.max(event.time);
            return self.inner.event(event, view);
        }
        let event = Rc::new(event.clone());
        match call_of(&event) {
            None => self.wait(event.time, Moment::Other(event)),
            Some(call) => {
                let is_late = call.id.start < self.done && !matches!(event.kind, EventKind::Pending(_));
                if call.entry == EntryState::Seen && !is_late && self.begun.insert(call.id) {
                    self.wait(call.id.start, Moment::Begins(Rc::clone(&event)));
                }
                if matches!(event.kind, EventKind::Call(_)) {
                    self.wait(event.time, Moment::Ends(event));
                }
            }
        }
        if self.waiting.len() > WAITING_MAX {
            let middle = self.waiting.keys().nth(WAITING_MAX / 2).map_or(self.done, |(time, _)| *time);
            self.pass_until(middle, view)?;
        }
        Ok(())
    }

    fn tick(&mut self, view: &View) -> io::Result<()> {
        let until = Time(view.now.0.saturating_sub(WAIT));
        self.pass_until(until, view)?;
        let begun = self.open.as_deref().and_then(call_of).map(|call| call.id.start);
        if self.shows_open && begun.is_some_and(|start| until.since(start) > WAIT) {
            self.split_open(view)?;
        }
        self.inner.tick(view)
    }

    fn end(&mut self, result: &TraceResult, view: &View) -> io::Result<()> {
        self.pass_until(Time(u64::MAX), view)?;
        self.split_open(view)?;
        self.inner.end(result, view)
    }

    fn finish(&mut self, result: &TraceResult, view: &View) -> io::Result<()> {
        self.inner.finish(result, view)
    }

    fn unwritten(&self) -> u64 {
        self.inner.unwritten() + self.waiting.values().filter(|moment| matches!(moment, Moment::Ends(_))).count() as u64
    }
}

#[cfg(test)]
mod tests;
