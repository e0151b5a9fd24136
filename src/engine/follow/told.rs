//! What the BPF programs told of calls and tasks before the record that it belongs to.

use crate::bpf::files::Files;
use crate::bpf::parts::Parts;
use crate::bpf::record::{How, Seen, add_pieces};
use crate::engine::outbox::Outbox;
use crate::event::{Call, CallFile, Stack, Time};
use crate::task::fds::Ticket;
use crate::task::tasks::Slot;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// It waits here until its record comes.
#[derive(Default)]
pub(super) struct Told {
    /// Calls that a look found in flight and that were shown so, by thread; the record of each is still to come, or
    /// lost.
    in_flight: FxHashMap<i32, (Slot, Box<Call>)>,
    /// Stacks of calls that will have another when they are over, by thread, with the time of their entry.
    entry_stacks: FxHashMap<i32, (Time, Arc<Stack>)>,
    files: Files,
    /// Parts of calls that are longer than a record.
    parts: Parts,
    /// The events of ends, by tid, that wait for the programs' word.
    untold_ends: FxHashMap<i32, Ticket>,
}

impl Told {
    /// A part of a call that is longer than a record.
    pub fn part(&mut self, seen: &Seen<'_>) {
        self.parts.add(seen);
    }

    /// Nothing more comes of the thread's call.
    pub fn forget_parts(&mut self, tid: i32) {
        self.parts.forget(tid);
    }

    /// Adds to a call what it pointed to and what its descriptors were, from its record and from parts that came
    /// before it.
    #[inline]
    pub fn complete(&mut self, seen: &Seen<'_>, call: &mut Call) {
        let parts = if seen.parts_before() == 0 { &[] } else { self.parts.of(seen) };
        let files = if parts.is_empty() { SmallVec::new() } else { add_pieces(parts, call) };
        for file in files.into_iter().chain(add_pieces(seen.pieces, call)) {
            if let Some(known) = self.files.file(&file) {
                call.files.push(CallFile { place: file.place, file: known });
            }
        }
        if seen.how != How::Pending && !self.parts.is_empty() {
            self.parts.forget(seen.tid);
        }
    }

    /// Where a call of the thread was made from that began at `start`.
    pub fn stack(&mut self, tid: i32, start: Time, stack: Arc<Stack>) {
        self.entry_stacks.insert(tid, (start, stack));
    }

    /// The stack of the thread's call that began at `start`, if it was told; that of another call is of no use any
    /// more.
    pub fn take_stack(&mut self, tid: i32, start: Time) -> Option<Arc<Stack>> {
        self.entry_stacks.remove(&tid).filter(|(told, _)| *told == start).map(|(_, stack)| stack)
    }

    /// The thread's call is shown as pending.
    pub fn is_in_flight(&mut self, tid: i32, slot: Slot, call: Box<Call>) {
        self.in_flight.insert(tid, (slot, call));
    }

    #[inline]
    pub fn are_any_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// The thread's call that was shown as pending.
    pub fn take_in_flight(&mut self, tid: i32) -> Option<Box<Call>> {
        self.in_flight.remove(&tid).map(|(_, call)| call)
    }

    /// All calls that were shown as pending and of which nothing more was heard, the oldest first.
    pub fn take_all_in_flight(&mut self) -> Vec<(Slot, Box<Call>)> {
        let mut left: Vec<_> = self.in_flight.drain().map(|(_, left)| left).collect();
        left.sort_unstable_by_key(|(_, call)| (call.id.start, call.id.tid));
        left
    }

    /// The event of the task's end, the next that is given, waits for the programs' word.
    pub fn end_waits(&mut self, tid: i32, outbox: &Outbox) {
        self.untold_ends.retain(|_, ticket| outbox.holds(*ticket));
        self.untold_ends.insert(tid, outbox.next());
    }

    /// The event of the task's end, if it waits.
    pub fn take_end(&mut self, tid: i32, outbox: &Outbox) -> Option<Ticket> {
        self.untold_ends.remove(&tid).filter(|ticket| outbox.holds(*ticket))
    }
}
