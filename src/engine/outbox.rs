//! Events on their way out: in order, some of them waiting for what a look will say.
//!
//! An event that waits holds all behind it, so that the order stays. How long and how much may wait is bounded; after that an event leaves as it is.

use crate::event::{Call, CallFile, Event, FdPlace, File, Stack, TaskEnd, Time, What};
use crate::task::fds::{Path, Ticket};
use std::collections::VecDeque;

/// No event waits longer than this, nanoseconds of the stream's time.
const WAIT_MAX: u64 = 1_000_000_000;
/// No more than so many events are held.
const HELD_MAX: usize = 16_384;
/// Nor more than so many bytes of what they carry.
const HELD_BYTES_MAX: usize = 16 << 20;

/// The queue.
#[derive(Debug, Default)]
pub struct Outbox {
    held: VecDeque<Held>,
    /// The number of the first one.
    first: Ticket,
    bytes: usize,
}

#[derive(Debug)]
struct Held {
    event: Event,
    /// How many facts it waits for.
    waits: u32,
}

impl Outbox {
    /// The number of the next event.
    pub fn next(&self) -> Ticket {
        self.first + self.held.len() as Ticket
    }

    /// Something waits.
    pub fn is_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// The event with this number has not left yet.
    pub fn holds(&self, ticket: Ticket) -> bool {
        ticket >= self.first
    }

    /// An event that waits for so many facts, or for none.
    #[inline]
    pub fn push(&mut self, event: Event, waits: u32, events: &mut Vec<Event>) {
        if waits == 0 && self.held.is_empty() {
            self.first += 1;
            events.push(event);
        } else {
            self.hold(event, waits, events);
        }
    }

    #[cold]
    fn hold(&mut self, event: Event, waits: u32, events: &mut Vec<Event>) {
        self.bytes += carried(&event);
        self.held.push_back(Held { event, waits });
        while self.held.len() > HELD_MAX || self.bytes > HELD_BYTES_MAX {
            self.give_first(events);
        }
        self.release(events);
    }

    /// What a descriptor was is known, or never will be.
    pub fn settle(&mut self, ticket: Ticket, place: FdPlace, path: Option<Path>, events: &mut Vec<Event>) {
        if let (Some(path), Some(What::Call(call))) = (path, self.waiting(ticket)) {
            call.files.push(CallFile { place, file: File::of_link(&path) });
        }
        self.release_one(ticket, events);
    }

    /// The call with this number, while it waits.
    pub fn call(&mut self, ticket: Ticket) -> Option<&mut Call> {
        match self.waiting(ticket) {
            Some(What::Call(call)) => Some(call),
            _ => None,
        }
    }

    /// How a task ended is known.
    pub fn end_known(&mut self, ticket: Ticket, end: TaskEnd, events: &mut Vec<Event>) {
        if let Some(What::Exit(unknown)) = self.waiting(ticket) {
            *unknown = end;
        }
        self.release_one(ticket, events);
    }

    /// An event waits for one fact less.
    pub fn release_one(&mut self, ticket: Ticket, events: &mut Vec<Event>) {
        if let Some(held) = ticket.checked_sub(self.first).and_then(|at| self.held.get_mut(at as usize)) {
            held.waits = held.waits.saturating_sub(1);
            self.release(events);
        }
    }

    fn waiting(&mut self, ticket: Ticket) -> Option<&mut What> {
        let at = ticket.checked_sub(self.first)?;
        self.held.get_mut(at as usize).map(|held| &mut held.event.what)
    }

    /// The stream is at this time: what waited too long goes.
    pub fn expire(&mut self, now: Time, events: &mut Vec<Event>) {
        while self.held.front().is_some_and(|held| now.since(held.event.time) > WAIT_MAX) {
            self.give_first(events);
        }
        self.release(events);
    }

    /// The stream is over.
    pub fn give_all(&mut self, events: &mut Vec<Event>) {
        while !self.held.is_empty() {
            self.give_first(events);
        }
    }

    fn release(&mut self, events: &mut Vec<Event>) {
        while self.held.front().is_some_and(|held| held.waits == 0) {
            self.give_first(events);
        }
    }

    fn give_first(&mut self, events: &mut Vec<Event>) {
        if let Some(held) = self.held.pop_front() {
            self.first += 1;
            self.bytes = self.bytes.saturating_sub(carried(&held.event));
            events.push(held.event);
        }
    }
}

/// How many bytes an event carries beside itself; what is added while it waits does not count.
fn carried(event: &Event) -> usize {
    match &event.what {
        What::Call(call) | What::Pending(call) => call.payload.len() + call.stack.as_deref().map_or(0, Stack::bytes),
        What::Tracepoint { raw, .. } => raw.len(),
        _ => 0,
    }
}
