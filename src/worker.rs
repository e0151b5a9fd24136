//! The worker: rounds → events → lines. It merges, pairs, decodes and prints while the other thread empties the rings.

use crate::cli::request::{Mode, Trace};
use crate::engine::{Engine, Settings};
use crate::event::Event;
use crate::gate::{self, Account, Gate};
use crate::plan::Plan;
use crate::sink::output::{Output, Shared};
use crate::sink::summary::Summary;
use crate::sink::text::Text;
use crate::sink::{Sink, View};
use crate::source::Session;
use crate::source::look::Live;
use crate::source::queue::Receiver;
use crate::syscall::ledger::Ledger;
use anyhow::Context;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, mpsc};
use std::thread::JoinHandle;

/// The running worker.
#[derive(Debug)]
pub struct Worker {
    begin: mpsc::Sender<Arc<Session>>,
    thread: JoinHandle<anyhow::Result<Outcome>>,
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    pub session: Arc<Session>,
    pub ledger: Ledger,
    pub account: Account,
}

/// Starts the worker before anything is armed, so that its thread can be left out of a system-wide trace. It waits for [`Worker::begin`], and ends when the queue does.
///
/// # Errors
/// No thread can be made.
pub fn start(request: &Trace, plan: &Plan, output: Output, rounds: Receiver, enough: Arc<AtomicBool>) -> anyhow::Result<Worker> {
    let (begin, session) = mpsc::channel::<Arc<Session>>();
    let (show, settings, gate) = (request.show.clone(), plan.engine, plan.gate.clone());
    let color = output.color(request.output.color);
    let work = move || match session.recv() {
        Ok(session) => {
            let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
            let shared = output.shared();
            if matches!(show.mode, Mode::Lines | Mode::Both) {
                sinks.push(Box::new(Text::new(&show, color, shared.clone())));
            }
            if matches!(show.mode, Mode::Summary | Mode::Both) {
                sinks.push(Box::new(Summary::new(&show, shared.clone())));
            }
            let mut work = Work::new(session, settings, gate, sinks, shared, enough);
            work.all(&rounds)
        }
        // Arming failed; whoever waits for us knows why.
        Err(mpsc::RecvError) => Ok(Outcome { session: Arc::default(), ledger: Ledger::default(), account: Account::default() }),
    };
    let thread = std::thread::Builder::new().name("rtrace-worker".to_owned()).spawn(work).context("cannot make a thread")?;
    Ok(Worker { begin, thread })
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
    /// The output could not be written.
    pub fn join(self) -> anyhow::Result<Outcome> {
        drop(self.begin);
        self.thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the worker thread panicked: this is a bug in rtrace")))
    }
}

struct Work {
    session: Arc<Session>,
    engine: Engine,
    gate: Gate,
    sinks: Vec<Box<dyn Sink>>,
    look: Live,
    /// Set when no more is wanted.
    enough: Arc<AtomicBool>,
    /// Nobody reads the output any more.
    deaf: bool,
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
    ) -> Work {
        let engine = Engine::new(&session, settings);
        Work { session, engine, gate: Gate::new(gate), sinks, look: Live::default(), enough, deaf: false, output }
    }

    /// Everything until the queue ends. The queue is emptied even when the output fails, because the other thread must not be kept from its end.
    fn all(&mut self, rounds: &Receiver) -> anyhow::Result<Outcome> {
        let mut failed = None;
        let mut events = Vec::new();
        while let Some(round) = rounds.pop() {
            self.engine.round(&self.session, round, &mut self.look, &mut events);
            rounds.recycle(self.engine.spent());
            self.give(&mut events, &mut failed);
        }
        self.engine.end(&self.session, &mut events);
        self.give(&mut events, &mut failed);
        let result = self.end();
        self.note_failure(result, &mut failed);
        let finished = self.output.lock().unwrap_or_else(PoisonError::into_inner).finish();
        match failed {
            Some(error) => Err(error.into()),
            None => finished.map(|()| Outcome {
                session: Arc::clone(&self.session),
                ledger: self.engine.ledger().clone(),
                account: self.gate.account(),
            }),
        }
    }

    /// Shows what is due.
    fn give(&mut self, events: &mut Vec<Event>, failed: &mut Option<io::Error>) {
        let result = self.show(events);
        self.engine.recycle(events);
        self.note_failure(result, failed);
        if self.gate.is_full() {
            self.enough.store(true, Ordering::Relaxed);
        }
    }

    fn show(&mut self, events: &[Event]) -> io::Result<()> {
        if self.deaf {
            return Ok(());
        }
        let view = View { session: &self.session, tasks: self.engine.tasks(), now: self.engine.now() };
        for event in events {
            if self.gate.lets_through(event, &view) {
                self.sinks.iter_mut().try_for_each(|sink| sink.event(event, &view))?;
            }
        }
        self.sinks.iter_mut().try_for_each(|sink| sink.tick(&view))
    }

    fn end(&mut self) -> io::Result<()> {
        if self.deaf {
            return Ok(());
        }
        let view = View { session: &self.session, tasks: self.engine.tasks(), now: self.engine.now() };
        self.sinks.iter_mut().try_for_each(|sink| sink.end(self.engine.ledger(), &view))
    }

    /// A reader who has gone is a normal end; anything else is kept to be told.
    fn note_failure(&mut self, result: io::Result<()>, failed: &mut Option<io::Error>) {
        if let Err(error) = result {
            self.deaf = true;
            self.enough.store(true, Ordering::Relaxed);
            if error.kind() != io::ErrorKind::BrokenPipe {
                failed.get_or_insert(error);
            }
        }
    }
}
