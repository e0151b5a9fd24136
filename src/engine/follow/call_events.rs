//! Tracepoints at the entry and exit of calls that the user asked for as events (`syscalls:sys_enter_X`,
//! `raw_syscalls:sys_exit`), and the calls that they belong to.
//!
//! A record of such a tracepoint has registers only. Where the BPF programs trace, they write a record of the call at
//! its entry, with the memory and files of that moment, and one at its return; the event gets the call of the record
//! that is of the same end:
//!
//! ```text
//! tracepoints    sys_enter ─┐                      ┌─ sys_exit
//! BPF programs      entry ──┴── (the call runs) ───┴── call        either of the two may be first
//! ```
//!
//! A thread is in one call at a time, so its records of both kinds alternate between entries and exits. An event whose
//! record of the BPF programs has not arrived waits in the outbox. If the programs could not read some memory at the
//! entry, the event waits for the record of the return, by which time the kernel has read it. What may belong to
//! another call, because records were lost, is not used: the event then shows what its own record has.

use super::{Follower, RecordContext};
use crate::beauty::lookup;
use crate::beauty::tables::SYSCALLS;
use crate::bpf::record::CallRecord;
use crate::event::{Abi, Call, EntryState, Event, EventIndex, ExitState, PidTranslation};
use crate::kernel::format::Format;
use crate::session::{CallSet, EventCalls, EventSpec, Role, Session};
use crate::source::Sample;
use crate::syscall::gaps::{GapMark, Gaps};
use crate::syscall::layout::{EnterLayout, ExitLayout};
use crate::syscall::special::Special;
use crate::task::fds::Ticket;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// The state of such events.
pub(super) struct CallEvents {
    /// By event index.
    ends: Vec<Option<End>>,
    /// The calls that the BPF programs record for such events.
    recorded: Calls,
    /// The calls that are shown themselves.
    shown: Calls,
    /// Whether some events are at exits, so that calls that have returned are kept.
    has_exits: bool,
    /// By tid.
    threads: FxHashMap<i32, Thread>,
}

/// A set of calls, for quick lookup.
#[derive(Debug)]
struct Calls {
    set: CallSet,
    /// By the index of the row.
    rows: Vec<bool>,
}

impl Calls {
    fn new(set: CallSet) -> Calls {
        let mut rows = vec![false; if set.names.is_empty() { 0 } else { SYSCALLS.len() }];
        set.names.iter().filter_map(|name| lookup::index_by_name(name)).for_each(|row| rows[usize::from(row)] = true);
        Calls { set, rows }
    }

    fn contains(&self, abi: Abi, nr: i64) -> bool {
        match lookup::index(abi, nr) {
            Some(row) => self.rows.get(usize::from(row)).copied().unwrap_or_default(),
            None => self.set.nameless || self.set.others.iter().any(|(of, number)| *of == abi && i64::from(*number) == nr),
        }
    }
}

/// The end of a call that an event is at, with the layout of its records.
#[derive(Clone, Debug)]
enum End {
    Entry(EnterLayout),
    Exit(ExitLayout),
}

/// What is known of a thread's present end of a call, and the events that wait for more.
#[derive(Debug, Default)]
struct Thread {
    /// The call that the thread has entered.
    entered: Option<Known>,
    /// The call that has returned.
    returned: Option<Known>,
    at_entry: SmallVec<[Waiting; 2]>,
    at_exit: SmallVec<[Waiting; 2]>,
}

/// A call from a record of the BPF programs.
#[derive(Clone, Debug)]
struct Known {
    call: Arc<Call>,
    mark: GapMark,
    /// Some memory could not be read at the entry. It is read again when the call returns.
    is_incomplete: bool,
}

impl Known {
    /// Returns the call, if no record was lost between its own and one with this mark.
    fn certain(&self, mark: GapMark) -> Option<&Arc<Call>> {
        Gaps::none_between(self.mark, mark).then_some(&self.call)
    }
}

/// An event that waits for the record of its call.
#[derive(Clone, Debug)]
struct Waiting {
    ticket: Ticket,
    event: EventIndex,
    mark: GapMark,
    what: Registers,
}

/// What the record of a tracepoint has of its call.
#[derive(Clone, Debug)]
struct Registers {
    abi: Abi,
    nr: i64,
    /// At an entry: the first registers, as many as the call has arguments.
    args: SmallVec<[u64; 6]>,
    /// At an exit: the return value.
    ret: i64,
}

impl Registers {
    /// Returns whether a call has the same registers at its entry.
    fn are_entry_of(&self, call: &Call) -> bool {
        let args = call.args.as_ref().is_some_and(|args| args.starts_with(&self.args));
        (self.abi, self.nr) == (call.abi, call.nr) && args
    }

    /// Returns whether a call returned this value. rt_sigreturn(2) returns without a number, and the kernel's lower
    /// half of a 32-bit return value is what the programs record.
    fn are_exit_of(&self, call: &Call) -> bool {
        (self.nr == -1 || self.nr == call.nr) && call.ret().is_some_and(|ret| ret as i32 == self.ret as i32)
    }
}

impl CallEvents {
    pub fn new(session: &Session) -> CallEvents {
        let ends: Vec<Option<End>> = session.events.events.iter().map(|spec| end(spec, session.copied_bytes)).collect();
        let calls = if session.events.find(Role::BpfCall).is_some() { session.event_calls.clone() } else { EventCalls::default() };
        let has_exits = ends.iter().flatten().any(|end| matches!(end, End::Exit(_)));
        let (recorded, shown) = (Calls::new(calls.recorded), Calls::new(calls.shown));
        CallEvents { ends, recorded, shown, has_exits, threads: FxHashMap::default() }
    }

    /// Returns whether the BPF programs record calls for such events.
    #[inline]
    pub fn are_recorded(&self) -> bool {
        !self.recorded.set.is_empty()
    }

    /// Returns whether the BPF programs record this call for such events.
    fn is_recorded(&self, abi: Abi, nr: i64) -> bool {
        self.recorded.contains(abi, nr)
    }

    /// Returns whether a recorded call only completes events, and is not shown itself.
    pub fn only_completes(&self, abi: Abi, nr: i64) -> bool {
        self.are_recorded() && !self.shown.contains(abi, nr)
    }

    /// Removes the thread's state if there is nothing left in it.
    fn tidy(&mut self, tid: i32) {
        let is_idle = |thread: &Thread| {
            thread.entered.is_none() && thread.returned.is_none() && thread.at_entry.is_empty() && thread.at_exit.is_empty()
        };
        if self.threads.get(&tid).is_some_and(is_idle) {
            self.threads.remove(&tid);
        }
    }
}

/// Returns the end of calls that an event is at, if the user asked for it and it is a tracepoint of the kernel.
fn end(spec: &EventSpec, copied_bytes: u32) -> Option<End> {
    if spec.role != Role::Tracepoint {
        return None;
    }
    let none = Format::default();
    let format = spec.format.as_ref().unwrap_or(&none);
    Some(match spec.name.as_str() {
        "raw_syscalls:sys_enter" => End::Entry(EnterLayout::of_all(format, true)),
        "raw_syscalls:sys_exit" => End::Exit(ExitLayout::of_all(format, true)),
        name if name.starts_with("syscalls:sys_enter_") => End::Entry(EnterLayout::single(format, true, copied_bytes)),
        name if name.starts_with("syscalls:sys_exit_") => End::Exit(ExitLayout::single(format, true)),
        _ => return None,
    })
}

impl Follower {
    /// Returns the call of a tracepoint's record as far as it is known, and whether the next event, which is that of
    /// the record, waits for more of it.
    #[inline]
    pub(super) fn call_of_event(
        &mut self,
        context: RecordContext,
        sample: &Sample<'_>,
        events: &mut Vec<Event>,
    ) -> (Option<Arc<Call>>, bool) {
        // Moved out for the time of the call, because it does not change.
        let Some(end) = self.call_events.ends.get_mut(usize::from(sample.event.0)).and_then(Option::take) else { return (None, false) };
        let found = match &end {
            End::Entry(layout) => self.entry_event(context, layout, sample, events),
            End::Exit(layout) => self.exit_event(context, *layout, sample, events),
        };
        self.call_events.ends[usize::from(sample.event.0)] = Some(end);
        found
    }

    fn entry_event(
        &mut self,
        context: RecordContext,
        layout: &EnterLayout,
        sample: &Sample<'_>,
        events: &mut Vec<Event>,
    ) -> (Option<Arc<Call>>, bool) {
        let (abi, nr) = self.abi_and_number(context, layout.nr.signed(sample.raw));
        let args = layout.args(sample.raw);
        // The only record of a call that does not return may be written before the event.
        let never_returns = matches!(self.behaviors.get(abi, nr).special, Special::Exit | Special::ExitGroup);
        if never_returns || !self.call_events.is_recorded(abi, nr) {
            return (Some(self.call_at_entry(context, (abi, nr), layout, sample.raw)), false);
        }
        let what = Registers { abi, nr, args: args[..usize::from(layout.count).min(6)].into(), ret: 0 };
        self.exit_is_over(context.task.tid, events);
        self.release_repeated(context.task.tid, sample.event, events);
        let mark = self.gaps.mark(context.cpu);
        let thread = self.call_events.threads.entry(context.task.tid).or_default();
        let known = thread.entered.as_ref().filter(|known| known.certain(mark).is_some_and(|call| what.are_entry_of(call)));
        let (known, waits) = (known.map(|known| Arc::clone(&known.call)), known.is_none_or(|known| known.is_incomplete));
        if waits {
            thread.at_entry.push(Waiting { ticket: self.outbox.next(), event: sample.event, mark, what });
        }
        let known = known.unwrap_or_else(|| self.call_at_entry(context, (abi, nr), layout, sample.raw));
        (Some(known), waits)
    }

    fn exit_event(
        &mut self,
        context: RecordContext,
        layout: ExitLayout,
        sample: &Sample<'_>,
        events: &mut Vec<Event>,
    ) -> (Option<Arc<Call>>, bool) {
        let (abi, nr) = self.abi_and_number(context, layout.nr.signed(sample.raw));
        let ret = layout.ret.signed(sample.raw);
        let behavior = self.behaviors.get(abi, nr);
        let exit = ExitState::Returned { at: context.time, ret: behavior.returns.extended(ret) };
        // A new task returns from a call that it has not made.
        let is_call = !(behavior.special == Special::Clone && ret == 0);
        let own = self.call_at_exit(context, (abi, nr), exit);
        let is_recorded = nr == -1 && self.call_events.are_recorded() || self.call_events.is_recorded(abi, nr);
        if !is_call || !is_recorded {
            return (Some(own), false);
        }
        let what = Registers { abi, nr, args: SmallVec::new(), ret };
        self.release_repeated(context.task.tid, sample.event, events);
        let mark = self.gaps.mark(context.cpu);
        let thread = self.call_events.threads.entry(context.task.tid).or_default();
        if let Some(call) = thread.returned.as_ref().and_then(|known| known.certain(mark)).filter(|call| what.are_exit_of(call)) {
            return (Some(Arc::clone(call)), false);
        }
        thread.at_exit.push(Waiting { ticket: self.outbox.next(), event: sample.event, mark, what });
        (Some(own), true)
    }

    /// Returns the call that an event's own record describes: its registers, and copies of strings from Linux 6.19 on.
    fn call_at_entry(&mut self, context: RecordContext, (abi, nr): (Abi, i64), layout: &EnterLayout, raw: &[u8]) -> Arc<Call> {
        let mut call = self.new_call(context, abi, nr);
        call.args = Some(self.arguments_at_entry(layout, (abi, nr), raw));
        layout.copy_pieces(raw, &mut call);
        call.pids = PidTranslation::of(self.threads[context.slot.index()].nested != Some(false));
        Arc::new(*call)
    }

    /// Returns the call that an event's own record describes: its result.
    fn call_at_exit(&mut self, context: RecordContext, (abi, nr): (Abi, i64), exit: ExitState) -> Arc<Call> {
        let mut call = self.new_call(context, abi, nr);
        call.exit = exit;
        call.pids = PidTranslation::of(self.threads[context.slot.index()].nested != Some(false));
        Arc::new(*call)
    }

    /// Handles the record that the BPF programs write at the entry of a call.
    #[cold]
    pub(super) fn entry_reported(&mut self, context: RecordContext, call_record: &CallRecord<'_>, events: &mut Vec<Event>) {
        let behavior = self.behaviors.get(call_record.abi, i64::from(call_record.nr)).with(&call_record.args);
        if self.reason_to_leave_out(context, &behavior, call_record.start).is_some() {
            return;
        }
        let mut call = self.paired_call(context, call_record);
        if call.pids != PidTranslation::Same {
            self.translate(context, &behavior, &mut call);
        }
        let (tid, call, is_incomplete) = (call.id.tid, Arc::new(*call), call_record.ret != 0);
        self.exit_is_over(tid, events);
        let mark = self.gaps.mark(context.cpu);
        let thread = self.call_events.threads.entry(tid).or_default();
        let waiting = std::mem::take(&mut thread.at_entry);
        thread.entered = Some(Known { call: Arc::clone(&call), mark, is_incomplete });
        for one in waiting {
            let is_same = one.what.are_entry_of(&call) && Gaps::none_between(one.mark, mark);
            if is_same {
                self.outbox.set_call_of_event(one.ticket, Arc::clone(&call));
            }
            if is_same && is_incomplete {
                self.call_events.threads.entry(tid).or_default().at_entry.push(one);
            } else {
                self.outbox.release_one(one.ticket, events);
            }
        }
    }

    /// Completes the events at the entry and exit of a call that has ended. Returns the call if it is shown itself.
    #[cold]
    pub(super) fn complete_events(&mut self, context: RecordContext, call: Box<Call>, events: &mut Vec<Event>) -> Option<Box<Call>> {
        if !self.call_events.is_recorded(call.abi, call.nr) {
            return Some(call);
        }
        let is_shown = !self.call_events.only_completes(call.abi, call.nr);
        // A record without return is written at the next entry of the thread, whose event may be waiting already.
        if call.exit == ExitState::Unseen {
            return is_shown.then_some(call);
        }
        let entered = self.call_events.threads.get_mut(&call.id.tid).map(|thread| {
            thread.entered = None;
            std::mem::take(&mut thread.at_entry)
        });
        let entered = entered.unwrap_or_default();
        self.call_events.tidy(call.id.tid);
        if is_shown && entered.is_empty() && !self.call_events.has_exits {
            return Some(call);
        }
        let (shown, call) = if is_shown { (Some(call.clone()), Arc::new(*call)) } else { (None, Arc::new(*call)) };
        let mark = self.gaps.mark(context.cpu);
        for one in entered {
            if call.entry == EntryState::Seen && one.what.are_entry_of(&call) && Gaps::none_between(one.mark, mark) {
                self.outbox.set_call_of_event(one.ticket, Arc::clone(&call));
            }
            self.outbox.release_one(one.ticket, events);
        }
        if self.call_events.has_exits && call.ret().is_some() {
            // The thread that executed a program is the leader of its process when it returns.
            let thread = self.call_events.threads.entry(context.task.tid).or_default();
            thread.returned = Some(Known { call: Arc::clone(&call), mark, is_incomplete: false });
            for one in std::mem::take(&mut thread.at_exit) {
                if one.what.are_exit_of(&call) && Gaps::none_between(one.mark, mark) {
                    self.outbox.set_call_of_event(one.ticket, Arc::clone(&call));
                }
                self.outbox.release_one(one.ticket, events);
            }
        }
        shown
    }

    /// Forgets the call from which the thread has returned, because the thread has entered another one or has ended,
    /// and releases the events that wait for it.
    fn exit_is_over(&mut self, tid: i32, events: &mut Vec<Event>) {
        let Some(thread) = self.call_events.threads.get_mut(&tid) else { return };
        thread.returned = None;
        for one in std::mem::take(&mut thread.at_exit) {
            self.outbox.release_one(one.ticket, events);
        }
    }

    /// Releases the events of an earlier call, if this event waits for it: each event occurs once at each end of a
    /// call.
    fn release_repeated(&mut self, tid: i32, event: EventIndex, events: &mut Vec<Event>) {
        let Some(thread) = self.call_events.threads.get_mut(&tid) else { return };
        for waiting in [&mut thread.at_entry, &mut thread.at_exit] {
            if waiting.iter().any(|one| one.event == event) {
                for one in std::mem::take(waiting) {
                    self.outbox.release_one(one.ticket, events);
                }
            }
        }
    }

    /// Releases the events that wait for a call of the thread, which has ended.
    pub(super) fn forget_call_events(&mut self, tid: i32, events: &mut Vec<Event>) {
        let Some(thread) = self.call_events.threads.remove(&tid) else { return };
        for one in thread.at_entry.into_iter().chain(thread.at_exit) {
            self.outbox.release_one(one.ticket, events);
        }
    }
}
