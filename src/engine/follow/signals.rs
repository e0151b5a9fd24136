//! Signals: sent and delivered ones.

use super::{Follower, RecordContext};
use crate::bpf::record::CallRecord;
use crate::bpf::signals::{self, SignalRecord};
use crate::event::{Disposition, Event, EventIndex, EventKind, SigInfo, Signal, TaskId, Time};
use crate::session::Scope;
use crate::source::{Record, Sample};
use crate::syscall::layout::{DeliverLayout, GenerateLayout};
use crate::syscall::ledger::LeftOut;
use crate::task::signals::SentSignal;

/// TRACE_SIGNAL_IGNORED (include/trace/events/signal.h).
const IGNORED: i64 = 1;

/// The maximum number of kept signals to unknown tasks; the oldest are dropped.
const UNCLAIMED_MAX: usize = 64;

/// A record of `signal:signal_generate`.
#[derive(Debug)]
struct GeneratedSignal<'a> {
    time: Time,
    cpu: u32,
    /// The task that wrote the record.
    writer: TaskId,
    event: EventIndex,
    layout: GenerateLayout,
    raw: &'a [u8],
}

/// A record whose receiver has a pid that is not translated yet.
#[derive(Debug)]
pub struct UnclaimedSignal {
    kernel_pid: i32,
    record: GeneratedSignal<'static>,
    raw: Box<[u8]>,
}

impl Follower {
    /// Handles `signal:signal_generate`. The sender writes the record; both sender and receiver can be any task.
    #[cold]
    pub(super) fn generated(&mut self, record: &Record<'_>, sample: &Sample<'_>, layout: GenerateLayout, events: &mut Vec<Event>) {
        self.ledger.account(sample.event).receive(sample.count);
        let (event, raw) = (sample.event, sample.raw);
        let generated = GeneratedSignal { time: record.time, cpu: record.cpu, writer: record.task, event, layout, raw };
        let kernel_pid = layout.pid.signed(raw) as i32;
        let receiver = self.translate_pid(kernel_pid);
        if !receiver.is_some_and(|tid| self.generated_for(tid, &generated, events)) {
            self.ledger.leave_out(event, LeftOut::Excluded);
        }
        if receiver.is_none() && layout.result.signed(raw) != IGNORED {
            self.keep_unclaimed(kernel_pid, generated);
        }
    }

    /// Keeps a signal until its receiver writes a record, as it does when a fatal signal is delivered to it.
    fn keep_unclaimed(&mut self, kernel_pid: i32, generated: GeneratedSignal<'_>) {
        if self.unclaimed_signals.len() == UNCLAIMED_MAX {
            self.unclaimed_signals.remove(0);
        }
        let raw = generated.raw.into();
        self.unclaimed_signals.push(UnclaimedSignal { kernel_pid, record: GeneratedSignal { raw: &[], ..generated }, raw });
    }

    /// Handles the kept signals of a task whose kernel pid is known now. Signals from before its creation were for
    /// another task with the same pid.
    #[cold]
    pub(super) fn claim_signals(&mut self, receiver: RecordContext, kernel_pid: i32, events: &mut Vec<Event>) {
        let created = self.threads[receiver.slot.index()].created;
        let its: Vec<UnclaimedSignal> = self.unclaimed_signals.extract_if(.., |signal| signal.kernel_pid == kernel_pid).collect();
        for UnclaimedSignal { record, raw, .. } in
            its.into_iter().filter(|signal| created.is_none_or(|created| created <= signal.record.time))
        {
            self.generated_for(receiver.task.tid, &GeneratedSignal { raw: &raw, ..record }, events);
        }
    }

    /// Handles a signal to the task `tid`. Returns `false` if the task is not traced.
    fn generated_for(&mut self, tid: i32, generated: &GeneratedSignal<'_>, events: &mut Vec<Event>) -> bool {
        let GeneratedSignal { time, cpu, writer, event, layout, raw } = *generated;
        let Some(slot) = self.tasks.find(tid).filter(|slot| self.is_traced(slot.index(), event)) else {
            return false;
        };
        let context = RecordContext { time, cpu, task: self.tasks.at(slot).id, slot };
        let (number, code) = (layout.sig.signed(raw) as i32, layout.code.signed(raw) as i32);
        // Only for these codes is the current task certainly the sender.
        let is_by_task = matches!(code, libc::SI_USER | libc::SI_TKILL | libc::SI_QUEUE);
        let sender = Some(writer).filter(|task| is_by_task && task.pid > 0);
        if let Some(sender) = sender {
            self.request_task(sender.tid);
        }
        let nested = self.threads[slot.index()].nested;
        // A receiver in another pid namespace gets another pid.
        let pid = sender.filter(|_| nested != Some(true)).map(|sender| sender.pid);
        let (info, pids_are_known) = (SigInfo { pid, ..SigInfo::default() }, nested == Some(false));
        let disposition = if layout.result.signed(raw) == IGNORED { Disposition::Ignored } else { Disposition::Default };
        let errno = Some(layout.errno.signed(raw) as i32);
        let signal = Signal { number, errno, code: Some(code), info, sender, pids_are_known, disposition, stack: None };
        // In a system-wide trace it is not known which tasks are about to end, and would not receive it anyway.
        if disposition != Disposition::Ignored || self.stream.scope != Scope::System && !self.ends.is_over(context.task) {
            let thread = (layout.group.signed(raw) == 0).then_some(tid);
            self.signal_sent(context, SentSignal { signal, thread }, events);
        }
        true
    }

    fn is_traced(&self, place: usize, event: EventIndex) -> bool {
        let thread = &self.threads[place];
        let inherits = self.stream.inherits(event);
        !thread.excluded && !thread.set_up && !thread.untraced && (inherits || thread.created.is_none())
    }

    /// Handles `signal:signal_deliver`.
    #[cold]
    pub(super) fn delivered(&mut self, context: RecordContext, layout: &DeliverLayout, sample: &Sample<'_>, events: &mut Vec<Event>) {
        let raw = sample.raw;
        let number = layout.sig.signed(raw) as i32;
        if number == libc::SIGKILL {
            return self.signal_ends(context, None, events);
        }
        let delivered = Signal {
            number,
            errno: Some(layout.errno.signed(raw) as i32),
            code: Some(layout.code.signed(raw) as i32),
            pids_are_known: self.threads[context.slot.index()].nested == Some(false),
            disposition: Disposition::of_handler(layout.handler.unsigned(raw)),
            stack: self.stack_of_event(context, sample),
            ..Signal::default()
        };
        self.signal_delivered(context, delivered, events);
    }

    /// Handles a signal record of the BPF programs.
    #[cold]
    pub(super) fn signal_seen(
        &mut self,
        context: RecordContext,
        sample: &Sample<'_>,
        call_record: &CallRecord<'_>,
        events: &mut Vec<Event>,
    ) {
        let thread = &self.threads[context.slot.index()];
        if thread.excluded || thread.set_up {
            return;
        }
        match signals::parse(call_record) {
            Some(SignalRecord::Sent { sent, sender }) => {
                if let (Some(task), Some(name)) = (sent.signal.sender, sender) {
                    self.store_sender(context, task, name);
                }
                self.signal_sent(context, sent, events);
            }
            Some(SignalRecord::Delivered(signal)) => {
                let stack = self.stack_of_event(context, sample);
                self.signal_delivered(context, Signal { stack, ..signal }, events);
            }
            Some(SignalRecord::Fatal(number)) => self.signal_ends(context, Some(number), events),
            None => {}
        }
    }

    /// Stores the comm of a sender, which may be a task that is not traced.
    fn store_sender(&mut self, context: RecordContext, sender: TaskId, name: &[u8]) {
        let is_known = self.tasks.find(sender.tid).is_some_and(|slot| self.tasks.at(slot).id == sender && !self.tasks.at(slot).ended);
        let slot = self.slot_from_proc(sender, context.time);
        self.threads[slot.index()].untraced |= !is_known && self.stream.scope != Scope::System;
        self.tasks.set_comm(slot, context.time, name);
    }

    fn signal_sent(&mut self, context: RecordContext, sent: SentSignal, events: &mut Vec<Event>) {
        match sent.signal.disposition {
            Disposition::Ignored => self.emit_signal(context, sent.signal, events),
            _ => self.ends.sent(context.task.pid, sent),
        }
    }

    fn signal_delivered(&mut self, context: RecordContext, delivered: Signal, events: &mut Vec<Event>) {
        let signal = self.ends.delivered(context.task, delivered);
        self.emit_signal(context, signal, events);
    }

    /// Handles the delivery of a SIGKILL, which stands for the signal that kills the process; `number` is that signal,
    /// if the kernel's exit code could be read.
    fn signal_ends(&mut self, context: RecordContext, number: Option<i32>, events: &mut Vec<Event>) {
        if let Some(signal) = self.ends.killed(context.task.pid, number) {
            self.emit_signal(context, signal, events);
        }
    }

    fn emit_signal(&mut self, context: RecordContext, signal: Signal, events: &mut Vec<Event>) {
        if !self.stream.signals {
            return;
        }
        let unknown = signal.sender.filter(|sender| self.task_reads.is_awaited(sender.tid));
        if let Some(sender) = unknown {
            let ticket = self.outbox.next();
            self.task_reads.request(sender.tid).push(ticket);
        }
        self.emit(context, EventKind::Signal(Box::new(signal)), u32::from(unknown.is_some()), events);
    }
}
