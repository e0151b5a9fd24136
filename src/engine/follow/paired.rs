//! Calls from paired records, which the BPF programs write.

use super::calls::Lookups;
use super::injected::add_copies;
use super::{Follower, RecordContext};
use crate::bpf::aggregate;
use crate::bpf::record::{CallRecord, RecordKind};
use crate::event::synthesized::{MemoryCopy, StackMemory};
use crate::event::{Call, EntryState, Event, EventKind, ExitState, PidTranslation, PieceState, Stack, TaskId, Time};
use crate::source::{Record, Sample};
use crate::syscall::behavior::Behavior;
use crate::syscall::layout::add_piece;
use crate::syscall::ledger::LeftOut;
use std::sync::Arc;

impl Follower {
    /// Handles a record of the BPF programs.
    #[inline]
    pub(super) fn bpf_record(&mut self, record: &Record<'_>, sample: &Sample<'_>, events: &mut Vec<Event>) {
        // A record that cannot be parsed is missing in the account, so the counts will not agree.
        let Some(call_record) = CallRecord::parse(sample.raw) else { return };
        if call_record.kind == RecordKind::Aggregate {
            let task = TaskId { pid: call_record.pid, tid: call_record.tid };
            let context = RecordContext { time: record.time, cpu: record.cpu, task, slot: self.slot(task, record.time) };
            self.emit_tallied(events);
            return self.aggregate(context, &call_record, events);
        }
        let slot = self.slot(record.task, record.time);
        let context = RecordContext { time: record.time, cpu: record.cpu, task: record.task, slot };
        if self.tally_paired(context, &call_record, events) {
            return;
        }
        self.emit_tallied(events);
        if self.other_record(context, sample, &call_record, events) {
            return;
        }
        let Some(event) = self.stream.bpf else { return };
        self.ledger.account(event).receive(1);
        let behavior = self.behaviors.get(call_record.abi, i64::from(call_record.nr)).with(&call_record.args);
        if let Some(why) = self.reason_to_leave_out(context, &behavior, call_record.start) {
            self.reported.forget_parts(call_record.tid);
            return self.ledger.leave_out(event, why);
        }
        let known =
            if self.reported.are_any_in_flight() { self.was_in_flight(context, call_record.tid, call_record.start, events) } else { None };
        let mut call = self.paired_call(context, &call_record);
        known.iter().for_each(|known| add_memory_before(&mut call, known));
        if call_record.no_entry && self.is_interrupted(context, (call.abi, call.nr), call_record.ret) {
            if !self.complete_interrupted(context, &mut call) {
                return self.ledger.leave_out(event, LeftOut::Repeated);
            }
        } else {
            self.complete_changed(context, &mut call);
        }
        if self.stacks.is_some() {
            call.stack = self.stack_of_paired(context, sample, &call_record);
        }
        if behavior.special.path_argument().is_some() {
            self.executed(context, &call_record, &behavior, &mut call);
        }
        let thread = &mut self.threads[context.slot.index()];
        (thread.fresh, thread.executing) = (false, None);
        let mut lookups = Lookups::default();
        if call.pids != PidTranslation::Same {
            self.translate(context, &behavior, &mut call);
        }
        if self.call_events.are_recorded() {
            match self.complete_events(context, call, events) {
                Some(shown) => call = shown,
                None => return self.ledger.leave_out(event, LeftOut::OfEvent),
            }
        }
        if behavior.pids != 0 {
            self.request_tasks(behavior.pids, &call, false, &mut lookups);
        }
        self.ledger.paired_call(call.exit);
        self.emit_counted(context, call, lookups, events);
    }

    /// Handles a record that is not the last one of a call. Returns whether it is such a record.
    #[inline]
    fn other_record(&mut self, context: RecordContext, sample: &Sample<'_>, call_record: &CallRecord<'_>, events: &mut Vec<Event>) -> bool {
        match call_record.kind {
            RecordKind::Part => self.reported.add_part(call_record),
            RecordKind::Stack => {
                if let Some(stack) = self.stack_of_call(context, sample, call_record.abi, i64::from(call_record.nr)) {
                    self.reported.store_stack(call_record.tid, call_record.start, stack);
                }
            }
            RecordKind::TaskEnd => {
                self.reported.forget_parts(call_record.tid);
                self.end_reported(context, call_record.tid, call_record.ret as i32, events);
            }
            RecordKind::SignalSent | RecordKind::Signal => self.signal_seen(context, sample, call_record, events),
            RecordKind::Entry => self.entry_reported(context, call_record, events),
            RecordKind::Request => self.request_reported(context, call_record),
            RecordKind::RequestEnd => self.request_end_reported(context, call_record, events),
            RecordKind::Returned | RecordKind::Never | RecordKind::Unseen | RecordKind::Pending | RecordKind::Aggregate => return false,
        }
        true
    }

    /// Returns the call chain of a call: the one reported at its entry, if the stack differs at the exit, or that of
    /// its record.
    #[cold]
    fn stack_of_paired(&mut self, context: RecordContext, sample: &Sample<'_>, call_record: &CallRecord<'_>) -> Option<Arc<Stack>> {
        let reported = self.reported.take_stack(call_record.tid, call_record.start);
        reported.or_else(|| self.stack_of_call(context, sample, call_record.abi, i64::from(call_record.nr)))
    }

    /// Emits calls that were aggregated.
    #[cold]
    fn aggregate(&mut self, context: RecordContext, call_record: &CallRecord<'_>, events: &mut Vec<Event>) {
        let (Some(aggregate), Some(event)) = (aggregate::parse(call_record.pieces, call_record.args[0]), self.stream.bpf) else { return };
        let calls = aggregate.calls();
        self.ledger.account(event).receive_all(calls);
        self.ledger.aggregated_calls(calls);
        self.threads[context.slot.index()].fresh = false;
        self.emit(context, EventKind::Aggregate(Box::new(aggregate)), 0, events);
    }

    /// Handles a call that was found in flight (with `last`, no further record of it will follow), or the aggregate of
    /// a living or ended task.
    #[cold]
    pub(super) fn in_flight(
        &mut self,
        time: Time,
        task: TaskId,
        (raw, memory, copies): (&[u8], Option<&StackMemory>, &[MemoryCopy]),
        last: bool,
        events: &mut Vec<Event>,
    ) {
        let (Some(call_record), Some(event)) = (CallRecord::parse(raw), self.stream.bpf) else { return };
        // A task that was already ending when tracing began has no further record.
        let last = last || call_record.kind == RecordKind::Never;
        let slot = self.slot_from_proc(task, time);
        let context = RecordContext { time, cpu: 0, task, slot };
        if call_record.kind == RecordKind::Aggregate {
            return self.aggregate(context, &call_record, events);
        }
        if last {
            self.ledger.account(event).receive(1);
        }
        let behavior = self.behaviors.get(call_record.abi, i64::from(call_record.nr)).with(&call_record.args);
        if let Some(why) = self.reason_to_leave_out(context, &behavior, call_record.start) {
            if last {
                self.ledger.leave_out(event, why);
            }
            return;
        }
        if self.call_events.only_completes(call_record.abi, i64::from(call_record.nr)) {
            if last {
                self.ledger.leave_out(event, LeftOut::OfEvent);
            }
            return;
        }
        let known = self.was_in_flight(context, call_record.tid, call_record.start, events);
        let mut call = self.paired_call(context, &call_record);
        // Its call chain and its memory before the trace are reported once.
        call.stack = match memory {
            Some(memory) => self.stack_in_flight(context, memory, call_record.abi, i64::from(call_record.nr)),
            None => known.as_ref().and_then(|known| known.stack.clone()),
        };
        add_copies(&mut call, copies);
        known.iter().for_each(|known| add_memory_before(&mut call, known));
        if last {
            self.ledger.paired_call(call.exit);
            self.emit_counted(context, call, Lookups::default(), events);
        } else {
            self.reported.store_in_flight(call_record.tid, slot, call.clone());
            self.emit(context, EventKind::Pending(call), 0, events);
        }
    }

    /// Takes the thread's call in flight, now that one that began at `start` is reported. Returns it if it is the same
    /// call; otherwise the record of the earlier call was lost, and it is emitted here.
    fn was_in_flight(&mut self, context: RecordContext, tid: i32, start: Time, events: &mut Vec<Event>) -> Option<Box<Call>> {
        let call = self.reported.take_in_flight(tid)?;
        if call.id.start == start {
            return Some(call);
        }
        self.emit_ended_unseen(context, call, events);
        None
    }

    /// Emits the calls that were shown as pending and got no further record, at the end of the stream.
    pub(super) fn emit_without_record(&mut self, events: &mut Vec<Event>) {
        for (slot, call) in self.reported.take_all_in_flight() {
            let context = RecordContext { time: self.now, cpu: 0, task: self.tasks.at(slot).id, slot };
            self.emit_ended_unseen(context, call, events);
        }
    }

    fn emit_ended_unseen(&mut self, context: RecordContext, mut call: Box<Call>, events: &mut Vec<Event>) {
        (call.exit, call.shown_pending) = (ExitState::Unseen, true);
        self.ledger.known_in_flight += 1;
        self.ledger.paired_call(call.exit);
        self.emit_counted(context, call, Lookups::default(), events);
    }

    /// Returns the reason why a call is left out, if there is one.
    pub(super) fn reason_to_leave_out(&mut self, context: RecordContext, behavior: &Behavior, start: Time) -> Option<LeftOut> {
        let thread = &mut self.threads[context.slot.index()];
        if thread.excluded {
            return Some(LeftOut::Excluded);
        }
        if self.command.ran_rtrace_code(context.task, start) {
            return Some(LeftOut::SetUp);
        }
        thread.set_up &= behavior.special.path_argument().is_none();
        thread.set_up.then_some(LeftOut::SetUp)
    }

    #[inline]
    pub(super) fn paired_call(&mut self, context: RecordContext, call_record: &CallRecord<'_>) -> Box<Call> {
        let mut call = self.new_call(context, call_record.abi, i64::from(call_record.nr));
        (call.id.tid, call.id.start) = (call_record.tid, call_record.start);
        call.entry = if call_record.no_entry { EntryState::Unseen } else { EntryState::Seen };
        call.exit = match call_record.kind {
            RecordKind::Returned => ExitState::Returned { at: call_record.end, ret: call_record.ret },
            RecordKind::Never => ExitState::Never,
            RecordKind::Pending | RecordKind::Entry | RecordKind::Request => ExitState::Pending,
            RecordKind::Unseen
            | RecordKind::TaskEnd
            | RecordKind::Part
            | RecordKind::Aggregate
            | RecordKind::Stack
            | RecordKind::SignalSent
            | RecordKind::Signal
            | RecordKind::RequestEnd => ExitState::Unseen,
        };
        call.args = Some(call_record.args);
        if call_record.injected {
            (call.injected.answered, call.injected.as_value) = (true, self.is_value(call.abi, call.nr));
        }
        call.lost_before = u64::from(call_record.lost);
        call.shown_pending = call_record.shown;
        call.killed = call_record.killed;
        call.pids = PidTranslation::of(call_record.nested);
        self.reported.complete(call_record, &mut call);
        call
    }

    /// Handles an execve that succeeded or failed.
    #[cold]
    fn executed(&mut self, context: RecordContext, call_record: &CallRecord<'_>, behavior: &Behavior, call: &mut Call) {
        if call_record.tid != context.task.tid {
            // A thread other than the leader called execve, and is the leader now.
            if let Some(old) = self.tasks.find(call_record.tid).filter(|&slot| self.tasks.at(slot).id.pid == context.task.pid) {
                self.tasks.end(old);
            }
        }
        if !self.command.is(context.task) {
            return;
        }
        if call.ret().is_some_and(|ret| ret < 0) && self.command.runs_rtrace_code(context.task) {
            // rtrace's own code continues: it reports the error, or tries a shell.
            self.threads[context.slot.index()].set_up = true;
        }
        let path = self.command.take_path(context.task);
        if let Some(arg) = behavior.special.path_argument()
            && !path.is_empty()
            && call.piece(usize::from(arg)).is_none_or(|piece| piece.state == PieceState::Fault)
        {
            call.pieces.retain(|piece| piece.arg != arg);
            add_piece(call, arg, path.len() as u64 + 1, &path, PieceState::Ok);
        }
    }
}

/// Adds the memory of a call that began before tracing, as it was then. Its record has only what the kernel wrote.
fn add_memory_before(call: &mut Call, then: &Call) {
    if call.entry != EntryState::Unseen {
        return;
    }
    for piece in &then.pieces {
        let bytes = then.payload.get(piece.start as usize..).and_then(|rest| rest.get(..piece.len as usize)).unwrap_or_default();
        if !call.pieces.iter().any(|other| other.arg == piece.arg) {
            add_piece(call, piece.arg, piece.wanted, bytes, piece.state);
        }
    }
}
