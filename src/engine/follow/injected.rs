//! Calls that the supervisor of `--inject` changed.
//!
//! The kernel asks the supervisor before the tracepoint of the entry. A call that it answers therefore has only an exit
//! record; what an entry record would have comes from the supervisor. A call that it delays has both records.

use super::calls::Lookups;
use super::{Follower, RecordContext};
use crate::event::synthesized::MemoryCopy;
use crate::event::{Abi, Call, EntryState, Event, ExitState, PidTranslation, PieceState};
use crate::syscall::behavior::{Behavior, Returns};
use crate::syscall::layout::add_piece;
use crate::syscall::pairing::{ChangedCall, ExitOutcome, ExitRecord, OpenCall};
use crate::syscall::special::Special;
use smallvec::SmallVec;

/// The result of a call that a signal interrupts before it is executed (include/linux/errno.h).
const ERESTARTSYS: i64 = 512;

impl Follower {
    /// Keeps what the supervisor reported, for the records of the call.
    pub(super) fn call_changed(&mut self, tid: i32, changed: ChangedCall) {
        if let Some(slot) = self.tasks.find(tid) {
            self.threads[slot.index()].changed = Some(Box::new(changed));
        }
    }

    /// Takes what the supervisor reported of this call, whose record has just arrived.
    pub(super) fn take_changed(&mut self, context: RecordContext, (abi, nr): (Abi, i64), answered: bool) -> Option<Box<ChangedCall>> {
        let thread = &mut self.threads[context.slot.index()];
        // A report of another call belongs to one whose task was killed, or whose record was lost.
        let changed = thread.changed.take();
        changed.filter(|changed| (changed.abi, changed.nr, changed.injected.answered) == (abi, nr, answered))
    }

    /// Completes a call that was paired in the kernel by what the supervisor reported.
    pub(super) fn complete_changed(&mut self, context: RecordContext, call: &mut Call) {
        if self.threads[context.slot.index()].changed.is_none() {
            return;
        }
        let Some(changed) = self.take_changed(context, (call.abi, call.nr), call.entry == EntryState::Unseen) else { return };
        (call.entry, call.id.start, call.injected) = (EntryState::Seen, changed.start, changed.injected);
    }

    /// Completes a call that has just begun by what the supervisor reported.
    #[cold]
    pub(super) fn delayed(&mut self, context: RecordContext, call: &mut Call) {
        if let Some(changed) = self.take_changed(context, (call.abi, call.nr), false) {
            (call.id.start, call.injected) = (changed.start, changed.injected);
        }
    }

    /// Returns whether a value with which this call is answered is meant as a value even if it stands for an error.
    pub(super) fn is_value(&self, abi: Abi, nr: i64) -> bool {
        u32::try_from(nr).is_ok_and(|nr| self.stream.injected.as_value.contains(&(abi, nr)))
    }

    /// Returns whether an exit without an entry is that of a call that waited for the supervisor when a signal arrived.
    /// It was not executed.
    pub(super) fn is_interrupted(&self, context: RecordContext, (abi, nr): (Abi, i64), ret: i64) -> bool {
        // This code may also be the answer.
        let is_answer = || self.threads[context.slot.index()].changed.as_ref().is_some_and(|changed| changed.injected.answered);
        ret == -ERESTARTSYS && !is_answer() && u32::try_from(nr).is_ok_and(|nr| self.stream.injected.supervised.contains(&(abi, nr)))
    }

    /// Completes a call without an entry that was paired in the kernel, if a signal interrupted its wait for the
    /// supervisor. Returns false if the supervisor had not seen it yet: the kernel repeats it, unless its task is
    /// killed.
    #[cold]
    pub(super) fn complete_interrupted(&mut self, context: RecordContext, call: &mut Call) -> bool {
        let Some(changed) = self.take_changed(context, (call.abi, call.nr), false) else { return false };
        (call.entry, call.id.start, call.injected) = (EntryState::Seen, changed.start, changed.injected);
        if changed.killable {
            call.exit = ExitState::Never;
        }
        true
    }

    /// Processes the exit of a call that waited for the supervisor when a signal arrived.
    #[cold]
    pub(super) fn exit_of_interrupted(
        &mut self,
        context: RecordContext,
        record: (ExitRecord, bool),
        (abi, nr): (Abi, i64),
        events: &mut Vec<Event>,
    ) {
        if let Some(changed) = self.take_changed(context, (abi, nr), false) {
            self.exit_of_answered(context, record, &changed, events);
        }
    }

    /// Processes the exit of a call that the supervisor answered or delayed, and that the kernel did not execute. It
    /// had no effect on the task.
    #[cold]
    pub(super) fn exit_of_answered(
        &mut self,
        context: RecordContext,
        (record, shown): (ExitRecord, bool),
        changed: &ChangedCall,
        events: &mut Vec<Event>,
    ) {
        let ret = record.ret;
        let alone = ExitRecord { special: Special::Plain, covers_all: false, ..record };
        match self.threads[context.slot.index()].exit(alone) {
            ExitOutcome::Alone { closed: Some(open), .. } | ExitOutcome::Returned(open) | ExitOutcome::Untrusted(open) => {
                self.emit_without_exit(context, open, ExitState::Unseen, events);
            }
            ExitOutcome::Alone { closed: None, .. } | ExitOutcome::SecondReturn => {}
        }
        if !shown {
            return;
        }
        let behavior = self.behaviors.get(changed.abi, changed.nr).with(&changed.args);
        let without_effect = Behavior { special: Special::Plain, returns: Returns::Other, ..behavior };
        let mut call = self.new_call(context, changed.abi, changed.nr);
        (call.id.start, call.args, call.injected) = (changed.start, Some(changed.args), changed.injected);
        call.pids = PidTranslation::of(self.threads[context.slot.index()].nested != Some(false));
        add_copies(&mut call, &changed.copies);
        let (mark, table) = (self.gaps.mark(context.cpu), self.threads[context.slot.index()].table);
        let is_killed = changed.killable && !changed.injected.answered;
        call.exit = if is_killed { ExitState::Never } else { ExitState::Returned { at: context.time, ret } };
        let mut open = OpenCall {
            call,
            raw_nr: changed.nr,
            mark,
            behavior: without_effect,
            table,
            uses: SmallVec::new(),
            changes: false,
            shown: true,
        };
        let mut lookups = Lookups::default();
        if self.stream.descriptors && behavior.fds != 0 {
            self.descriptors_at_entry(context, &mut open, &changed.args);
            self.descriptors_at_exit(context, &mut open, ret, &mut lookups);
        }
        if open.call.pids != PidTranslation::Same {
            self.request_namespace(context, &open.behavior, &mut open.call, &mut lookups);
            self.translate(context, &open.behavior, &mut open.call);
        }
        // The kernel has no record of the entry.
        self.ledger.call(EntryState::Unseen, open.call.exit);
        self.emit_counted(context, open.call, lookups, events);
    }
}

/// Adds the memory that was copied of a call in flight.
pub(super) fn add_copies(call: &mut Call, copies: &[MemoryCopy]) {
    for MemoryCopy { arg, wanted, bytes, is_whole } in copies {
        let state = match (is_whole, bytes.is_empty()) {
            (true, _) => PieceState::Ok,
            (false, true) => PieceState::Fault,
            (false, false) => PieceState::Cut,
        };
        add_piece(call, *arg, *wanted, bytes, state);
    }
}
