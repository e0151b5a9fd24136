//! Takes snapshots (`record --snapshot`): the part of the main thread.
//!
//! ```text
//! SIGUSR2, a reported match, the end ──▶ copy of all rings, journal, calls in flight ──▶ Job ──▶ worker: dump.rs ──▶
//! file
//! ```
//!
//! While nobody asks for a snapshot, only the side band is read. A snapshot is a copy of the rings, which the kernel
//! goes on overwriting meanwhile, so a snapshot neither stops the calls nor loses any, and two of them may overlap. The
//! worker writes it. Until it has, and for a second after a match, further matches are counted and no snapshot is taken
//! for them.

pub mod dump;
mod matched;
mod name;

use super::{Run, record};
use crate::arm::live::Drain;
use crate::event::{NoticeCode, Time};
use crate::interrupt;
use crate::kernel::tracefs::Tracefs;
use crate::plan::{MatchEvent, Plan};
use crate::request;
use crate::say;
use crate::session::Session;
use crate::snapshot::{Journal, KnownTasks, Match};
use crate::source::Round;
use crate::sys::{barrier, clock};
use dump::{Cause, CopiedRing, Job, SnapshotWriter};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The least time between two snapshots that calls asked for, in nanoseconds.
const INTERVAL: u64 = 1_000_000_000;
/// The journal has this share of the size of all rings, and at least the least size.
const JOURNAL_SHARE: usize = 8;
const JOURNAL_MIN: usize = 4 << 20;
/// The most bytes of one record without its stack: a BPF program's has 8,000, a tracepoint's a page.
const RECORD_MAX: usize = 9 << 10;
/// How many records a CPU may be writing at once: that of a task, which interrupts of three kinds may interrupt.
const NESTED: usize = 4;
/// A ring's progress is noted each time that it has written this share of its size.
const MARKS: u64 = 16;

/// The state of snapshots.
#[derive(Debug)]
pub struct Snapshots {
    what: request::Snapshots,
    session: Arc<Session>,
    event: Option<MatchEvent>,
    /// The identifiers of the events that report matches.
    match_ids: FxHashSet<u64>,
    journal: Journal,
    /// How much each ring had written at some times, the oldest first.
    marks: Vec<VecDeque<(Time, u64)>>,
    jobs: Sender<Job>,
    /// The worker is writing a snapshot.
    is_busy: Arc<AtomicBool>,
    /// Snapshots that are asked for and were not taken yet.
    due: Option<Cause>,
    taken: u32,
    taken_for_matches: u32,
    /// The time of the last match for which a snapshot was taken.
    last_match: Option<Time>,
    /// The kernel reports the next match.
    is_reporting: bool,
    /// The number of matches up to the last snapshot.
    matches_told: u64,
}

impl Snapshots {
    /// Prepares snapshots of armed rings. The worker gets its jobs from the receiver, and resets the flag when it has
    /// written one.
    pub fn new(
        what: request::Snapshots,
        session: Arc<Session>,
        event: Option<MatchEvent>,
        drain: &Drain,
    ) -> (Snapshots, Receiver<Job>, Arc<AtomicBool>) {
        let (jobs, receiver) = channel();
        let is_busy = Arc::new(AtomicBool::new(false));
        let armed = drain.armed();
        let bytes: usize = armed.overwriting.iter().map(|of_cpu| of_cpu.ring.bytes()).sum();
        let snapshots = Snapshots {
            what,
            event,
            match_ids: armed.matches.iter().map(|event| event.id()).collect(),
            journal: Journal::new((bytes / JOURNAL_SHARE).max(JOURNAL_MIN), KnownTasks::new(session.processes.as_deref())),
            session,
            marks: vec![VecDeque::new(); armed.overwriting.len()],
            jobs,
            is_busy: Arc::clone(&is_busy),
            due: None,
            taken: 0,
            taken_for_matches: 0,
            last_match: None,
            is_reporting: true,
            matches_told: 0,
        };
        (snapshots, receiver, is_busy)
    }

    /// Takes a snapshot as soon as the worker can write it, because SIGUSR2 arrived.
    pub fn ask(&mut self) {
        self.due = Some(Cause::Signal);
    }

    /// Keeps what a round says about tasks.
    fn add(&mut self, drain: &Drain, mut round: Round) -> anyhow::Result<()> {
        let started = round.started;
        // Each snapshot has those of its end.
        round.synthesized.retain(|(_, fact)| !dump::is_in_flight(fact));
        let matches = self.journal.add(&self.session.events, &self.match_ids, round);
        if let Some(first) = matches.first().filter(|_| self.is_reporting) {
            self.is_reporting = false;
            drain.armed().report_matches(false)?;
            self.matched(first);
        }
        self.note_progress(drain, started);
        Ok(())
    }

    fn matched(&mut self, found: &Match) {
        self.last_match = Some(clock::now());
        let call = matched::describe(found, self.event.as_ref().and_then(|event| event.format.as_ref()), self.session.abi);
        self.due.get_or_insert(Cause::Match { call, others: None });
    }

    /// Notes how far the rings have come, and gives up what is older than what one of them still has.
    fn note_progress(&mut self, drain: &Drain, now: Time) {
        let mut until = Time(0);
        for (of_cpu, marks) in drain.armed().overwriting.iter().zip(&mut self.marks) {
            let (written, size) = (of_cpu.ring.written(), of_cpu.ring.bytes() as u64);
            if marks.back().is_none_or(|(_, before)| written - before >= size / MARKS) {
                marks.push_back((now, written));
            }
            // What was written before a mark that is a ring's size behind is overwritten.
            while marks.get(1).is_some_and(|(_, at)| at + size <= written) {
                marks.pop_front();
            }
            until = until.max(marks.front().filter(|(_, at)| at + size <= written).map_or(Time(0), |(time, _)| *time));
        }
        self.journal.fold(&self.session.events, until);
    }

    /// Lets the kernel report matches again, when the worker has written the last snapshot and a second has passed.
    fn report_again(&mut self, drain: &mut Drain) -> anyhow::Result<()> {
        let is_resting = self.last_match.is_some_and(|last| clock::now().since(last) < INTERVAL);
        if self.is_reporting || self.what.on.is_none() || is_resting || self.due.is_some() || self.is_busy.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.taken_for_matches < self.what.max {
            self.is_reporting = true;
            drain.armed().report_matches(true)?;
        }
        Ok(())
    }

    /// Takes the snapshot that is asked for, if the worker is not writing another one.
    fn take_due(&mut self, drain: &mut Drain) -> anyhow::Result<()> {
        if self.is_busy.load(Ordering::Acquire) {
            return Ok(());
        }
        let Some(cause) = self.due.take() else { return Ok(()) };
        self.take(drain, cause)
    }

    fn take(&mut self, drain: &mut Drain, cause: Cause) -> anyhow::Result<()> {
        // Every record up to this time is in the copies: it is there already, or its writing has begun, and is over
        // after the barrier.
        let end = clock::now();
        let in_progress = NESTED * (RECORD_MAX + drain.armed().stack_bytes);
        let first: Vec<_> = drain.armed().overwriting.iter().map(|of_cpu| of_cpu.ring.copy(0, in_progress)).collect();
        barrier::wait_for_all_cpus();
        let copy = |(of_cpu, copied): (&crate::arm::OverwritingCpuRing, _)| {
            CopiedRing::new(of_cpu.cpu, copied, |since| of_cpu.ring.copy(since, in_progress))
        };
        let rings = drain.armed().overwriting.iter().zip(first).map(copy).collect();
        drain.synthesize_pending()?;
        let mut round = drain.round();
        let in_flight = round.synthesized.extract_if(.., |(_, fact)| dump::is_in_flight(fact)).collect();
        self.add(drain, round)?;
        let calls = drain.armed().calls_begun();
        let matches = drain.armed().calls_matched();
        let cause = match cause {
            Cause::Match { call, .. } => {
                self.taken_for_matches += 1;
                Cause::Match { call, others: matches.map(|all| all.saturating_sub(self.matches_told + 1)) }
            }
            other => other,
        };
        self.matches_told = matches.unwrap_or_default();
        self.taken += 1;
        self.is_busy.store(true, Ordering::Release);
        let job = Job { end, cause, journal: self.journal.clone(), rings, in_flight, calls };
        self.jobs.send(job).map_err(|_| anyhow::anyhow!("the thread that writes snapshots has ended"))?;
        if self.taken_for_matches == self.what.max && self.last_match.is_some() {
            self.say_enough(drain);
        }
        Ok(())
    }

    /// Says that no further snapshot will be taken because of a match.
    fn say_enough(&mut self, drain: &mut Drain) {
        self.last_match = None;
        let text = format!(
            "{} snapshots were taken because calls satisfied --snapshot-on: further ones are only counted (--snapshot-max); SIGUSR2 still takes \
             snapshots",
            self.what.max
        );
        drain.notice(NoticeCode::SnapshotsEnough, text);
    }
}

/// Blocks the signals that a trace waits for.
///
/// # Errors
/// The errors of signalfd(2).
pub fn block_signals(request: &request::Trace) -> io::Result<()> {
    match request.recording.as_ref().is_some_and(|recording| recording.snapshots.is_some()) {
        true => interrupt::block_signals_and_usr2(),
        false => interrupt::block_signals(),
    }
}

/// Prepares snapshots, if they are asked for: what the main thread needs for them, and what the worker needs.
pub fn prepare(
    request: &request::Trace,
    plan: &Plan,
    session: &Arc<Session>,
    tracefs: &Tracefs,
    drain: &Drain,
) -> Option<(Snapshots, SnapshotWriter)> {
    let recording = request.recording.as_ref()?;
    let what = recording.snapshots.clone()?;
    let event = plan.snapshots.as_ref().and_then(|snapshots| snapshots.matches.clone());
    let (snapshots, jobs, is_busy) = Snapshots::new(what, Arc::clone(session), event, drain);
    let writer = SnapshotWriter {
        path: recording.path.clone(),
        head: record::head((request, recording), plan, session, tracefs),
        session: Arc::clone(session),
        cgroups: plan.cgroups,
        is_quiet: request.run.quiet,
        jobs,
        is_busy,
    };
    Some((snapshots, writer))
}

impl Run<'_> {
    /// Returns whether the rings are overwritten, and the worker writes nothing but snapshots.
    pub(super) fn takes_snapshots(&self) -> bool {
        self.plan.snapshots.is_some()
    }

    /// Reads the side band, and takes the snapshot that is due. Returns true if there were records.
    pub(super) fn snapshot_round(&mut self) -> anyhow::Result<bool> {
        let Some(snapshots) = &mut self.snapshots else { return Ok(false) };
        let round = self.drain.round();
        let had = round.bytes() > 0;
        snapshots.add(&self.drain, round)?;
        snapshots.take_due(&mut self.drain)?;
        snapshots.report_again(&mut self.drain)?;
        if !had {
            self.report_other_programs();
        }
        Ok(had)
    }

    /// Takes the last snapshots: one that is still due, and that of the end, if it is asked for. Says how many there
    /// are.
    pub(super) fn end_snapshots(&mut self) -> anyhow::Result<()> {
        let Some(mut snapshots) = self.snapshots.take() else { return Ok(()) };
        let round = self.drain.round();
        snapshots.add(&self.drain, round)?;
        let due = snapshots.due.take().or_else(|| snapshots.what.at_end.then_some(Cause::End));
        if let Some(cause) = due {
            snapshots.take(&mut self.drain, cause)?;
        }
        if !self.request.run.quiet {
            let matches = self.drain.armed().calls_matched().filter(|_| snapshots.what.on.is_some());
            let matches = matches.map_or(String::new(), |calls| format!("; {calls} calls satisfied --snapshot-on"));
            let text = match snapshots.taken {
                0 => "no snapshot was taken".to_owned(),
                1 => "1 snapshot was taken".to_owned(),
                count => format!("{count} snapshots were taken"),
            };
            say!("rtrace: {text}{matches}");
        }
        Ok(())
    }

    /// Says how a snapshot is asked for.
    pub(super) fn say_how_to_ask(&self) {
        if self.snapshots.is_some() && !self.request.run.quiet {
            say!("rtrace: recording in memory; kill -USR2 {} takes a snapshot", std::process::id());
        }
    }
}
