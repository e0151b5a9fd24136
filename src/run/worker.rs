//! The worker thread: it merges rounds, pairs and decodes records, and prints lines while the main thread drains the
//! rings.

use super::verdict::Selection;
use crate::engine::Engine;
use crate::engine::view::View;
use crate::event::{Event, Notice, NoticeCode, Verdict};
use crate::gate::{self, Gate};
use crate::interrupt::{self, Waiter};
use crate::kernel::remote_files::Guarded;
use crate::plan::{self, Plan};
use crate::request::{Graphs, Target, TaskSelection, Trace};
use crate::say;
use crate::session::Session;
use crate::show::{Mode, Outcomes, Style};
use crate::sink::call_table::CallTable;
use crate::sink::graph::Graph;
use crate::sink::interleaved::Interleaved;
use crate::sink::output::{Output, SharedOutput, is_quiet_end};
use crate::sink::stack_summary::StackSummary;
use crate::sink::summary::Summary;
use crate::sink::text::Text;
use crate::sink::{Sink, TraceResult};
use crate::source::Input;
use crate::source::files::{LiveMappings, LiveNames};
use crate::source::proc_reader::LiveProcReader;
use crate::source::queue::Receiver;
use crate::stack::name::Names;
use crate::stack::naming::{LibraryNames, Naming, Wanted};
use crate::stack::symbols::Options;
use crate::stack::symbols::debuginfod::Debuginfod;
use crate::sys::{clock, rights};
use crate::task::ProcReader;
use anyhow::Context;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the end of a trace waits for symbols that are being downloaded.
const NAMES_WAIT: Duration = Duration::from_secs(60);

/// The running worker.
#[derive(Debug)]
pub struct Worker {
    begin: mpsc::Sender<(Arc<Session>, gate::Settings)>,
    thread: JoinHandle<Outcome>,
}

/// The result of a trace.
#[derive(Debug)]
pub struct Outcome {
    /// What the trace has, what it lacks, and why.
    pub verdict: Verdict,
    /// The error of the output.
    pub failed: Option<anyhow::Error>,
    /// The CPU time of the worker.
    pub cpu: Duration,
}

impl Outcome {
    /// Returns whether the output was written as long as it had a reader. This needs no message, unless the user
    /// requests one.
    pub fn is_quiet(&self) -> bool {
        let error = self.failed.as_ref().map(|failed| failed.downcast_ref::<io::Error>());
        error.is_none_or(|error| error.is_some_and(is_quiet_end))
    }
}

/// Starts the worker before the events are opened, so that its thread can be excluded from a system-wide trace. It
/// waits for [`Worker::begin`], and ends with the queue.
///
/// # Errors
/// The thread or an output file cannot be created.
pub fn start(
    request: &Trace,
    plan: &Plan,
    output: Output,
    rounds: Receiver,
    enough: Arc<AtomicBool>,
    files: Guarded,
) -> anyhow::Result<Worker> {
    let (begin, session) = mpsc::channel::<(Arc<Session>, gate::Settings)>();
    let (show, pending_after, selection) = (request.show.clone(), plan.pending_after, Selection::of(request));
    let color = output.color(request.output.color);
    let interleaved = is_interleaved(request).then(|| output.is_watched());
    let alive = matches!(request.target, Target::Command(_)).then_some(1);
    let graph = Graph::new(&request.graphs)?;
    let graphs = request.graphs.clone();
    let kernel_frames = plan.events.iter().any(|event| event.stack.kernel_chain);
    let live_names = if kernel_frames { LiveNames::read_ahead(files.clone()) } else { LiveNames::new(files.clone()) };
    let receive = move || {
        rights::drop_in_worker();
        session.recv()
    };
    let work = move || match receive() {
        Ok((session, shown)) => {
            let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
            if let Some(graph) = graph {
                sinks.push(Box::new(graph));
            }
            let shared = output.shared();
            // In JSON, this sink writes the first and the last object, and the objects of a summary stand between them.
            if matches!(show.mode, Mode::Lines | Mode::Both) || show.style == Style::Json {
                let text = Text::new(&show, color, shared.clone());
                match interleaved {
                    Some(is_watched) => sinks.push(Box::new(Interleaved::new(text, &show.strace, is_watched, alive))),
                    None => sinks.push(Box::new(text)),
                }
            }
            let has_summary = matches!(show.mode, Mode::Summary | Mode::Both);
            if has_summary && show.style == Style::Strace {
                sinks.push(Box::new(CallTable::new(show.strace.summary.clone(), show.mode == Mode::Both, shared.clone())));
            } else if has_summary {
                sinks.push(Box::new(Summary::new(&show, shared.clone())));
            }
            if let Some(paths) = StackSummary::new(&graphs, show.style, shared.clone()) {
                sinks.push(Box::new(paths));
            }
            let naming = naming(&graphs, live_names, files);
            let mut work = Work::new(session, pending_after, (shown, selection), sinks, shared, enough, naming);
            work.deferred = graphs.names_at_end.then(Vec::new);
            work.process_rounds(&rounds)
        }
        // Arming failed, which the main thread reports.
        Err(mpsc::RecvError) => Outcome { verdict: Verdict::default(), failed: None, cpu: Duration::ZERO },
    };
    let thread = std::thread::Builder::new().name("rtrace-worker".to_owned()).spawn(work).context("cannot create the worker thread")?;
    Ok(Worker { begin, thread })
}

/// Returns whether lines are in the order of strace, in which a call has two lines if something else happens before it
/// returns. Of a single task, nothing else happens. Names of frames are known only when a call ends, and strace shows a
/// call whose outcome decides in one line, too.
pub fn is_interleaved(request: &Trace) -> bool {
    let (what, show) = (&request.what, &request.show);
    let has_several = match &request.target {
        Target::Command(_) => !what.no_inherit,
        Target::Running { tasks: TaskSelection::Pids(_), .. } => true,
        Target::Running { .. } => false,
    };
    let has_lines = show.style == Style::Strace && matches!(show.mode, Mode::Lines | Mode::Both) && !request.output.separately;
    has_lines && has_several && show.pending != Some(false) && show.outcomes == Outcomes::all() && !plan::has_stacks(request)
}

/// Creates the symbolization of frames as the user requested it.
fn naming(graphs: &Graphs, live: LiveNames, files: Guarded) -> Naming<Guarded> {
    let wanted = Wanted { lines: graphs.lines, inlined: graphs.inlined };
    let options = Options { debuginfod: Debuginfod::from_environment(), ..Options::default() };
    Naming::new(files, options, Box::new(live), wanted)
}

impl Worker {
    /// Sends the session and the gate's settings to the worker, which then starts to work.
    pub fn begin(&self, session: Arc<Session>, shown: gate::Settings) {
        // If the worker has ended, its error is returned by `join`.
        let _ = self.begin.send((session, shown));
    }

    /// Waits until all records that were sent are printed.
    ///
    /// # Errors
    /// The worker panicked.
    pub fn join(self) -> anyhow::Result<Outcome> {
        drop(self.begin);
        self.thread.join().map_err(|_| anyhow::anyhow!("the worker thread panicked: this is a bug in rtrace"))
    }
}

struct Work {
    session: Arc<Session>,
    engine: Engine,
    gate: Gate,
    selection: Selection,
    sinks: Vec<Box<dyn Sink>>,
    naming: Naming<Guarded>,
    /// The events that are shown when all symbols are available (`--resolve-at-end`).
    deferred: Option<Vec<Event>>,
    proc: LiveProcReader,
    /// Set when no more records are needed.
    enough: Arc<AtomicBool>,
    /// The error after which the output is no longer written.
    failed: Option<io::Error>,
    /// The number of selected calls since that error.
    unwritten_calls: u64,
    output: SharedOutput,
}

impl Work {
    fn new(
        session: Arc<Session>,
        pending_after: Option<u64>,
        (gate, selection): (gate::Settings, Selection),
        sinks: Vec<Box<dyn Sink>>,
        output: SharedOutput,
        enough: Arc<AtomicBool>,
        naming: Naming<Guarded>,
    ) -> Work {
        let engine = Engine::new(&session, pending_after, Box::new(LiveMappings(naming.files())));
        Work {
            session,
            engine,
            gate: Gate::new(gate),
            selection,
            sinks,
            naming,
            deferred: None,
            proc: LiveProcReader::default(),
            enough,
            failed: None,
            unwritten_calls: 0,
            output,
        }
    }

    /// Processes rounds until the queue ends. The queue is emptied even after a failed write: the main thread must be
    /// able to end, and the account must be complete.
    fn process_rounds(&mut self, rounds: &Receiver) -> Outcome {
        let mut events = Vec::new();
        while let Some(round) = rounds.pop() {
            self.pass(Input::Round(round), &mut events);
            self.answer(&mut events);
            rounds.recycle(self.engine.spent());
            self.emit(&mut events);
        }
        self.engine.end(&self.session, &mut events);
        self.emit(&mut events);
        let verdict = self.end();
        let finished = self.output.lock().unwrap_or_else(PoisonError::into_inner).finish();
        Outcome { verdict, failed: self.failed.take().map(Into::into).or(finished.err()), cpu: clock::of_thread() }
    }

    /// Passes input to the engine. This function is the tap: all that the events follow from passes here, in order.
    fn pass(&mut self, input: Input, events: &mut Vec<Event>) {
        self.engine.input(&self.session, input, events);
    }

    /// Performs the reads of /proc that the engine asks for, and passes the answers to it.
    fn answer(&mut self, events: &mut Vec<Event>) {
        let reads = self.engine.take_reads();
        if !reads.is_empty() {
            let answers = self.proc.answer(&reads);
            self.pass(Input::Answers(answers), events);
        }
    }

    /// Shows the events that are due.
    fn emit(&mut self, events: &mut Vec<Event>) {
        self.show(events);
        self.engine.gone().into_iter().for_each(|pid| self.naming.end(pid));
        self.engine.recycle(events);
        if let Some(why) = self.naming.take_problem() {
            self.engine.notice(say::notice(NoticeCode::NamesMissing, why), events);
            self.show(events);
            self.engine.recycle(events);
        }
        if self.gate.is_full() || self.failed.is_some() {
            self.enough.store(true, Ordering::Relaxed);
        }
    }

    fn show(&mut self, events: &mut Vec<Event>) {
        let Work { session, engine, gate, sinks, naming, deferred, failed, unwritten_calls, .. } = self;
        let names = LibraryNames { naming, library: engine.library() };
        let view = View { session, tasks: engine.tasks(), now: engine.now(), names: &names };
        let Some(deferred) = deferred else {
            for event in events.iter_mut() {
                if gate.lets_through(event, &view) {
                    pass_to_sinks(sinks, event, &view, failed, unwritten_calls);
                }
            }
            if failed.is_none() {
                *failed = sinks.iter_mut().try_for_each(|sink| sink.tick(&view)).err();
            }
            return;
        };
        for mut event in events.drain(..) {
            if gate.lets_through(&mut event, &view) {
                // A symbol that is requested now is available at the end.
                event.kind.stack().into_iter().for_each(|stack| names.frames(event.task.pid, stack, &mut |_| {}));
                event.kind.caller().into_iter().for_each(|caller| _ = names.function(event.task.pid, &caller.frame));
                deferred.push(event);
            }
        }
    }

    /// Shows the deferred events, ends the sinks, and returns the verdict.
    fn end(&mut self) -> Verdict {
        if self.deferred.is_some() && self.naming.is_waiting() {
            let until = Instant::now() + NAMES_WAIT;
            // Symbols that are not available by then are not shown.
            let _ = interrupt::patiently(Waiter::Worker, |step| {
                self.naming.wait(until.min(Instant::now() + step));
                (!self.naming.is_waiting() || Instant::now() >= until).then_some(())
            });
        }
        let Work { session, engine, gate, selection, sinks, naming, deferred, failed, unwritten_calls, .. } = self;
        let names = LibraryNames { naming, library: engine.library() };
        let view = View { session, tasks: engine.tasks(), now: engine.now(), names: &names };
        for event in deferred.take().unwrap_or_default() {
            pass_to_sinks(sinks, &event, &view, failed, unwritten_calls);
        }
        let mut verdict = selection.verdict(session, engine.ledger(), gate);
        verdict.unanswered_files = naming.files().unanswered();
        let result = TraceResult { ledger: engine.ledger(), verdict: &verdict };
        let ended = end_sinks(sinks, &result, &view);
        *failed = failed.take().or(ended.err());
        // The final output may have stacks that needed further files.
        verdict.unanswered_files = naming.files().unanswered();
        if failed.is_some() {
            verdict.give_up(*unwritten_calls + sinks.iter().map(|sink| sink.unwritten()).max().unwrap_or_default());
        }
        verdict
    }
}

/// Lets the sinks write their final output. If a sink returns a notice about it, all sinks get that notice. A sink
/// whose output cannot be written does not keep the others from writing theirs; the first error is returned.
fn end_sinks(sinks: &mut [Box<dyn Sink>], result: &TraceResult, view: &View) -> io::Result<()> {
    let mut done = each_sink(sinks, |sink| sink.end(result, view));
    let said: Vec<Notice> = sinks.iter_mut().filter_map(|sink| sink.said()).collect();
    for notice in said {
        let event = Event::of_notice(view.now, notice);
        done = done.and(each_sink(sinks, |sink| sink.event(&event, view)));
    }
    let finished = each_sink(sinks, |sink| sink.finish(result, view));
    done.and(finished)
}

/// Calls a function for every sink, and returns the first error.
fn each_sink(sinks: &mut [Box<dyn Sink>], mut call: impl FnMut(&mut dyn Sink) -> io::Result<()>) -> io::Result<()> {
    sinks.iter_mut().map(|sink| call(sink.as_mut())).fold(Ok(()), io::Result::and)
}

/// Passes an event to the sinks, unless a write has failed.
fn pass_to_sinks(sinks: &mut [Box<dyn Sink>], event: &Event, view: &View, failed: &mut Option<io::Error>, unwritten_calls: &mut u64) {
    match failed {
        Some(_) => *unwritten_calls += event.kind.calls(),
        None => *failed = sinks.iter_mut().try_for_each(|sink| sink.event(event, view)).err(),
    }
}
