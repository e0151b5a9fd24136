//! Signals: what was sent, and what a task is given.

use super::{Follower, Here};
use crate::bpf::record::Seen;
use crate::bpf::signals::{self, SeenSignal};
use crate::event::{Event, EventIndex, Fate, Members, Signal, TaskId, Time, What};
use crate::session::Scope;
use crate::source::{Record, Sample};
use crate::syscall::layout::{DeliverLayout, GenerateLayout};
use crate::syscall::ledger::LeftOut;
use crate::task::signals::Sent;

/// TRACE_SIGNAL_IGNORED (include/trace/events/signal.h).
const IGNORED: i64 = 1;

/// No more signals to unknown tasks are kept: the oldest go first.
const UNCLAIMED_MAX: usize = 64;

/// A record of `signal:signal_generate`.
#[derive(Debug)]
struct Generated<'a> {
    time: Time,
    cpu: u32,
    /// Who wrote it.
    writer: TaskId,
    event: EventIndex,
    layout: GenerateLayout,
    raw: &'a [u8],
}

/// One whose receiver has a number that means nobody yet.
#[derive(Debug)]
pub struct Unclaimed {
    kernels: i32,
    record: Generated<'static>,
    raw: Box<[u8]>,
}

impl Follower {
    /// `signal:signal_generate`, which its sender writes, whoever that is, about whomever.
    #[cold]
    pub(super) fn generated(&mut self, record: &Record<'_>, sample: &Sample<'_>, layout: GenerateLayout, events: &mut Vec<Event>) {
        self.ledger.account(sample.event).receive(sample.count);
        let (event, raw) = (sample.event, sample.raw);
        let generated = Generated { time: record.time, cpu: record.cpu, writer: record.task, event, layout, raw };
        let kernels = layout.pid.signed(raw) as i32;
        let receiver = self.number_here(kernels);
        if !receiver.is_some_and(|tid| self.generated_for(tid, &generated, events)) {
            self.ledger.leave_out(event, LeftOut::Excluded);
        }
        if receiver.is_none() && layout.result.signed(raw) != IGNORED {
            self.keep_unclaimed(kernels, generated);
        }
    }

    /// Keeps a signal until its receiver writes a record, as it does when it is given one that ends it.
    fn keep_unclaimed(&mut self, kernels: i32, generated: Generated<'_>) {
        if self.unclaimed.len() == UNCLAIMED_MAX {
            self.unclaimed.remove(0);
        }
        let raw = generated.raw.into();
        self.unclaimed.push(Unclaimed { kernels, record: Generated { raw: &[], ..generated }, raw });
    }

    /// The task that the kernel calls so is known now. Signals from before it was made were for another task, which had
    /// the number then.
    #[cold]
    pub(super) fn claim_signals(&mut self, receiver: Here, kernels: i32, events: &mut Vec<Event>) {
        let made = self.threads[receiver.slot.index()].made;
        let its: Vec<Unclaimed> = self.unclaimed.extract_if(.., |signal| signal.kernels == kernels).collect();
        for Unclaimed { record, raw, .. } in its.into_iter().filter(|signal| made.is_none_or(|made| made <= signal.record.time)) {
            self.generated_for(receiver.task.tid, &Generated { raw: &raw, ..record }, events);
        }
    }

    /// A signal to the task that is `tid` here. `false`: it is not followed.
    fn generated_for(&mut self, tid: i32, generated: &Generated<'_>, events: &mut Vec<Event>) -> bool {
        let Generated { time, cpu, writer, event, layout, raw } = *generated;
        let Some(slot) = self.tasks.find(tid).filter(|slot| self.is_followed(slot.index(), event)) else {
            return false;
        };
        let here = Here { time, cpu, task: self.tasks.at(slot).id, slot };
        let (number, code) = (layout.sig.signed(raw) as i32, layout.code.signed(raw) as i32);
        // Only of these is it certain that whoever runs is the sender.
        let is_by_task = matches!(code, libc::SI_USER | libc::SI_TKILL | libc::SI_QUEUE);
        let sender = Some(writer).filter(|task| is_by_task && task.pid > 0);
        if let Some(sender) = sender {
            self.ask_about(sender.tid);
        }
        let nested = self.threads[slot.index()].nested;
        // In another pid namespace it would be told another number.
        let pid = sender.filter(|_| nested != Some(true)).map(|sender| sender.pid);
        let (members, pids_are_known) = (Members { pid, ..Members::default() }, nested == Some(false));
        let fate = if layout.result.signed(raw) == IGNORED { Fate::Ignored } else { Fate::Default };
        let errno = Some(layout.errno.signed(raw) as i32);
        let signal = Signal { number, errno, code: Some(code), members, sender, pids_are_known, fate };
        // Of a whole machine it is not known who is about to end, and would not be given it anyway.
        if fate != Fate::Ignored || self.facts.scope != Scope::System && !self.ends.is_over(here.task) {
            let thread = (layout.group.signed(raw) == 0).then_some(tid);
            self.signal_sent(here, Sent { signal, thread }, events);
        }
        true
    }

    fn is_followed(&self, place: usize, event: EventIndex) -> bool {
        let thread = &self.threads[place];
        let inherits = self.facts.inherits(event);
        !thread.excluded && !thread.set_up && !thread.foreign && (inherits || thread.made.is_none())
    }

    /// `signal:signal_deliver`
    #[cold]
    pub(super) fn delivered(&mut self, here: Here, layout: &DeliverLayout, raw: &[u8], events: &mut Vec<Event>) {
        let number = layout.sig.signed(raw) as i32;
        if number == libc::SIGKILL {
            return self.signal_ends(here, None, events);
        }
        let given = Signal {
            number,
            errno: Some(layout.errno.signed(raw) as i32),
            code: Some(layout.code.signed(raw) as i32),
            pids_are_known: self.threads[here.slot.index()].nested == Some(false),
            fate: Fate::of_handler(layout.handler.unsigned(raw)),
            ..Signal::default()
        };
        self.signal_given(here, given, events);
    }

    /// The BPF programs' word.
    #[cold]
    pub(super) fn signal_seen(&mut self, here: Here, seen: &Seen<'_>, events: &mut Vec<Event>) {
        let thread = &self.threads[here.slot.index()];
        if thread.excluded || thread.set_up {
            return;
        }
        match signals::parse(seen) {
            Some(SeenSignal::Sent { sent, sender }) => {
                if let (Some(task), Some(name)) = (sent.signal.sender, sender) {
                    self.sender_is(here, task, name);
                }
                self.signal_sent(here, sent, events);
            }
            Some(SeenSignal::Given(signal)) => self.signal_given(here, signal, events),
            Some(SeenSignal::Ends(number)) => self.signal_ends(here, Some(number), events),
            None => {}
        }
    }

    /// What a sender is called; it may be nobody who is followed.
    fn sender_is(&mut self, here: Here, sender: TaskId, name: &[u8]) {
        let is_known = self.tasks.find(sender.tid).is_some_and(|slot| self.tasks.at(slot).id == sender && !self.tasks.at(slot).ended);
        let slot = self.slot_for_look(sender, here.time);
        self.threads[slot.index()].foreign |= !is_known && self.facts.scope != Scope::System;
        self.tasks.name(slot, here.time, name);
    }

    fn signal_sent(&mut self, here: Here, sent: Sent, events: &mut Vec<Event>) {
        match sent.signal.fate {
            Fate::Ignored => self.give_signal(here, sent.signal, events),
            _ => self.ends.sent(here.task.pid, sent),
        }
    }

    fn signal_given(&mut self, here: Here, given: Signal, events: &mut Vec<Event>) {
        let signal = self.ends.given(here.task, given);
        self.give_signal(here, signal, events);
    }

    /// A task is given a SIGKILL, in the place of the signal that ends its process, if it is one; `number` is known
    /// where the kernel's word for that could be read.
    fn signal_ends(&mut self, here: Here, number: Option<i32>, events: &mut Vec<Event>) {
        if let Some(signal) = self.ends.killed(here.task.pid, number) {
            self.give_signal(here, signal, events);
        }
    }

    fn give_signal(&mut self, here: Here, signal: Signal, events: &mut Vec<Event>) {
        if !self.facts.settings.signals {
            return;
        }
        let unknown = signal.sender.filter(|sender| self.asked.is_awaited(sender.tid));
        if let Some(sender) = unknown {
            let ticket = self.outbox.next();
            self.asked.about(sender.tid).push(ticket);
        }
        self.give(here, What::Signal(Box::new(signal)), u32::from(unknown.is_some()), events);
    }
}
