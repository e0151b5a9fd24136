//! Processes one record after the other in time order: updates tasks, calls and descriptors, and emits events.

mod call_events;
mod call_pool;
mod calls;
mod cgroups;
mod command;
mod descriptors;
mod injected;
mod lifecycle;
mod namespaces;
mod paired;
mod path_names;
mod process_filter;
mod reported;
mod requests;
mod samples;
mod side_band;
mod signals;
mod stacks;
mod stream_properties;
mod synthesized;
mod tallies;
mod task_reads;

use super::outbox::Outbox;
use crate::beauty::row::Syscall;
use crate::event::{Event, EventKind, ExitState, TaskId, Time};
use crate::session::Session;
use crate::source::merge::Trouble;
use crate::source::{Body, Record};
use crate::stack::library::Open as OpenFile;
use crate::syscall::behavior::Behaviors;
use crate::syscall::gaps::Gaps;
use crate::syscall::layout::{self, Layout};
use crate::syscall::ledger::Ledger;
use crate::syscall::pairing::{OpenCall, ThreadState};
use crate::task::child_pids::ChildPids;
use crate::task::ends::TaskEnds;
use crate::task::fds::FdTables;
use crate::task::kernel_pids::KernelPids;
use crate::task::maps::Maps;
use crate::task::tasks::Slot;
use crate::task::{ProcRead, Tasks};
use call_events::CallEvents;
use call_pool::CallPool;
use cgroups::Cgroups;
use command::Command;
use path_names::UnnamedCalls;
use process_filter::ProcessFilter;
use reported::Reported;
use requests::Requests;
use signals::UnclaimedSignal;
use stacks::Stacks;
use stream_properties::StreamProperties;
use tallies::Tallies;
use task_reads::TaskReads;

/// The maximum number of reads of /proc of one kind after one round. Descriptors beyond it remain unknown; tasks beyond
/// it are read after the next round.
const READS_MAX: usize = 256;

/// The state that records change.
pub struct Follower {
    stream: StreamProperties,
    reported: Reported,
    /// The processes whose side-band records are processed, if the side band is system-wide.
    process_filter: Option<ProcessFilter>,
    layouts: Vec<Layout>,
    behaviors: Behaviors,
    gaps: Gaps,
    /// By task slot.
    threads: Vec<ThreadState>,
    tables: FdTables,
    ends: TaskEnds,
    maps: Maps,
    /// Present if some records have call chains, or return addresses to resolve.
    stacks: Option<Stacks>,
    outbox: Outbox,
    command: Command,
    task_reads: TaskReads,
    /// The cgroup of each task, if cgroups are tracked.
    cgroups: Option<Cgroups>,
    /// The pids by which processes in other pid namespaces know their children.
    child_pids: ChildPids,
    /// The translation of pids in fields of tracepoints, if those are of another pid namespace than rtrace's.
    kernel_pids: Option<KernelPids>,
    /// By event: the field of its records with the kernel's pid of the task that wrote them.
    writer_fields: Vec<layout::Field>,
    /// Signals to tasks whose pid in rtrace's namespace is not known yet.
    unclaimed_signals: Vec<UnclaimedSignal>,
    /// Open calls of tasks whose tid was reused although their end was not seen.
    stale_calls: Vec<(TaskId, Slot, OpenCall)>,
    /// Completed calls that wait for path names.
    unnamed_calls: UnnamedCalls,
    call_pool: CallPool,
    tallies: Tallies,
    /// The requests of io_uring in flight, if they are traced.
    requests: Requests,
    /// Tracepoints at the entry and exit of calls, which the user asked for as events.
    call_events: CallEvents,
    now: Time,
    /// The state of all tasks at the stream's present time.
    pub tasks: Tasks,
    /// The account of the calls and records so far.
    pub ledger: Ledger,
}

/// The task, time and CPU of a record.
#[derive(Clone, Copy, Debug)]
struct RecordContext {
    time: Time,
    cpu: u32,
    task: TaskId,
    slot: Slot,
}

impl Follower {
    pub fn new(session: &Session, pending_after: Option<u64>, rows: &'static [Syscall], files: Box<dyn OpenFile>) -> Follower {
        Follower {
            stream: StreamProperties::new(session, pending_after),
            reported: Reported::default(),
            process_filter: session.processes.as_deref().map(ProcessFilter::new),
            layouts: layout::layouts(session),
            behaviors: Behaviors::new(rows),
            gaps: Gaps::default(),
            threads: Vec::new(),
            tables: FdTables::default(),
            ends: TaskEnds::default(),
            maps: Maps::default(),
            stacks: Stacks::new(session, files),
            outbox: Outbox::default(),
            command: Command::default(),
            task_reads: TaskReads::default(),
            cgroups: session.follows_cgroups.then(|| Cgroups::new(session)),
            child_pids: ChildPids::default(),
            kernel_pids: session.fields_have_other_numbers.then(KernelPids::default),
            writer_fields: session.events.events.iter().map(layout::writer).collect(),
            unclaimed_signals: Vec::new(),
            stale_calls: Vec::new(),
            unnamed_calls: UnnamedCalls::default(),
            call_pool: CallPool::default(),
            tallies: Tallies::default(),
            requests: Requests::new(session),
            call_events: CallEvents::new(session),
            now: Time::default(),
            tasks: Tasks::default(),
            ledger: Ledger::new(session),
        }
    }

    /// Returns the time of the latest record, or of the latest end of a round if that is later.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Announces gaps, by CPU, with the time of the last record before each.
    pub fn gaps_ahead(&mut self, gaps: impl Iterator<Item = (u32, Option<Time>)>) {
        gaps.for_each(|(cpu, after)| self.gaps.ahead(cpu, after));
    }

    /// Stores the counts of late and unreadable records.
    pub fn trouble(&mut self, trouble: &Trouble) {
        self.ledger.late = trouble.late;
        self.ledger.unreadable = trouble.unreadable;
    }

    /// Counts calls of the BPF programs whose records were not read.
    pub fn pass_over(&mut self, calls: u64) {
        if let Some(event) = self.stream.bpf {
            self.ledger.account(event).receive_all(calls);
            self.ledger.aggregated_calls(calls);
        }
    }

    /// [`Ledger::count_unwritten`]
    pub fn count_unwritten(&mut self, of_cgroup: bool) {
        self.ledger.count_unwritten(of_cgroup);
    }

    /// Processes one record.
    #[inline]
    pub fn record(&mut self, record: Record<'_>, events: &mut Vec<Event>) {
        self.now = self.now.max(record.time);
        self.gaps.advance(record.time);
        match record.body {
            Body::Sample(ref sample) => self.sample(&record, sample, events),
            _ => {
                self.emit_tallied(events);
                self.side_band(&record, events);
            }
        }
        if !self.stale_calls.is_empty() {
            self.emit_stale_calls(record.cpu, events);
        }
        if !self.tables.settled().is_empty() {
            self.settle(events);
        }
    }

    /// Does what is due at a round's end, when the stream's time is `now`.
    pub fn tick(&mut self, now: Time, events: &mut Vec<Event>) {
        self.now = self.now.max(now);
        if let Some(after) = self.stream.pending_after {
            self.emit_pending(after, events);
            self.emit_pending_requests(after, events);
        }
        self.settle(events);
        self.expire_unnamed(events);
        self.outbox.expire(self.now, events);
    }

    /// Takes the reads of /proc that are necessary now.
    pub fn take_reads(&mut self) -> Vec<ProcRead> {
        let mut fds = if self.stream.descriptors { self.tables.take_requests() } else { Vec::new() };
        for (pid, fd) in fds.drain(READS_MAX.min(fds.len())..) {
            self.tables.store_read(pid, fd, None, self.now, self.now);
        }
        let tids = self.task_reads.take(READS_MAX).into_iter().chain(self.cgroups_to_read());
        fds.into_iter().map(|(pid, fd)| ProcRead::Fd { pid, fd }).chain(tids.map(|tid| ProcRead::Task { tid })).collect()
    }

    /// Returns the number of tasks whose reads have no result, and of which nothing else is known.
    pub fn unnamed_tasks(&self) -> usize {
        self.task_reads.awaited().filter(|tid| self.tasks.get(*tid).is_none()).count()
    }

    /// Takes emitted calls back, to reuse their memory.
    pub fn recycle(&mut self, events: &mut Vec<Event>) {
        self.call_pool.recycle(events);
    }

    /// Ends the stream: emits all held events, and the calls in flight.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        self.emit_in_flight(events);
        self.emit_requests_in_flight(events);
        self.emit_without_record(events);
        self.outbox.emit_all(events);
    }

    /// Emits an event that waits for this many facts, possibly none.
    fn emit(&mut self, context: RecordContext, kind: EventKind, waits: u32, events: &mut Vec<Event>) {
        debug_assert!(self.tallies.is_empty(), "tallied calls are emitted before an event gets its ticket");
        let comm = self.tasks.at(context.slot).comm().cloned();
        self.outbox.push(Event { time: self.now, cpu: context.cpu, task: context.task, comm, kind }, waits, events);
    }

    #[cold]
    fn emit_stale_calls(&mut self, cpu: u32, events: &mut Vec<Event>) {
        for (task, slot, open) in std::mem::take(&mut self.stale_calls) {
            self.emit_without_exit(RecordContext { time: self.now, cpu, task, slot }, open, ExitState::Unseen, events);
        }
    }

    /// Releases the calls whose descriptors are settled: each file is known, or will not become known.
    #[cold]
    fn settle(&mut self, events: &mut Vec<Event>) {
        for (ticket, place, path) in self.tables.settled().drain(..) {
            self.outbox.settle(ticket, place, path, events);
        }
    }
}
