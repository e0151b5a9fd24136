//! One record after the other, in time order: what each does to tasks, calls and descriptors, and which events come of it.

mod asked;
mod calls;
mod cgroups;
mod command;
mod descriptors;
mod facts;
mod family;
mod namespaces;
mod ours;
mod path_names;
mod signals;
mod stacks;
mod told;
mod used;
mod whole;

use super::Settings;
use super::outbox::Outbox;
use crate::beauty::row::Syscall;
use crate::event::note::Mapped;
use crate::event::{Caller, Event, EventIndex, Exit, Fault, Loss, Note, Numbers, TaskId, Time, What};
use crate::session::{Scope, Session};
use crate::source::merge::Trouble;
use crate::source::{Body, Record, Sample};
use crate::stack::library::Open as OpenFile;
use crate::syscall::behavior::Behaviors;
use crate::syscall::gaps::Gaps;
use crate::syscall::layout::{self, Layout};
use crate::syscall::ledger::{Ledger, LeftOut};
use crate::syscall::pairing::{Open, Thread};
use crate::task::children::Children;
use crate::task::ends::{self, Ends};
use crate::task::fds::{SETTLING, Tables};
use crate::task::maps::Maps;
use crate::task::numbers::KernelNumbers;
use crate::task::tasks::Slot;
use crate::task::{Look, Tasks};
use asked::Asked;
use cgroups::Cgroups;
use command::Command;
use facts::Facts;
use ours::Ours;
use path_names::Unnamed;
use signals::Unclaimed;
use stacks::Stacks;
use told::Told;
use used::Used;

/// No more looks of a kind are made after one round: descriptors beyond go without, tasks are asked for after the next.
const LOOKS_MAX: usize = 256;

/// The state that records change.
pub struct Follower {
    facts: Facts,
    told: Told,
    /// Whose side-band records are wanted, where everybody's come.
    ours: Option<Ours>,
    layouts: Vec<Layout>,
    behaviors: Behaviors,
    gaps: Gaps,
    /// By task slot.
    threads: Vec<Thread>,
    tables: Tables,
    ends: Ends,
    maps: Maps,
    /// Stacks, or single addresses of code, come with some records.
    stacks: Option<Stacks>,
    outbox: Outbox,
    command: Command,
    asked: Asked,
    /// Which task is in which cgroup, if that is followed.
    cgroups: Option<Cgroups>,
    /// What processes in other pid namespaces call their children.
    children: Children,
    /// Where tasks have other numbers in the fields of tracepoints than here: what those mean.
    numbers: Option<KernelNumbers>,
    /// By event: where its records have the kernel's number of who wrote them.
    writers: Vec<layout::Field>,
    /// Signals to tasks whose number is not known yet.
    unclaimed: Vec<Unclaimed>,
    /// Open calls of tasks whose number was given again, though nobody saw them end.
    orphans: Vec<(TaskId, Slot, Open)>,
    /// Calls that are over and whose path names are still to come.
    unnamed: Unnamed,
    used: Used,
    now: Time,
    pub tasks: Tasks,
    pub ledger: Ledger,
}

/// Where and when a record was written.
#[derive(Clone, Copy, Debug)]
struct Here {
    time: Time,
    cpu: u32,
    task: TaskId,
    slot: Slot,
}

impl Follower {
    pub fn new(session: &Session, settings: Settings, rows: &'static [Syscall], files: Box<dyn OpenFile>) -> Follower {
        Follower {
            facts: Facts::new(session, settings),
            told: Told::default(),
            ours: session.processes.as_deref().map(Ours::new),
            layouts: layout::layouts(session),
            behaviors: Behaviors::new(rows),
            gaps: Gaps::default(),
            threads: Vec::new(),
            tables: Tables::default(),
            ends: Ends::default(),
            maps: Maps::default(),
            stacks: Stacks::new(session, files),
            outbox: Outbox::default(),
            command: Command::default(),
            asked: Asked::default(),
            cgroups: settings.cgroups.then(|| Cgroups::new(session)),
            children: Children::default(),
            numbers: session.fields_have_other_numbers.then(KernelNumbers::default),
            writers: session.events.events.iter().map(layout::writer).collect(),
            unclaimed: Vec::new(),
            orphans: Vec::new(),
            unnamed: Unnamed::default(),
            used: Used::default(),
            now: Time::default(),
            tasks: Tasks::default(),
            ledger: Ledger::new(session),
        }
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn is_waiting(&self) -> bool {
        self.outbox.is_waiting()
    }

    /// Gaps that will be met, by CPU, and when the last record before each was written.
    pub fn gaps_ahead(&mut self, gaps: impl Iterator<Item = (u32, Option<Time>)>) {
        gaps.for_each(|(cpu, after)| self.gaps.ahead(cpu, after));
    }

    pub fn trouble(&mut self, trouble: &Trouble) {
        self.ledger.late = trouble.late;
        self.ledger.unreadable = trouble.unreadable;
    }

    /// [`Ledger::count_unwritten`]
    pub fn count_unwritten(&mut self) {
        self.ledger.count_unwritten();
    }

    /// Takes one record.
    #[inline]
    pub fn record(&mut self, record: Record<'_>, events: &mut Vec<Event>) {
        self.now = self.now.max(record.time);
        self.gaps.advance(record.time);
        match record.body {
            Body::Sample(ref sample) => self.sample(&record, sample, events),
            _ => self.side_band(&record, events),
        }
        if !self.orphans.is_empty() {
            self.give_orphans(record.cpu, events);
        }
        if !self.tables.settled().is_empty() {
            self.settle(events);
        }
    }

    #[inline]
    fn sample(&mut self, record: &Record<'_>, sample: &Sample<'_>, events: &mut Vec<Event>) {
        if let Some(Layout::Call) = self.layouts.get(usize::from(sample.event.0)) {
            return self.whole(record, sample, events);
        }
        if let Some(&Layout::Generate(layout)) = self.layouts.get(usize::from(sample.event.0)) {
            return self.generated(record, sample, layout, events);
        }
        self.ledger.account(sample.event).receive(sample.count);
        if let Some(&Layout::CgroupMove(layout)) = self.layouts.get(usize::from(sample.event.0)) {
            return self.cgroup_changed(layout, sample.raw, record.time);
        }
        if self.facts.is_output(sample.event) && !self.follows(record.task, sample.event) {
            return self.ledger.leave_out(sample.event, LeftOut::Excluded);
        }
        let task = if self.facts.is_by_instance(sample.event) {
            self.ledger.instance.receive(1);
            let Some(task) = self.task_of_thread(record.task.tid, sample.event) else {
                return self.ledger.leave_out(sample.event, LeftOut::Excluded);
            };
            task
        } else {
            record.task
        };
        let slot = self.slot(task, record.time);
        let here = Here { time: record.time, cpu: record.cpu, task, slot };
        if self.numbers.is_some() {
            self.learn_number(here, sample, events);
        }
        if let Some(why) = self.left_out(here, sample) {
            self.ledger.leave_out(sample.event, why);
            return;
        }
        // Taken out and put back: layouts do not change, but reading by them changes everything else.
        let layouts = std::mem::take(&mut self.layouts);
        match layouts.get(usize::from(sample.event.0)) {
            Some(Layout::Enter(layout)) => self.enter(here, layout, sample, events),
            Some(Layout::Exit(layout)) => self.exit(here, *layout, sample, events),
            Some(other) => self.other_sample(here, other, sample, events),
            None => {}
        }
        self.layouts = layouts;
        if self.facts.is_shown(sample.event) {
            let stack = self.stack_of_event(here, sample);
            let caller = self.caller(here, sample);
            self.give(here, What::Tracepoint { event: sample.event, raw: sample.raw.into(), stack, caller }, 0, events);
        }
    }

    /// Where the function that a return probe is on returned to, in a program.
    #[inline]
    fn caller(&mut self, here: Here, sample: &Sample<'_>) -> Option<Caller> {
        let field = self.facts.returns(sample.event)?;
        let address = field.unsigned(sample.raw)?;
        let place = self.maps.at(here.task.pid, address)?;
        let frame = self.stacks.as_mut()?.frame(&self.maps, here.task.pid, address);
        Some(Caller { place, frame })
    }

    /// The task of a record that only says which thread it is. One that nobody saw begin is asked for; until the answer is there it passes for a process.
    ///
    /// `None`: somebody who is not followed. The kernel records events of the scheduler for the thread that is left as well as for the one that is turned to.
    fn task_of_thread(&mut self, tid: i32, event: EventIndex) -> Option<TaskId> {
        if let Some(task) = self.tasks.get(tid) {
            return Some(task.id);
        }
        // What is needed to understand others is not, if these are nobody's.
        if !self.facts.is_shown(event) || self.facts.scope != Scope::System && !self.gaps.was_any() {
            return None;
        }
        self.ask_about(tid);
        Some(TaskId { pid: tid, tid })
    }

    /// Whether a task is one of those that are traced. Programs of the user's run in every task; the stream has told of all that are followed before they do anything.
    #[cold]
    fn follows(&mut self, task: TaskId, output: EventIndex) -> bool {
        if self.facts.scope == Scope::System {
            return true;
        }
        let inherits = self.facts.inherits(output);
        let Some(slot) = self.tasks.find(task.tid).filter(|&slot| self.tasks.at(slot).id == task) else { return false };
        let thread = &self.threads[slot.index()];
        !thread.foreign && (inherits || thread.made.is_none())
    }

    /// Whether a record is rtrace's own matter.
    #[inline]
    fn left_out(&mut self, here: Here, sample: &Sample<'_>) -> Option<LeftOut> {
        let thread = &mut self.threads[here.slot.index()];
        if thread.excluded {
            return Some(LeftOut::Excluded);
        }
        if self.facts.scope == Scope::Tasks && !thread.is_first_report(sample.event.0, here.cpu, sample.origin) {
            return Some(LeftOut::Twice);
        }
        (thread.set_up && !self.begins_the_command(here, sample)).then_some(LeftOut::SetUp)
    }

    #[cold]
    fn other_sample(&mut self, here: Here, layout: &Layout, sample: &Sample<'_>, events: &mut Vec<Event>) {
        let raw = sample.raw;
        match layout {
            Layout::Exec(layout) => {
                // A thread whose number is not known made no call here: nothing is to be taken over from it.
                let old_tid = self.number_here(layout.old_pid.signed(raw) as i32).unwrap_or(here.task.tid);
                self.exec(here, layout.filename.far_text(raw), old_tid, events);
            }
            Layout::NewTask(layout) => {
                let flags = layout.flags.unsigned(raw);
                if let Some(tid) = self.made_by(here, layout.pid.signed(raw) as i32) {
                    self.new_task(here, tid, layout.comm.text(raw), flags, events);
                }
            }
            Layout::Deliver(layout) => self.delivered(here, layout, raw, events),
            Layout::TaskExit => self.task_end(here, events),
            Layout::PathName(layout) => self.path_name(here, *layout, raw, events),
            Layout::Fault { major } => {
                let (ip, address, pid) = (sample.ip, sample.address, here.task.pid);
                let stack = self.stack_of_event(here, sample);
                let (ip_at, address_at) = (self.maps.at(pid, ip), self.maps.at(pid, address));
                let fault = Fault { major: *major, ip, address, ip_at, address_at, stack };
                self.give(here, What::Fault(fault), 0, events);
            }
            Layout::Enter(_) | Layout::Exit(_) | Layout::Call | Layout::CgroupMove(_) | Layout::Generate(_) | Layout::Other { .. } => {}
        }
    }

    #[cold]
    fn side_band(&mut self, record: &Record<'_>, events: &mut Vec<Event>) {
        let (time, cpu) = (record.time, record.cpu);
        if self.ours.as_mut().is_some_and(|ours| !ours.has(&record.body)) {
            return;
        }
        match record.body {
            Body::Comm { task, comm, exec } => {
                let slot = self.slot(task, time);
                self.tasks.name(slot, time, comm);
                if exec {
                    if self.facts.bpf.is_some() {
                        self.revive(Here { time, cpu, task, slot });
                    }
                    let mark = (self.facts.execs || self.facts.bpf.is_some()).then(|| self.gaps.mark(cpu));
                    let thread = &mut self.threads[slot.index()];
                    (thread.set_up, thread.executing) = (false, mark);
                    // Another thread may have taken over the number, with events of its own.
                    thread.forget_origins();
                    self.command.executed(task);
                }
                if exec && self.facts.follows_maps {
                    self.forget_maps(task.pid);
                }
            }
            Body::Fork { child, parent } => self.fork(child, parent, time, cpu, events),
            Body::Exit { task } => {
                if let Some(slot) = self.tasks.find(task.tid).filter(|&slot| self.tasks.at(slot).id == task) {
                    self.watch_ends(Here { time, cpu, task, slot }, events);
                }
            }
            Body::Map { task, start, len, offset, file, executable, path } if self.facts.follows_maps => {
                self.maps.map(task.pid, (start, len, offset), executable, file, path);
            }
            Body::Lost { records, after } => {
                self.gap_ends(record.cpu, record.time);
                self.lost(record, Loss { records: Some(records), after }, events);
            }
            // Nothing else is lost by that: neither calls nor what is known of tasks comes by an instance.
            Body::Missed { records, after } => self.lost(record, Loss { records, after }, events),
            Body::Note(note) => self.note(time, note, events),
            Body::Map { .. } | Body::Sample(_) => {}
        }
    }

    fn lost(&mut self, record: &Record<'_>, loss: Loss, events: &mut Vec<Event>) {
        self.ledger.lost_placed += loss.records.unwrap_or_default();
        self.ledger.gaps_unsized += u64::from(loss.records.is_none());
        let event =
            Event { time: self.now, cpu: record.cpu, task: record.task, comm: self.tasks.comm(record.task.tid), what: What::Lost(loss) };
        self.outbox.push(event, 0, events);
    }

    fn gap_ends(&mut self, cpu: u32, time: Time) {
        self.gaps.end(cpu);
        self.forget_namespaces();
        self.forget_numbers();
        self.ends.forget_sent();
        self.tables.forget_all(Time(time.0 + SETTLING));
        self.forget_cgroups(time);
    }

    fn note(&mut self, time: Time, note: &Note, events: &mut Vec<Event>) {
        match note {
            Note::Spawned { task, path, fds, cgroup, nested, .. } => {
                self.spawned(*task, path, fds, *nested, time);
                self.cgroup_seen(*task, cgroup.as_deref());
            }
            Note::Executed { task, comm } => self.command_begun(*task, comm, time),
            Note::Task { task, comm, ppid, started, cgroup, abi, nested } => {
                let is_known = self.tasks.find(task.tid).is_some_and(|slot| self.tasks.at(slot).id == *task && !self.tasks.at(slot).ended);
                let slot = self.slot_for_look(*task, time);
                self.threads[slot.index()].foreign |= !is_known && self.asked.is_awaited(task.tid);
                self.tasks.looked_at(slot, comm, *started);
                let found = self.tasks.at_mut(slot);
                found.parent = *ppid;
                found.abi = abi.unwrap_or(found.abi);
                self.cgroup_seen(*task, cgroup.as_deref());
                self.namespace_is(slot, *nested);
                self.answered(task.tid, events);
            }
            Note::NoTask { tid } => {
                self.asked.is_nobody(*tid);
                self.answered(*tid, events);
            }
            Note::Fd { pid, fd, path, from } => self.tables.looked(*pid, *fd, path.as_deref(), *from, time),
            Note::Count { event, issued, lost, from_afar } => self.ledger.count(*event, *issued, *lost, *from_afar),
            Note::InstanceCount { issued, lost } => {
                (self.ledger.instance.issued, self.ledger.instance.lost) = (Some(*issued), Some(*lost));
            }
            Note::LeftOut { calls } => self.ledger.left_out = *calls,
            Note::Reaped { pid, status } => self.reaped(*pid, *status, events),
            Note::Full { cpu } => self.gap_ends(*cpu, time),
            Note::InFlight { task, call, last, stack } => self.in_flight(time, *task, (call, stack.as_ref()), *last, events),
            Note::Sleeping { task, nr, args, stack } => self.sleeping(time, *task, (*nr, *args), stack.as_ref()),
            Note::Maps { pid, maps } => {
                for Mapped { start, end, offset, file, path } in maps {
                    self.maps.map(*pid, (*start, end.saturating_sub(*start), *offset), true, *file, path);
                }
            }
            Note::Silenced { .. } => {}
        }
    }

    /// What is due at a round's end, when the stream has come to `now`.
    pub fn tick(&mut self, now: Time, events: &mut Vec<Event>) {
        self.now = self.now.max(now);
        if let Some(after) = self.facts.settings.pending_after {
            self.give_pending(after, events);
        }
        self.settle(events);
        self.give_unnamed(events);
        self.outbox.expire(self.now, events);
    }

    /// Makes the looks that are wanted; their answers belong into the stream.
    pub fn looks(&mut self, look: &mut dyn Look) -> Vec<(Time, Note)> {
        let mut fds = if self.facts.descriptors { self.tables.wanted() } else { Vec::new() };
        for (pid, fd) in fds.drain(LOOKS_MAX.min(fds.len())..) {
            self.tables.looked(pid, fd, None, self.now, self.now);
        }
        let tids = self.asked.take(LOOKS_MAX);
        let mut answers: Vec<(Time, Note)> = fds.iter().filter_map(|&(pid, fd)| look.fd(pid, fd)).collect();
        answers.extend(tids.iter().chain(&self.cgroups_to_ask()).filter_map(|&tid| look.task(tid)));
        answers
    }

    /// Keeps the memory of calls that nobody needs any more.
    pub fn recycle(&mut self, events: &mut Vec<Event>) {
        self.used.recycle(events);
    }

    /// The stream is over.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        self.give_in_flight(events);
        self.give_without_record(events);
        self.outbox.give_all(events);
    }

    fn give(&mut self, here: Here, what: What, waits: u32, events: &mut Vec<Event>) {
        let comm = self.tasks.at(here.slot).comm().cloned();
        self.outbox.push(Event { time: self.now, cpu: here.cpu, task: here.task, comm, what }, waits, events);
    }

    #[cold]
    fn give_orphans(&mut self, cpu: u32, events: &mut Vec<Event>) {
        for (task, slot, open) in std::mem::take(&mut self.orphans) {
            self.give_without_exit(Here { time: self.now, cpu, task, slot }, open, Exit::Unseen, events);
        }
    }

    #[cold]
    fn settle(&mut self, events: &mut Vec<Event>) {
        for (ticket, place, path) in self.tables.settled().drain(..) {
            self.outbox.settle(ticket, place, path, events);
        }
    }

    /// A look at a task was answered: who waited for its name need not wait any more.
    fn answered(&mut self, tid: i32, events: &mut Vec<Event>) {
        let is_ours = self.tasks.find(tid).is_some_and(|slot| self.threads[slot.index()].nested == Some(false));
        for ticket in self.asked.answered(tid) {
            if let Some(call) = self.outbox.call(ticket).filter(|call| is_ours && call.id.tid == tid) {
                call.numbers = Numbers::Same;
            }
            self.outbox.release_one(ticket, events);
        }
    }

    fn reaped(&mut self, pid: i32, status: i32, events: &mut Vec<Event>) {
        let Some(ticket) = self.command.take_end(pid) else { return };
        self.outbox.end_known(ticket, ends::of_status(status), events);
    }
}
