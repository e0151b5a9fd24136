//! Writes snapshots: the part of the worker.

use super::name;
use crate::bpf::record::{CallRecord, RecordKind};
use crate::event::{Notice, NoticeCode, Synthesized, TaskId, Time};
use crate::kernel::remote_files::Guarded;
use crate::run::record::{self, Head};
use crate::run::recorder::Recorder;
use crate::say;
use crate::session::{EventTable, Role, Session};
use crate::snapshot::{Content, Entry, Journal, KnownTasks, RingRecords, rounds};
use crate::source::Input;
use crate::source::files::LiveNames;
use crate::source::proc_reader::TaskReader;
use crate::source::record::{Body, Sample};
use crate::sys::ring::Copied;
use crate::text::os_error::without_error_numbers;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

/// Why a snapshot is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// SIGUSR2.
    Signal,
    /// A call satisfied `--snapshot-on`.
    Match {
        /// What is known of it.
        call: String,
        /// How many others did since the snapshot before, if that is known.
        others: Option<u64>,
    },
    /// The trace ended.
    End,
}

/// A copied ring.
#[derive(Debug)]
pub struct CopiedRing {
    cpu: u32,
    bytes: Vec<u8>,
    is_cut: bool,
    /// More was written after the first copy than the ring holds, so that the copy may end earlier than the others.
    is_left_behind: bool,
}

impl CopiedRing {
    /// Joins the first copy of a ring with what was written since. `copy` copies what was written after a number of
    /// bytes.
    pub fn new(cpu: u32, first: Copied, copy: impl Fn(u64) -> Copied) -> CopiedRing {
        let later = copy(first.written);
        let is_left_behind = later.is_cut;
        let mut bytes = if is_left_behind { Vec::new() } else { later.bytes };
        bytes.extend(first.bytes);
        CopiedRing { cpu, bytes, is_cut: first.is_cut, is_left_behind }
    }
}

/// Returns whether a fact describes a call in flight. In a snapshot, such facts stand at its end.
pub fn is_in_flight(fact: &Synthesized) -> bool {
    matches!(fact, Synthesized::InFlight { .. })
}

/// A snapshot that is to be written.
#[derive(Debug)]
pub struct Job {
    /// When it ends.
    pub end: Time,
    /// Why it is taken.
    pub cause: Cause,
    /// The records and facts about tasks.
    pub journal: Journal,
    /// The copies of the rings.
    pub rings: Vec<CopiedRing>,
    /// The calls in flight at its end or shortly after it.
    pub in_flight: Vec<(Time, Synthesized)>,
    /// The number of calls that had begun by then, since the trace began.
    pub calls: u64,
}

/// The writer of snapshots.
#[derive(Debug)]
pub struct SnapshotWriter {
    /// The beginning of the names of the files.
    pub path: PathBuf,
    /// What each file begins with.
    pub head: Head,
    /// The session of the trace.
    pub session: Arc<Session>,
    /// The cgroups of tasks are followed.
    pub cgroups: bool,
    /// Without messages on stderr.
    pub is_quiet: bool,
    /// The snapshots to write.
    pub jobs: Receiver<Job>,
    /// Reset after each of them.
    pub is_busy: Arc<AtomicBool>,
}

impl SnapshotWriter {
    /// Writes snapshots until no more can come. `files` opens the files that stacks need, as for [`Recorder::new`], and
    /// `kernel_names` has the kernel's symbols, if there are any.
    pub fn write_all(self, files: Option<(Guarded, bool)>, mut kernel_names: Option<&mut LiveNames>) {
        while let Ok(job) = self.jobs.recv() {
            let path = name::unused(&self.path);
            if let Err(error) = self.write(job, &path, files.clone(), kernel_names.as_deref_mut()) {
                say!("rtrace: {}", without_error_numbers(&format!("{error:#}")));
            }
            self.is_busy.store(false, Ordering::Release);
        }
    }

    fn write(&self, job: Job, path: &Path, files: Option<(Guarded, bool)>, kernel_names: Option<&mut LiveNames>) -> anyhow::Result<()> {
        let table = &self.session.events;
        let Job { mut end, cause, journal, rings, in_flight, calls } = job;
        let left_behind: Vec<bool> = rings.iter().map(|ring| ring.is_left_behind).collect();
        let mut rings: Vec<RingRecords> =
            rings.into_iter().map(|ring| RingRecords::new(table, ring.cpu, ring.bytes, ring.is_cut)).collect();
        // Nothing may be missing inside: where a ring's copy ends early, the snapshot does.
        let ends = rings.iter().zip(left_behind).filter(|(_, is_left_behind)| *is_left_behind).filter_map(|(ring, _)| ring.span());
        end = ends.map(|(_, newest)| newest).fold(end, Time::min);
        let begin = rings.iter().filter_map(RingRecords::complete_since).max().max(journal.begin());
        rings.iter_mut().for_each(|ring| ring.keep(begin, end));
        let unreadable: u64 = rings.iter().map(RingRecords::unreadable).sum();
        let (mut tasks, entries) = journal.since(table, begin);
        drop(journal);
        let seen = Seen::of(table, &rings);
        self.complete(&mut tasks, seen.tasks, &entries, begin.unwrap_or_default());
        let first = rings.iter().filter_map(RingRecords::span).map(|(oldest, _)| oldest).min().unwrap_or(end);
        let sentence = sentence(&cause, end.since(first), seen.calls, calls);
        let notice = Notice { code: NoticeCode::Snapshot, text: sentence.clone() };
        let mut after: Vec<(Time, Synthesized)> = in_flight.into_iter().filter_map(|(_, fact)| Some((end, at_end(fact, end)?))).collect();
        after.push((end, Synthesized::Notice(notice)));
        let processes = tasks.processes();
        let content = Content { begin, end, before: tasks.facts(), entries, rings, after };
        let head = self.head.clone().with_processes(processes);
        let file = record::create(path)?;
        let mut recorder = Recorder::new(Some(head.begin(file, path)?), files, kernel_names);
        rounds(content, |round| recorder.input(&Input::Round(round)));
        let (totals, failed) = recorder.finish();
        if let Some(failed) = failed {
            return Err(failed.context(format!("the snapshot {}", path.display())));
        }
        let bytes = totals.map_or(0, |totals| totals.bytes);
        let unreadable = if unreadable > 0 { format!("; {unreadable} records could not be read") } else { String::new() };
        if !self.is_quiet {
            say!("rtrace: {}: {sentence} ({bytes} bytes{unreadable})", path.display());
        }
        Ok(())
    }

    /// Reads from /proc what is not known of the tasks that made these calls, or that are known otherwise, if they are
    /// still alive. Of tasks that changed their comm or their program during the snapshot, that is not known any more.
    fn complete(&self, tasks: &mut KnownTasks, seen: BTreeSet<TaskId>, entries: &[Arc<Entry>], time: Time) {
        let unknown = seen.into_iter().filter(|task| tasks.get(*task).is_none());
        let mut wanted: BTreeSet<TaskId> = unknown.chain(tasks.incomplete()).collect();
        for entry in entries {
            entry.body(&self.session.events, |body| match body {
                Body::Comm { task, .. } | Body::Fork { child: task, .. } => _ = wanted.remove(task),
                _ => {}
            });
        }
        let mut reader = TaskReader::new(self.cgroups);
        for task in wanted {
            if let Some(fact) = reader.read(task).filter(|fact| matches!(fact, Synthesized::Task { task: read, .. } if *read == task)) {
                tasks.add_missing(time, &fact);
            }
        }
    }
}

/// Returns the fact about a call in flight as that of a call of which a snapshot has no other record; `None` if the
/// call began after the snapshot's end.
fn at_end(fact: Synthesized, end: Time) -> Option<Synthesized> {
    let Synthesized::InFlight { task, call, stack, copies, .. } = fact else { return None };
    let is_in_flight = CallRecord::parse(&call).is_some_and(|call| call.start <= end);
    is_in_flight.then_some(Synthesized::InFlight { task, call, last: true, stack, copies })
}

/// What the records of the rings are about.
#[derive(Debug, Default)]
struct Seen {
    tasks: BTreeSet<TaskId>,
    /// The calls that began, or of which there is a record.
    calls: u64,
}

impl Seen {
    fn of(table: &EventTable, rings: &[RingRecords]) -> Seen {
        let mut seen = Seen::default();
        let mut last = None;
        for ring in rings {
            ring.each(|frame| {
                let Ok(Some(stamp)) = frame.stamp(table) else { return };
                let Ok(record) = frame.read(table, stamp, ring.cpu) else { return };
                if last != Some(record.task) {
                    last = Some(record.task);
                    seen.tasks.insert(record.task);
                }
                if let Body::Sample(sample) = record.body {
                    seen.calls += u64::from(begins_call(table, &sample));
                }
            });
        }
        seen
    }
}

fn begins_call(table: &EventTable, sample: &Sample) -> bool {
    let role = table.get(sample.event).map(|spec| spec.role);
    match role {
        Some(Role::BpfCall) => CallRecord::parse(sample.raw)
            .is_some_and(|call| matches!(call.kind, RecordKind::Returned | RecordKind::Never | RecordKind::Unseen)),
        Some(role) => role.begins_calls(),
        None => false,
    }
}

/// Returns what a snapshot has and why it was taken.
fn sentence(cause: &Cause, span: u64, calls: u64, all: u64) -> String {
    let cause = match cause {
        Cause::Signal => "on SIGUSR2".to_owned(),
        Cause::End => "at the end of the trace".to_owned(),
        Cause::Match { call, others: None | Some(0) } => format!("because of {call}"),
        Cause::Match { call, others: Some(others) } => {
            format!("because of {call} ({others} other calls satisfied --snapshot-on as well)")
        }
    };
    let seconds = span as f64 / 1e9;
    format!("a snapshot of {calls} calls in {seconds:.3} s, of {all} since the trace began, taken {cause}")
}
