//! The worker: rounds → events → lines. It merges, pairs, decodes and prints while the other thread empties the rings.

use crate::engine::view::View;
use crate::engine::{Engine, Settings};
use crate::event::Event;
use crate::gate::{self, Account, Gate};
use crate::interrupt::{self, Waiter};
use crate::kernel::elsewhere::Guarded;
use crate::plan::Plan;
use crate::request::{Graphs, Trace};
use crate::say;
use crate::session::Session;
use crate::show::Mode;
use crate::sink::graph::Graph;
use crate::sink::output::{Output, Shared, is_quiet_end};
use crate::sink::stack_summary::StackSummary;
use crate::sink::summary::Summary;
use crate::sink::text::Text;
use crate::sink::{Over, Sink};
use crate::source::files::{LiveMappings, LiveNames};
use crate::source::look::Live;
use crate::source::queue::Receiver;
use crate::stack::name::Names;
use crate::stack::naming::{Named, Naming, Wanted};
use crate::stack::symbols::Options;
use crate::stack::symbols::debuginfod::Debuginfod;
use crate::sys::{clock, rights};
use crate::syscall::ledger::Ledger;
use anyhow::Context;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// So long the end waits for symbols that others fetch.
const NAMES_WAIT: Duration = Duration::from_secs(60);

/// The running worker.
#[derive(Debug)]
pub struct Worker {
    begin: mpsc::Sender<Arc<Session>>,
    thread: JoinHandle<Outcome>,
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    pub session: Arc<Session>,
    pub ledger: Ledger,
    pub account: Account,
    /// Calls that should have been shown, and were not, because the output could not be written any more.
    pub given_up: u64,
    /// Why it could not.
    pub failed: Option<anyhow::Error>,
    /// Files that stacks lead through, and that were not read, because their file systems do not answer.
    pub unanswered: Vec<Vec<u8>>,
    /// CPU time of the worker.
    pub cpu: Duration,
}

impl Outcome {
    /// The output was written as long as somebody wanted it: nothing is to be said, unless the user wants to know.
    pub fn is_quiet(&self) -> bool {
        let error = self.failed.as_ref().map(|failed| failed.downcast_ref::<io::Error>());
        error.is_none_or(|error| error.is_some_and(is_quiet_end))
    }
}

/// Starts the worker before anything is armed, so that its thread can be left out of a system-wide trace. It waits for [`Worker::begin`], and ends when the queue does.
///
/// # Errors
/// No thread can be made.
pub fn start(
    request: &Trace,
    plan: &Plan,
    output: Output,
    rounds: Receiver,
    enough: Arc<AtomicBool>,
    files: Guarded,
) -> anyhow::Result<Worker> {
    let (begin, session) = mpsc::channel::<Arc<Session>>();
    let (show, settings, gate) = (request.show.clone(), plan.engine, plan.gate.clone());
    let color = output.color(request.output.color);
    let graph = Graph::new(&request.graphs)?;
    let graphs = request.graphs.clone();
    let kernel_frames = plan.events.iter().any(|event| event.stack.kernel_chain);
    let live_names = if kernel_frames { LiveNames::read_ahead(files.clone()) } else { LiveNames::new(files.clone()) };
    let receive = move || {
        rights::of_worker();
        session.recv()
    };
    let work = move || match receive() {
        Ok(session) => {
            let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
            if let Some(graph) = graph {
                sinks.push(Box::new(graph));
            }
            let shared = output.shared();
            if matches!(show.mode, Mode::Lines | Mode::Both) {
                sinks.push(Box::new(Text::new(&show, color, shared.clone())));
            }
            if matches!(show.mode, Mode::Summary | Mode::Both) {
                sinks.push(Box::new(Summary::new(&show, shared.clone())));
            }
            if let Some(paths) = StackSummary::new(&graphs, shared.clone()) {
                sinks.push(Box::new(paths));
            }
            let mut work = Work::new(session, settings, gate, sinks, shared, enough, naming(&graphs, live_names, files));
            work.later = graphs.names_at_end.then(Vec::new);
            work.all(&rounds)
        }
        // Arming failed; whoever waits for us knows why.
        Err(mpsc::RecvError) => Outcome {
            session: Arc::default(),
            ledger: Ledger::default(),
            account: Account::default(),
            given_up: 0,
            failed: None,
            unanswered: Vec::new(),
            cpu: Duration::ZERO,
        },
    };
    let thread = std::thread::Builder::new().name("rtrace-worker".to_owned()).spawn(work).context("cannot make a thread")?;
    Ok(Worker { begin, thread })
}

/// What frames are called, as the user wants it.
fn naming(graphs: &Graphs, live: LiveNames, files: Guarded) -> Naming<Guarded> {
    let wanted = Wanted { lines: graphs.lines, inlined: graphs.inlined };
    let options = Options { debuginfod: Debuginfod::from_environment(), ..Options::default() };
    Naming::new(files, options, Box::new(live), wanted)
}

impl Worker {
    /// Tells what was armed.
    pub fn begin(&self, session: Arc<Session>) {
        // A worker that is gone says why when it is joined.
        let _ = self.begin.send(session);
    }

    /// Waits until everything that was sent is printed.
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
    sinks: Vec<Box<dyn Sink>>,
    naming: Naming<Guarded>,
    /// What is shown when all names are there (`--resolve-at-end`).
    later: Option<Vec<Event>>,
    look: Live,
    /// Set when no more is wanted.
    enough: Arc<AtomicBool>,
    /// Why the output cannot be written any more.
    failed: Option<io::Error>,
    /// Calls that were let through since then.
    unheard: u64,
    output: Shared,
}

impl Work {
    fn new(
        session: Arc<Session>,
        settings: Settings,
        gate: gate::Settings,
        sinks: Vec<Box<dyn Sink>>,
        output: Shared,
        enough: Arc<AtomicBool>,
        naming: Naming<Guarded>,
    ) -> Work {
        let engine = Engine::new(&session, settings, Box::new(LiveMappings(naming.files())));
        Work {
            session,
            engine,
            gate: Gate::new(gate),
            sinks,
            naming,
            later: None,
            look: Live::default(),
            enough,
            failed: None,
            unheard: 0,
            output,
        }
    }

    /// Everything until the queue ends. The queue is emptied even when the output fails, because the other thread must not be kept from its end, and the account is to be complete.
    fn all(&mut self, rounds: &Receiver) -> Outcome {
        let mut events = Vec::new();
        while let Some(round) = rounds.pop() {
            self.engine.round(&self.session, round, &mut self.look, &mut events);
            rounds.recycle(self.engine.spent());
            self.give(&mut events);
        }
        self.engine.end(&self.session, &mut events);
        self.give(&mut events);
        self.end();
        let finished = self.output.lock().unwrap_or_else(PoisonError::into_inner).finish();
        let unwritten = self.sinks.iter().map(|sink| sink.unwritten()).max().unwrap_or_default();
        Outcome {
            session: Arc::clone(&self.session),
            ledger: self.engine.ledger().clone(),
            account: self.gate.account(),
            given_up: self.unheard + unwritten,
            failed: self.failed.take().map(Into::into).or(finished.err()),
            unanswered: self.naming.files().unanswered(),
            cpu: clock::of_thread(),
        }
    }

    /// Shows what is due.
    fn give(&mut self, events: &mut Vec<Event>) {
        self.show(events);
        self.say_trouble();
        self.engine.gone().into_iter().for_each(|pid| self.naming.end(pid));
        self.engine.recycle(events);
        if self.gate.is_full() || self.failed.is_some() {
            self.enough.store(true, Ordering::Relaxed);
        }
    }

    fn show(&mut self, events: &mut Vec<Event>) {
        let Work { session, engine, gate, sinks, naming, later, failed, unheard, .. } = self;
        let names = Named { naming, library: engine.library() };
        let view = View { session, tasks: engine.tasks(), now: engine.now(), names: &names };
        let Some(later) = later else {
            for event in events.iter_mut() {
                if gate.lets_through(event, &view) {
                    hand_on(sinks, event, &view, failed, unheard);
                }
            }
            if failed.is_none() {
                *failed = sinks.iter_mut().try_for_each(|sink| sink.tick(&view)).err();
            }
            return;
        };
        for mut event in events.drain(..) {
            if gate.lets_through(&mut event, &view) {
                // Whoever is asked for a name now has it at the end.
                event.what.stack().into_iter().for_each(|stack| names.frames(event.task.pid, stack, &mut |_| {}));
                event.what.caller().into_iter().for_each(|caller| _ = names.function(event.task.pid, &caller.frame));
                later.push(event);
            }
        }
    }

    fn end(&mut self) {
        if self.later.is_some() && self.naming.is_waiting() {
            let until = Instant::now() + NAMES_WAIT;
            // Without the names that are not there by then.
            let _ = interrupt::patiently(Waiter::Worker, |step| {
                self.naming.wait(until.min(Instant::now() + step));
                (!self.naming.is_waiting() || Instant::now() >= until).then_some(())
            });
        }
        let Work { session, engine, gate, sinks, naming, later, failed, unheard, .. } = self;
        let names = Named { naming, library: engine.library() };
        let view = View { session, tasks: engine.tasks(), now: engine.now(), names: &names };
        for event in later.take().unwrap_or_default() {
            hand_on(sinks, &event, &view, failed, unheard);
        }
        if failed.is_none() {
            let over = Over { ledger: engine.ledger(), account: gate.account() };
            *failed = sinks.iter_mut().try_for_each(|sink| sink.end(&over, &view)).err();
        }
    }

    /// Why names are missing, on stderr, where it disturbs no line.
    fn say_trouble(&self) {
        if let Some(why) = self.naming.trouble() {
            say!("rtrace: {why}");
        }
    }
}

/// Gives an event to the sinks, as long as what they write can be written.
fn hand_on(sinks: &mut [Box<dyn Sink>], event: &Event, view: &View, failed: &mut Option<io::Error>, unheard: &mut u64) {
    match failed {
        Some(_) => *unheard += event.what.calls(),
        None => *failed = sinks.iter_mut().try_for_each(|sink| sink.event(event, view)).err(),
    }
}
