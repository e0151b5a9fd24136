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

mod held;

use super::{Sink, TraceResult, View};
use crate::event::{Call, CallId, Disposition, EntryState, Event, EventKind, ExitState, TaskEnd, Time};
use crate::show::strace::Lines;
use held::{Held, Slot};
use libc::SIGKILL;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::io;

/// How long an event waits, in nanoseconds. Calls are listed as pending after 0.1 seconds, in rounds that are 0.1
/// seconds apart.
const WAIT: u64 = 300_000_000;

/// The maximum number of moments that wait. If there are more, the oldest half is passed on, and calls that began among
/// them and end later have one line.
const WAITING_MAX: usize = 1 << 17;

/// The number of moments at the end among which the place of a new one is looked for first.
const NEAR: usize = 8;

/// The sink that passes events to another one in the order of strace: calls as pending when something else happens
/// before they return.
pub struct Interleaved<S> {
    inner: S,
    lines: Lines,
    /// Whether the line of a call that takes long begins before something else happens.
    shows_open: bool,
    /// In the order of their times; equal times in the order of arrival.
    waiting: VecDeque<Moment>,
    /// The events of these moments.
    held: Held,
    /// The time up to which moments were passed on.
    done: Time,
    /// The call that has begun last, if nothing happened since.
    open: Option<Slot>,
    /// Whether the line of this call has begun.
    is_line_open: bool,
    /// Calls that were pending before they ended, and whose beginning waits or was passed on.
    begun: FxHashSet<CallId>,
    /// Calls that were passed on as pending.
    split: FxHashSet<CallId>,
    /// The number of tasks that are alive; `None` if it is not known. While there is one, nothing has to wait.
    alive: Option<usize>,
}

/// Something that happens at a time.
struct Moment {
    time: Time,
    what: What,
    event: Slot,
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// A call begins. Its event is the one of its end, if the call has ended when it becomes known.
    Begins,
    Ends,
    /// An event that is no call.
    Other,
}

impl<S: Sink> Interleaved<S> {
    /// Creates the sink. `shows_open`: the output is watched while it is written. `alive`: the number of tasks that are
    /// traced at the beginning, if it is known.
    pub fn new(inner: S, lines: &Lines, shows_open: bool, alive: Option<usize>) -> Interleaved<S> {
        Interleaved {
            inner,
            lines: lines.clone(),
            shows_open,
            waiting: VecDeque::new(),
            held: Held::default(),
            done: Time(0),
            open: None,
            is_line_open: false,
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

    /// Lets an event that is held wait for its turn.
    fn wait(&mut self, slot: Slot, view: &View) -> io::Result<()> {
        let event = &self.held[slot];
        let time = event.time;
        match call_of(event) {
            None => self.add(time, What::Other, slot),
            Some(call) => {
                let (id, is_seen) = (call.id, call.entry == EntryState::Seen);
                match matches!(event.kind, EventKind::Pending(_)) {
                    // strace makes a call that it interrupts begin again, so one from before the trace is shown, too.
                    true if call.entry != EntryState::Lost && self.begun.insert(id) => self.add(id.start, What::Begins, slot),
                    true => self.held.release(slot),
                    false => {
                        if is_seen && id.start >= self.done && !self.begun.contains(&id) {
                            self.add(id.start, What::Begins, slot);
                        }
                        self.add(time, What::Ends, slot);
                    }
                }
            }
        }
        match self.waiting.get(WAITING_MAX) {
            Some(_) => self.pass_until(self.waiting[WAITING_MAX / 2].time, view),
            None => Ok(()),
        }
    }

    /// Adds a moment behind those of the same time. One that is too late happens now.
    fn add(&mut self, time: Time, what: What, event: Slot) {
        let time = time.max(self.done);
        // Most moments are the last one, or the beginning of a short call.
        let after = self.waiting.iter().rev().take(NEAR).take_while(|moment| moment.time > time).count();
        let at = match after {
            NEAR => self.waiting.partition_point(|moment| moment.time <= time),
            _ => self.waiting.len() - after,
        };
        self.waiting.insert(at, Moment { time, what, event });
    }

    /// Passes on all moments up to a time.
    fn pass_until(&mut self, until: Time, view: &View) -> io::Result<()> {
        while self.waiting.front().is_some_and(|first| first.time <= until) {
            let Some(moment) = self.waiting.pop_front() else { break };
            self.done = moment.time;
            match moment.what {
                What::Begins => {
                    self.split_open(view)?;
                    self.open = Some(moment.event);
                }
                What::Ends => self.ends(moment.event, view)?,
                What::Other => {
                    if self.is_printed(&self.held[moment.event].kind) {
                        self.split_open(view)?;
                    }
                    self.inner.event(&self.held[moment.event], view)?;
                    self.held.release(moment.event);
                }
            }
        }
        Ok(())
    }

    fn ends(&mut self, slot: Slot, view: &View) -> io::Result<()> {
        let EventKind::Call(call) = &self.held[slot].kind else { return Ok(()) };
        let id = call.id;
        match self.open.filter(|open| call_of(&self.held[*open]).is_some_and(|open| open.id == id)) {
            // The line of a call cannot go on under another number.
            Some(_) if self.is_line_open && self.held[slot].task.tid != id.tid => self.split_open(view)?,
            Some(open) => {
                (self.open, self.is_line_open) = (None, false);
                self.held.release_pending(open);
            }
            // It has its line, and there is no end to show.
            None if call_of(&self.held[slot]).is_some_and(|call| call.exit == ExitState::Pending) && self.split.contains(&id) => {}
            None => self.split_open(view)?,
        }
        self.begun.remove(&id);
        let is_split = self.split.remove(&id);
        if let EventKind::Call(call) = &mut self.held[slot].kind {
            call.shown_pending = is_split;
        }
        self.inner.event(&self.held[slot], view)?;
        self.held.release(slot);
        Ok(())
    }

    /// Passes on the open call as pending, unless its line has begun.
    fn split_open(&mut self, view: &View) -> io::Result<()> {
        let Some(slot) = self.open.take() else { return Ok(()) };
        self.split.extend(call_of(&self.held[slot]).map(|call| call.id));
        if !std::mem::take(&mut self.is_line_open) {
            self.held.as_pending(slot, |pending| self.inner.event(pending, view))?;
        }
        self.held.release_pending(slot);
        Ok(())
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
        let slot = self.held.hold(event.clone());
        self.wait(slot, view)
    }

    fn pass_over(&mut self, event: &Event, view: &View) {
        self.inner.pass_over(event, view);
    }

    fn take(&mut self, event: &mut Event, view: &View) -> io::Result<()> {
        if self.is_alone(event) {
            self.done = self.done.max(event.time);
            return self.inner.event(event, view);
        }
        let slot = self.held.exchange(event);
        self.wait(slot, view)
    }

    fn tick(&mut self, view: &View) -> io::Result<()> {
        let until = Time(view.now.0.saturating_sub(WAIT));
        self.pass_until(until, view)?;
        if let Some(slot) = self.open.filter(|_| self.shows_open && !self.is_line_open && self.waiting.is_empty()) {
            self.held.as_pending(slot, |pending| self.inner.open(pending, view))?;
            self.is_line_open = true;
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
        self.inner.unwritten() + self.waiting.iter().filter(|moment| moment.what == What::Ends).count() as u64
    }
}

#[cfg(test)]
mod tests;
