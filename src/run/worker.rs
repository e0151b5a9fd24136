//! The worker thread: it records rounds, or merges them, pairs and decodes records, and prints lines, while the main
//! thread drains the rings.

use super::recorder::Recorder;
use super::sinks;
use super::snapshots::dump::SnapshotWriter;
use super::verdict::Selection;
use super::work::{Outcome, Shown, Work};
use crate::engine::Engine;
use crate::gate;
use crate::kernel::remote_files::Guarded;
use crate::plan::{Plan, sums};
use crate::recording::Writer;
use crate::request::{Graphs, Trace};
use crate::session::Session;
use crate::source::files::{LiveMappings, LiveNames};
use crate::source::proc_reader::LiveProcReader;
use crate::source::queue::{Popped, Receiver};
use crate::source::{Input, Round};
use crate::stack::naming::{Naming, Wanted};
use crate::stack::symbols::Options;
use crate::stack::symbols::debuginfod::Debuginfod;
use crate::sys::{clock, rights};
use anyhow::Context;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// The running worker.
#[derive(Debug)]
pub struct Worker {
    begin: mpsc::Sender<Begin>,
    thread: JoinHandle<Outcome>,
}

/// What the worker needs besides the rounds, once the events are armed.
#[derive(Debug)]
pub struct Begin {
    /// The armed events, the machine and the tasks.
    pub session: Arc<Session>,
    /// Which events are shown.
    pub shown: gate::Settings,
    /// The recording of the trace, if there is one.
    pub recording: Option<Writer>,
    /// The writer of snapshots, if they are recorded instead of the trace.
    pub snapshots: Option<SnapshotWriter>,
}

/// Starts the worker before the events are opened, so that its thread can be excluded from a system-wide trace. It
/// waits for [`Worker::begin`], and ends with the queue. Without sinks, it only records.
///
/// # Errors
/// The thread cannot be created.
pub fn start(
    request: &Trace,
    plan: &Plan,
    sinks: Option<sinks::Planned>,
    rounds: Receiver,
    enough: Arc<AtomicBool>,
    files: Guarded,
) -> anyhow::Result<Worker> {
    let (begin, receiver) = mpsc::channel::<Begin>();
    let (pending_after, selection) = (plan.pending_after, Selection::of(request));
    let has_only_numbers = sums::why_records(request).is_none();
    let graphs = request.graphs.clone();
    let kernel_frames = plan.events.iter().any(|event| event.stack.kernel_chain);
    let mut live_names = if kernel_frames { LiveNames::read_ahead(files.clone()) } else { LiveNames::new(files.clone()) };
    let receive = move || {
        rights::drop_in_worker();
        receiver.recv()
    };
    let files_of_recording = plan.maps.then(|| (files.clone(), request.graphs.lines || request.graphs.inlined));
    let files_of_snapshots = files_of_recording.clone();
    let recorder = move |writer, names: &mut LiveNames| Recorder::new(writer, files_of_recording, Some(names).filter(|_| kernel_frames));
    let work = move || match (receive(), sinks) {
        (Ok(Begin { snapshots: Some(snapshots), .. }), _) => {
            snapshots.write_all(files_of_snapshots, Some(&mut live_names).filter(|_| kernel_frames));
            Outcome { cpu: clock::of_thread(), ..Outcome::default() }
        }
        (Ok(Begin { session, shown, recording, .. }), Some(sinks)) => {
            // A recording has the answers to all reads of /proc.
            let is_enough = has_only_numbers && recording.is_none();
            let recorder = recorder(recording, &mut live_names);
            let engine = Engine::new(&session, pending_after, Box::new(LiveMappings(files.clone())));
            let shown = Shown { gate: shown, selection, enough };
            let naming = naming(&graphs, live_names, files);
            let work = Work::new(session, engine, shown, sinks.create(), (naming, Guarded::unanswered));
            let work = work.reading_proc(Box::new(LiveProcReader::default())).deferring(graphs.names_at_end).tallying(is_enough);
            process_rounds(work, &rounds, recorder)
        }
        (Ok(Begin { recording, .. }), None) => record_rounds(&rounds, recorder(recording, &mut live_names), &enough),
        // Arming failed, which the main thread reports.
        (Err(mpsc::RecvError), _) => Outcome::default(),
    };
    let thread = std::thread::Builder::new().name("rtrace-worker".to_owned()).spawn(work).context("cannot create the worker thread")?;
    Ok(Worker { begin, thread })
}

/// Creates the symbolization of frames as the user requested it.
fn naming(graphs: &Graphs, live: LiveNames, files: Guarded) -> Naming<Guarded> {
    let wanted = Wanted { lines: graphs.lines, inlined: graphs.inlined };
    let options = Options { debuginfod: Debuginfod::from_environment(), ..Options::default() };
    Naming::new(files, options, Box::new(live), wanted)
}

/// Waits for the next round, and writes to the recording meanwhile. Returns `None` when the queue ends.
fn next_round(rounds: &Receiver, recorder: &mut Recorder) -> Option<Round> {
    loop {
        match rounds.pop_until(recorder.due()) {
            Popped::Round(round) => return Some(round),
            Popped::Nothing => recorder.write_if_due(),
            Popped::End => return None,
        }
    }
}

/// Processes rounds until the queue ends. The queue is emptied even after a failed write: the main thread must be able
/// to end, and the account must be complete.
fn process_rounds(mut work: Work<Guarded>, rounds: &Receiver, mut recorder: Recorder) -> Outcome {
    let mut events = Vec::new();
    while let Some(round) = next_round(rounds, &mut recorder) {
        let round = Input::Round(round);
        recorder.input(&round);
        if let Some(answers) = work.process(round, &mut events) {
            recorder.input(&answers);
        }
        rounds.recycle(work.spent());
    }
    let shown = work.finish(&mut events);
    let (recorded, failed) = recorder.finish();
    Outcome { failed: shown.failed.or(failed), recorded, cpu: clock::of_thread(), ..shown }
}

/// Writes rounds to the recording until the queue ends. `enough` is set if they cannot be written.
fn record_rounds(rounds: &Receiver, mut recorder: Recorder, enough: &AtomicBool) -> Outcome {
    while let Some(round) = next_round(rounds, &mut recorder) {
        let input = Input::Round(round);
        recorder.input(&input);
        if let Input::Round(mut round) = input {
            round.chunks.iter_mut().for_each(|chunk| chunk.bytes.clear());
            rounds.recycle(round);
        }
        if recorder.has_failed() {
            enough.store(true, Ordering::Relaxed);
        }
    }
    let (recorded, failed) = recorder.finish();
    Outcome { failed, recorded, cpu: clock::of_thread(), ..Outcome::default() }
}

impl Worker {
    /// Sends the worker what it has waited for. It then starts to work.
    pub fn begin(&self, begin: Begin) {
        // If the worker has ended, its error is returned by `join`.
        let _ = self.begin.send(begin);
    }

    /// Waits until all records that were sent are printed and recorded.
    ///
    /// # Errors
    /// The worker panicked.
    pub fn join(self) -> anyhow::Result<Outcome> {
        drop(self.begin);
        self.thread.join().map_err(|_| anyhow::anyhow!("the worker thread panicked: this is a bug in rtrace"))
    }
}
