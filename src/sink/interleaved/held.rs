//! Events that are held until their turn. The memory of those that were passed on is given back to the engine, which
//! reuses it.

use crate::event::{Event, EventKind, ExitState, TaskId, Time};
use std::io;
use std::mem::replace;
use std::ops::{Index, IndexMut};

/// The maximum payload capacity of an event that is not held any more, in bytes.
const PAYLOAD_KEPT: usize = 256;

/// The place of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u32);

/// Events, each in a slot.
#[derive(Default)]
pub(super) struct Held {
    slots: Vec<Event>,
    /// Slots whose events were passed on.
    free: Vec<Slot>,
}

impl Held {
    /// Puts an event into a slot.
    pub fn hold(&mut self, mut event: Event) -> Slot {
        self.exchange(&mut event)
    }

    /// Puts an event into a slot, and leaves one that was passed on in its place.
    pub fn exchange(&mut self, event: &mut Event) -> Slot {
        match self.free.pop() {
            Some(slot) => {
                std::mem::swap(&mut self[slot], event);
                slot
            }
            None => {
                self.slots.push(replace(event, spent()));
                Slot((self.slots.len() - 1) as u32)
            }
        }
    }

    /// Frees the slot of an event that was passed on.
    pub fn release(&mut self, slot: Slot) {
        match &mut self[slot].kind {
            EventKind::Call(call) => {
                call.payload.clear();
                call.payload.shrink_to(PAYLOAD_KEPT);
                call.stack = None;
            }
            other => *other = spent().kind,
        }
        self.free.push(slot);
    }

    /// Frees the slot of a call that began, unless it is the slot of the call's end, too.
    pub fn release_pending(&mut self, slot: Slot) {
        if matches!(self[slot].kind, EventKind::Pending(_)) {
            self.release(slot);
        }
    }

    /// Calls a function with the event that a call had at its beginning.
    pub fn as_pending(&mut self, slot: Slot, pass: impl FnOnce(&Event) -> io::Result<()>) -> io::Result<()> {
        let event = &mut self[slot];
        let (mut call, has_ended) = match replace(&mut event.kind, spent().kind) {
            EventKind::Call(call) => (call, true),
            EventKind::Pending(call) => (call, false),
            other => {
                event.kind = other;
                return Ok(());
            }
        };
        // An exec by another thread than the leader ends with the leader's number.
        let at_start = TaskId { tid: call.id.tid, ..event.task };
        let (time, task) = (replace(&mut event.time, call.id.start), replace(&mut event.task, at_start));
        let exit = replace(&mut call.exit, ExitState::Pending);
        call.shown_pending = false;
        event.kind = EventKind::Pending(call);
        let passed = pass(event);
        (event.time, event.task) = (time, task);
        event.kind = match replace(&mut event.kind, spent().kind) {
            EventKind::Pending(mut call) if has_ended => {
                call.exit = exit;
                EventKind::Call(call)
            }
            pending => pending,
        };
        passed
    }
}

impl Index<Slot> for Held {
    type Output = Event;

    fn index(&self, slot: Slot) -> &Event {
        &self.slots[slot.0 as usize]
    }
}

impl IndexMut<Slot> for Held {
    fn index_mut(&mut self, slot: Slot) -> &mut Event {
        &mut self.slots[slot.0 as usize]
    }
}

/// Returns an event that stands where none is held.
fn spent() -> Event {
    Event { time: Time(0), cpu: 0, task: TaskId::default(), comm: None, kind: EventKind::Exit(crate::event::TaskEnd::Exited(0)) }
}
