//! The queue of events that leave the engine: in order, some of them waiting for a read of /proc.
//!
//! An event that waits holds back all events behind it, so that the order is kept. The time, number and size of held
//! events are limited; beyond the limits an event is emitted as it is.

use crate::event::{Call, CallFile, Event, EventKind, FdPlace, File, Stack, TaskEnd, Time};
use crate::task::fds::{Path, Ticket};
use std::collections::VecDeque;
use std::sync::Arc;

/// The longest time that an event waits, in nanoseconds of the stream's time.
const WAIT_MAX: u64 = 1_000_000_000;
/// The maximum number of held events.
const HELD_MAX: usize = 16_384;
/// The maximum size of the data that held events own, in bytes.
const HELD_BYTES_MAX: usize = 16 << 20;

/// The queue of outgoing events.
#[derive(Debug, Default)]
pub struct Outbox {
    held: VecDeque<HeldEvent>,
    /// The number of the first held event.
    first: Ticket,
    bytes: usize,
}

/// An event in the queue.
#[derive(Debug)]
struct HeldEvent {
    event: Event,
    /// The number of facts that the event waits for.
    waits: u32,
}

impl Outbox {
    /// Returns the number that the next event will have.
    pub fn next(&self) -> Ticket {
        self.first + self.held.len() as Ticket
    }

    /// Returns whether the event with this number is still held.
    pub fn holds(&self, ticket: Ticket) -> bool {
        ticket >= self.first
    }

    /// Adds an event that waits for this many facts, possibly none.
    #[inline]
    pub fn push(&mut self, event: Event, waits: u32, events: &mut Vec<Event>) {
        if waits == 0 && self.held.is_empty() {
            self.first += 1;
            events.push(event);
        } else {
            self.hold(event, waits, events);
        }
    }

    /// Adds an event behind held ones, or one that waits itself.
    #[cold]
    fn hold(&mut self, event: Event, waits: u32, events: &mut Vec<Event>) {
        self.bytes += owned_bytes(&event);
        self.held.push_back(HeldEvent { event, waits });
        while self.held.len() > HELD_MAX || self.bytes > HELD_BYTES_MAX {
            self.emit_first(events);
        }
        self.release(events);
    }

    /// Stores the file of a descriptor that an event waits for; `None` if it cannot be determined.
    pub fn settle(&mut self, ticket: Ticket, place: FdPlace, path: Option<Path>, events: &mut Vec<Event>) {
        if let (Some(path), Some(EventKind::Call(call))) = (path, self.waiting(ticket)) {
            call.files.push(CallFile { place, file: File::of_link(&path) });
        }
        self.release_one(ticket, events);
    }

    /// Returns the held call with this number.
    pub fn call(&mut self, ticket: Ticket) -> Option<&mut Call> {
        match self.waiting(ticket) {
            Some(EventKind::Call(call)) => Some(call),
            _ => None,
        }
    }

    /// Stores the call at whose entry or exit the held event is.
    pub fn set_call_of_event(&mut self, ticket: Ticket, of: Arc<Call>) {
        let Some(held) = ticket.checked_sub(self.first).and_then(|at| self.held.get_mut(at as usize)) else { return };
        let before = owned_bytes(&held.event);
        if let EventKind::Tracepoint { call, .. } = &mut held.event.kind {
            *call = Some(of);
        }
        self.bytes = (self.bytes + owned_bytes(&held.event)).saturating_sub(before);
    }

    /// Stores how a task ended, in the held event of its end.
    pub fn set_task_end(&mut self, ticket: Ticket, end: TaskEnd, events: &mut Vec<Event>) {
        if let Some(EventKind::Exit(unknown)) = self.waiting(ticket) {
            *unknown = end;
        }
        self.release_one(ticket, events);
    }

    /// Decrements the number of facts that an event waits for.
    pub fn release_one(&mut self, ticket: Ticket, events: &mut Vec<Event>) {
        if let Some(held) = ticket.checked_sub(self.first).and_then(|at| self.held.get_mut(at as usize)) {
            held.waits = held.waits.saturating_sub(1);
            self.release(events);
        }
    }

    fn waiting(&mut self, ticket: Ticket) -> Option<&mut EventKind> {
        let at = ticket.checked_sub(self.first)?;
        self.held.get_mut(at as usize).map(|held| &mut held.event.kind)
    }

    /// Emits the events that have waited too long at this time of the stream.
    pub fn expire(&mut self, now: Time, events: &mut Vec<Event>) {
        while self.held.front().is_some_and(|held| now.since(held.event.time) > WAIT_MAX) {
            self.emit_first(events);
        }
        self.release(events);
    }

    /// Emits all held events, at the end of the stream.
    pub fn emit_all(&mut self, events: &mut Vec<Event>) {
        while !self.held.is_empty() {
            self.emit_first(events);
        }
    }

    fn release(&mut self, events: &mut Vec<Event>) {
        while self.held.front().is_some_and(|held| held.waits == 0) {
            self.emit_first(events);
        }
    }

    fn emit_first(&mut self, events: &mut Vec<Event>) {
        if let Some(held) = self.held.pop_front() {
            self.first += 1;
            self.bytes = self.bytes.saturating_sub(owned_bytes(&held.event));
            events.push(held.event);
        }
    }
}

/// Returns the size in bytes of the data that an event owns, without what is added to it later.
fn owned_bytes(event: &Event) -> usize {
    let data = match &event.kind {
        EventKind::Call(call) | EventKind::Pending(call) => call.payload.len(),
        EventKind::Tally(tally) => size_of_val(tally.calls.as_slice()),
        EventKind::Tracepoint { raw, call, .. } => raw.len() + call.as_ref().map_or(0, |call| call.payload.len()),
        _ => 0,
    };
    data + event.kind.stack().map_or(0, Stack::bytes)
}
