//! Facts about calls and tasks that the BPF programs report before the record that they belong to.

use crate::bpf::files::Files;
use crate::bpf::parts::Parts;
use crate::bpf::record::{CallRecord, RecordKind, add_pieces};
use crate::engine::outbox::Outbox;
use crate::event::{Call, CallFile, Stack, Time};
use crate::task::fds::Ticket;
use crate::task::tasks::Slot;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Keeps these facts until the record arrives.
#[derive(Default)]
pub(super) struct Reported {
    /// Calls that were found in flight and shown as pending, by thread. The record of each is still to come, or was
    /// lost.
    in_flight: FxHashMap<i32, (Slot, Box<Call>)>,
    /// Call chains taken at the entry of calls that have another stack when they return, by thread, with the time of
    /// the entry.
    entry_stacks: FxHashMap<i32, (Time, Arc<Stack>)>,
    files: Files,
    /// Parts of calls that do not fit into one record.
    parts: Parts,
    /// Events of task ends that wait for the programs' record, by tid.
    unreported_ends: FxHashMap<i32, Ticket>,
}

impl Reported {
    /// Stores a part of a call that does not fit into one record.
    pub fn add_part(&mut self, call_record: &CallRecord<'_>) {
        self.parts.add(call_record);
    }

    /// Drops the parts of the thread's call.
    pub fn forget_parts(&mut self, tid: i32) {
        self.parts.forget(tid);
    }

    /// Adds pieces and files to a call, from its record and from the parts that preceded it.
    #[inline]
    pub fn complete(&mut self, call_record: &CallRecord<'_>, call: &mut Call) {
        let parts = if call_record.parts_before() == 0 { &[] } else { self.parts.of(call_record) };
        for pieces in [parts, call_record.pieces] {
            add_pieces(pieces, call, |call, file| {
                if let Some(known) = self.files.file(&file) {
                    call.files.push(CallFile { place: file.place, file: known });
                }
            });
        }
        if !matches!(call_record.kind, RecordKind::Pending | RecordKind::Entry) && !self.parts.is_empty() {
            self.parts.forget(call_record.tid);
        }
    }

    /// Stores the call chain of the thread's call that began at `start`.
    pub fn store_stack(&mut self, tid: i32, start: Time, stack: Arc<Stack>) {
        self.entry_stacks.insert(tid, (start, stack));
    }

    /// Takes the call chain of the thread's call that began at `start`. The chain of any other call is dropped.
    pub fn take_stack(&mut self, tid: i32, start: Time) -> Option<Arc<Stack>> {
        self.entry_stacks.remove(&tid).filter(|(reported, _)| *reported == start).map(|(_, stack)| stack)
    }

    /// Stores a call of the thread that is shown as pending.
    pub fn store_in_flight(&mut self, tid: i32, slot: Slot, call: Box<Call>) {
        self.in_flight.insert(tid, (slot, call));
    }

    /// Returns whether the record of any call that was shown as pending is still to come.
    #[inline]
    pub fn are_any_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Returns whether anything is kept for the next record of the thread's call.
    #[inline]
    pub fn keeps_any_of(&self, tid: i32) -> bool {
        self.are_any_in_flight() && self.in_flight.contains_key(&tid) || self.parts.has_any_of(tid)
    }

    /// Takes the thread's call that was shown as pending.
    pub fn take_in_flight(&mut self, tid: i32) -> Option<Box<Call>> {
        self.in_flight.remove(&tid).map(|(_, call)| call)
    }

    /// Takes all calls that were shown as pending and got no further record, the oldest first.
    pub fn take_all_in_flight(&mut self) -> Vec<(Slot, Box<Call>)> {
        let mut left: Vec<_> = self.in_flight.drain().map(|(_, left)| left).collect();
        left.sort_unstable_by_key(|(_, call)| (call.id.start, call.id.tid));
        left
    }

    /// Makes the next event, which is the task's end, wait for the programs' record.
    pub fn end_waits(&mut self, tid: i32, outbox: &Outbox) {
        self.unreported_ends.retain(|_, ticket| outbox.holds(*ticket));
        self.unreported_ends.insert(tid, outbox.next());
    }

    /// Takes the event of the task's end, if it still waits.
    pub fn take_end(&mut self, tid: i32, outbox: &Outbox) -> Option<Ticket> {
        self.unreported_ends.remove(&tid).filter(|ticket| outbox.holds(*ticket))
    }
}
