//! Calls of which only numbers are shown.
//!
//! A summary shows no more of a call than its task, syscall, duration and result. So a call from which nothing follows
//! ([`is_stateless`]) is not built, and nothing is looked up for it: its numbers are added to an event that holds many
//! calls ([`Tally`]). That event has the place of its calls among the others, because it is emitted before any other
//! event, and before any record that changes a task.

use super::{Follower, RecordContext};
use crate::beauty::lookup;
use crate::bpf::record::{CallRecord, RecordKind};
use crate::event::{Abi, Call, EntryState, Event, EventKind, ExitState, TalliedCall, Tally, TaskId, Time};
use crate::syscall::stateless::is_stateless;

/// The most tasks of one event. Each call looks for its task among them.
const TASKS_MAX: usize = 16;

/// The most calls of one event, so that it stays in the cache of a CPU.
const CALLS_MAX: usize = 512;

/// The calls that are tallied, and those that were not emitted yet.
#[derive(Default)]
pub(super) struct Tallies {
    /// By ABI and number: the row, if calls with this number are tallied.
    rows: [Vec<Option<u16>>; 4],
    tally: Box<Tally>,
    /// The index of the last call's task there.
    recent: usize,
    /// The CPU and the time of the last call.
    last: (u32, Time),
}

impl Tallies {
    /// Returns the row of a call that is tallied if it is as usual.
    #[inline]
    fn row(&self, abi: Abi, nr: i64) -> Option<u16> {
        *self.rows[abi as usize].get(usize::try_from(nr).ok()?)?
    }

    /// Returns whether all calls that were tallied were emitted.
    pub fn is_empty(&self) -> bool {
        self.tally.calls.is_empty()
    }

    /// Returns the index of a task; `None` if it is a new one.
    #[inline]
    fn place_of(&mut self, task: TaskId) -> Option<usize> {
        let tasks = &self.tally.tasks;
        if tasks.get(self.recent).is_none_or(|recent| recent.0 != task) {
            self.recent = tasks.iter().position(|of| of.0 == task)?;
        }
        Some(self.recent)
    }
}

impl Follower {
    /// Lets calls be tallied from now on: those of the rows that are `true`, by ABI. All of them are shown, and no more
    /// than their numbers. Files behind descriptors are not followed then.
    pub fn tally(&mut self, rows: [Vec<bool>; 4]) {
        let needs_calls = self.stacks.is_some() || self.call_events.are_recorded() || self.cgroups.is_some() || self.stream.names_at_exit;
        if needs_calls || self.kernel_pids.is_some() {
            return;
        }
        self.stream.descriptors = false;
        for abi in Abi::ALL {
            let is_tallied = |row: &u16| rows[abi as usize].get(usize::from(*row)).is_some_and(|is| *is);
            let row = |nr: i32| lookup::index(abi, nr.into()).filter(|row| is_stateless(abi, nr) && is_tallied(row));
            self.tallies.rows[abi as usize] = (0..lookup::numbers(abi) as i32).map(row).collect();
        }
    }

    /// Tallies the call of a record of the BPF programs, if it is tallied. Its pieces are memory and files that nobody
    /// shows.
    #[inline]
    pub(super) fn tally_paired(&mut self, context: RecordContext, record: &CallRecord<'_>, events: &mut Vec<Event>) -> bool {
        let (Some(row), Some(event)) = (self.tallies.row(record.abi, record.nr.into()), self.stream.bpf) else { return false };
        let is_usual = record.kind == RecordKind::Returned && !(record.injected || record.no_entry || record.shown || record.killed);
        let thread = &mut self.threads[context.slot.index()];
        let is_left_out = thread.excluded || thread.set_up || self.command.ran_rtrace_code(context.task, record.start);
        if !is_usual || is_left_out || thread.changed.is_some() || self.reported.keeps_any_of(record.tid) {
            return false;
        }
        (thread.fresh, thread.executing) = (false, None);
        self.ledger.account(event).receive(1);
        self.ledger.paired_call(ExitState::Returned { at: record.end, ret: record.ret });
        self.add_to_tally(context, row, (record.abi, record.nr as u32), (record.end.since(record.start), record.ret), events);
        true
    }

    /// Tallies a call that was paired, if it is tallied.
    #[inline]
    pub(super) fn tally_returned(&mut self, context: RecordContext, call: &Call, events: &mut Vec<Event>) -> bool {
        let Some(row) = self.tallies.row(call.abi, call.nr) else { return false };
        let (EntryState::Seen, ExitState::Returned { at, ret }, false) = (call.entry, call.exit, call.shown_pending) else { return false };
        self.ledger.call(call.entry, call.exit);
        self.add_to_tally(context, row, (call.abi, call.nr as u32), (at.since(call.id.start), ret), events);
        true
    }

    #[inline]
    fn add_to_tally(
        &mut self,
        context: RecordContext,
        row: u16,
        (abi, nr): (Abi, u32),
        (duration, ret): (u64, i64),
        events: &mut Vec<Event>,
    ) {
        let task = match self.tallies.place_of(context.task) {
            Some(task) => task,
            None => self.add_task_to_tally(context, events),
        };
        let errno = if (-4095..0).contains(&ret) { -ret as u16 } else { 0 };
        self.tallies.tally.calls.push(TalliedCall { task: task as u16, errno, row, abi, nr, duration });
        self.tallies.last = (context.cpu, self.now);
        if self.tallies.tally.calls.len() == CALLS_MAX {
            self.emit_tally(events);
        }
    }

    #[cold]
    fn add_task_to_tally(&mut self, context: RecordContext, events: &mut Vec<Event>) -> usize {
        if self.tallies.tally.tasks.len() == TASKS_MAX {
            self.emit_tally(events);
        }
        let comm = self.tasks.at(context.slot).comm().cloned();
        let tasks = &mut self.tallies.tally.tasks;
        tasks.push((context.task, comm));
        self.tallies.recent = tasks.len() - 1;
        self.tallies.recent
    }

    /// Emits the calls that were tallied since the last event. Called before another event gets its ticket.
    #[inline]
    pub fn emit_tallied(&mut self, events: &mut Vec<Event>) {
        if !self.tallies.is_empty() {
            self.emit_tally(events);
        }
    }

    fn emit_tally(&mut self, events: &mut Vec<Event>) {
        let tally = std::mem::replace(&mut self.tallies.tally, self.call_pool.take_tally());
        let (cpu, time) = self.tallies.last;
        self.outbox.push(Event { time, cpu, task: TaskId::default(), comm: None, kind: EventKind::Tally(tally) }, 0, events);
    }
}
