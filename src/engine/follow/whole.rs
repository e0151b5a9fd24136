//! Calls that one record tells whole: what the BPF programs write.

use super::calls::Questions;
use super::{Follower, Here};
use crate::bpf::record::{How, Seen};
use crate::bpf::tally;
use crate::event::note::StackMemory;
use crate::event::{Call, Entry, Event, Exit, Numbers, PieceState, Stack, TaskId, Time, What};
use crate::source::{Record, Sample};
use crate::syscall::behavior::Behavior;
use crate::syscall::layout::add_piece;
use crate::syscall::ledger::LeftOut;
use std::sync::Arc;

impl Follower {
    /// A record of the BPF programs.
    #[inline]
    pub(super) fn whole(&mut self, record: &Record<'_>, sample: &Sample<'_>, events: &mut Vec<Event>) {
        // One that makes no sense is missing in the account, which will not add up.
        let Some(seen) = Seen::parse(sample.raw) else { return };
        if seen.how == How::Tally {
            let task = TaskId { pid: seen.pid, tid: seen.tid };
            let here = Here { time: record.time, cpu: record.cpu, task, slot: self.slot(task, record.time) };
            return self.tally(here, &seen, events);
        }
        let slot = self.slot(record.task, record.time);
        let here = Here { time: record.time, cpu: record.cpu, task: record.task, slot };
        if seen.how == How::Part {
            return self.told.part(&seen);
        }
        if seen.how == How::Stack {
            if let Some(stack) = self.stack_of_call(here, sample, seen.abi, i64::from(seen.nr)) {
                self.told.stack(seen.tid, seen.start, stack);
            }
            return;
        }
        if seen.how == How::TaskEnd {
            self.told.forget_parts(seen.tid);
            return self.end_told(here, seen.tid, seen.ret as i32, events);
        }
        if matches!(seen.how, How::SignalSent | How::Signal) {
            return self.signal_seen(here, &seen, events);
        }
        let Some(event) = self.facts.bpf else { return };
        self.ledger.account(event).receive(1);
        let behavior = self.behaviors.get(seen.abi, i64::from(seen.nr)).with(&seen.args);
        if let Some(why) = self.leaves_out(here, &behavior, seen.start) {
            self.told.forget_parts(seen.tid);
            return self.ledger.leave_out(event, why);
        }
        if self.told.are_any_in_flight() {
            _ = self.was_in_flight(here, seen.tid, seen.start, events);
        }
        let mut call = self.whole_call(here, &seen);
        if self.stacks.is_some() {
            call.stack = self.stack_of_whole(here, sample, &seen);
        }
        if behavior.special.path_argument().is_some() {
            self.executed(here, &seen, &behavior, &mut call);
        }
        let thread = &mut self.threads[here.slot.index()];
        (thread.fresh, thread.executing) = (false, None);
        let mut questions = Questions::default();
        if call.numbers != Numbers::Same {
            self.translate(here, &behavior, &mut call);
        }
        if behavior.pids != 0 {
            self.ask_names(behavior.pids, &call, false, &mut questions);
        }
        self.ledger.whole_call(call.exit);
        self.give_counted(here, call, questions, events);
    }

    /// Where a call was made from: told before it, if it has another stack by now, or with it.
    #[cold]
    fn stack_of_whole(&mut self, here: Here, sample: &Sample<'_>, seen: &Seen<'_>) -> Option<Arc<Stack>> {
        let told = self.told.take_stack(seen.tid, seen.start);
        told.or_else(|| self.stack_of_call(here, sample, seen.abi, i64::from(seen.nr)))
    }

    /// Calls that were summed up.
    #[cold]
    fn tally(&mut self, here: Here, seen: &Seen<'_>, events: &mut Vec<Event>) {
        let (Some(tally), Some(event)) = (tally::parse(seen.pieces, seen.args[0]), self.facts.bpf) else { return };
        let calls = tally.calls();
        self.ledger.account(event).receive_all(calls);
        self.ledger.summed_up(calls);
        self.threads[here.slot.index()].fresh = false;
        self.give(here, What::Tally(Box::new(tally)), 0, events);
    }

    /// What a look found: a call in flight (with `last`, it is the end of what is known of it), or a tally: a living
    /// task's, or that of one that has ended.
    #[cold]
    pub(super) fn in_flight(
        &mut self,
        time: Time,
        task: TaskId,
        (raw, memory): (&[u8], Option<&StackMemory>),
        last: bool,
        events: &mut Vec<Event>,
    ) {
        let (Some(seen), Some(event)) = (Seen::parse(raw), self.facts.bpf) else { return };
        // A task that was ending when tracing began is not heard of again.
        let last = last || seen.how == How::Never;
        let slot = self.slot_for_look(task, time);
        let here = Here { time, cpu: 0, task, slot };
        if seen.how == How::Tally {
            return self.tally(here, &seen, events);
        }
        if last {
            self.ledger.account(event).receive(1);
        }
        let behavior = self.behaviors.get(seen.abi, i64::from(seen.nr)).with(&seen.args);
        if let Some(why) = self.leaves_out(here, &behavior, seen.start) {
            if last {
                self.ledger.leave_out(event, why);
            }
            return;
        }
        let known = self.was_in_flight(here, seen.tid, seen.start, events);
        let mut call = self.whole_call(here, &seen);
        // Its stack is told once.
        call.stack = match memory {
            Some(memory) => self.stack_in_flight(here, memory, seen.abi, i64::from(seen.nr)),
            None => known.and_then(|known| known.stack),
        };
        if last {
            self.ledger.whole_call(call.exit);
            self.give_counted(here, call, Questions::default(), events);
        } else {
            self.told.is_in_flight(seen.tid, slot, call.clone());
            self.give(here, What::Pending(call), 0, events);
        }
    }

    /// What is known of this thread's call in flight, now that one is told that began at `start`: it is given back if that is the same; of an earlier one the record was lost.
    fn was_in_flight(&mut self, here: Here, tid: i32, start: Time, events: &mut Vec<Event>) -> Option<Box<Call>> {
        let call = self.told.take_in_flight(tid)?;
        if call.id.start == start {
            return Some(call);
        }
        self.give_ended_unseen(here, call, events);
        None
    }

    /// At the end of the stream: calls that were shown as pending and of which nothing more was heard.
    pub(super) fn give_without_record(&mut self, events: &mut Vec<Event>) {
        for (slot, call) in self.told.take_all_in_flight() {
            let here = Here { time: self.now, cpu: 0, task: self.tasks.at(slot).id, slot };
            self.give_ended_unseen(here, call, events);
        }
    }

    fn give_ended_unseen(&mut self, here: Here, mut call: Box<Call>, events: &mut Vec<Event>) {
        (call.exit, call.shown_pending) = (Exit::Unseen, true);
        self.ledger.known_by_looks += 1;
        self.ledger.whole_call(call.exit);
        self.give_counted(here, call, Questions::default(), events);
    }

    /// Whether it is rtrace's own matter.
    fn leaves_out(&mut self, here: Here, behavior: &Behavior, start: Time) -> Option<LeftOut> {
        let thread = &mut self.threads[here.slot.index()];
        if thread.excluded {
            return Some(LeftOut::Excluded);
        }
        if self.command.was_ours(here.task, start) {
            return Some(LeftOut::SetUp);
        }
        thread.set_up &= behavior.special.path_argument().is_none();
        thread.set_up.then_some(LeftOut::SetUp)
    }

    #[inline]
    fn whole_call(&mut self, here: Here, seen: &Seen<'_>) -> Box<Call> {
        let mut call = self.new_call(here, seen.abi, i64::from(seen.nr));
        (call.id.tid, call.id.start) = (seen.tid, seen.start);
        call.entry = if seen.no_entry { Entry::Unseen } else { Entry::Seen };
        call.exit = match seen.how {
            How::Returned => Exit::Returned { at: seen.end, ret: seen.ret },
            How::Never => Exit::Never,
            How::Pending => Exit::Pending,
            How::Unseen | How::TaskEnd | How::Part | How::Tally | How::Stack | How::SignalSent | How::Signal => Exit::Unseen,
        };
        call.args = Some(seen.args);
        call.lost_before = u64::from(seen.lost);
        call.shown_pending = seen.shown;
        call.numbers = Numbers::of(seen.nested);
        self.told.complete(seen, &mut call);
        call
    }

    /// A program was executed, or could not be.
    #[cold]
    fn executed(&mut self, here: Here, seen: &Seen<'_>, behavior: &Behavior, call: &mut Call) {
        if seen.tid != here.task.tid {
            // Another thread than the leader did it, and is the leader now.
            if let Some(old) = self.tasks.find(seen.tid).filter(|&slot| self.tasks.at(slot).id.pid == here.task.pid) {
                self.tasks.end(old);
            }
        }
        if !self.command.is(here.task) {
            return;
        }
        if call.ret().is_some_and(|ret| ret < 0) && self.command.is_still_ours(here.task) {
            // rtrace's own code goes on: it tells of the failure, or tries a shell.
            self.threads[here.slot.index()].set_up = true;
        }
        let path = self.command.take_path(here.task);
        if let Some(arg) = behavior.special.path_argument()
            && !path.is_empty()
            && call.piece(usize::from(arg)).is_none_or(|piece| piece.state == PieceState::Fault)
        {
            call.pieces.retain(|piece| piece.arg != arg);
            add_piece(call, arg, path.len() as u64 + 1, &path, PieceState::Ok);
        }
    }
}
