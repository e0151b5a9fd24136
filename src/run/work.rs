//! The way of the input through the engine, the gate and the sinks, of a live trace and of a replay.

use super::display::{Apart, Batch, Sinks};
use super::verdict::Selection;
use crate::engine::Engine;
use crate::engine::view::View;
use crate::event::{Event, NoticeCode, Time, Verdict};
use crate::gate::{self, Gate};
use crate::interrupt::{self, Waiter};
use crate::recording::Totals;
use crate::say;
use crate::session::{EventSpec, Session};
use crate::sink::TraceResult;
use crate::sink::output::is_quiet_end;
use crate::source::{Input, Round};
use crate::stack::name::Names;
use crate::stack::naming::{LibraryNames, Naming};
use crate::stack::symbols::Files;
use crate::task::ProcReader;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long the end of a trace waits for symbols that are being downloaded.
const NAMES_WAIT: Duration = Duration::from_secs(60);

/// The result of a trace.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What the trace has, what it lacks, and why.
    pub verdict: Verdict,
    /// The number of tasks that calls or signals name, and whose names nobody has read.
    pub unnamed_tasks: usize,
    /// The error of the output.
    pub failed: Option<anyhow::Error>,
    /// The CPU time of the worker.
    pub cpu: Duration,
    /// What the recording of the trace has, if there is one and it could be written.
    pub recorded: Option<Totals>,
}

impl Outcome {
    /// Returns whether the output was written as long as it had a reader. This needs no message, unless the user
    /// requests one.
    pub fn is_quiet(&self) -> bool {
        let error = self.failed.as_ref().map(|failed| failed.downcast_ref::<io::Error>());
        error.is_none_or(|error| error.is_some_and(is_quiet_end))
    }
}

/// The engine, the gate and the sinks of a run, which pass events from one to the next. `F` opens the files that have
/// symbols.
pub struct Work<F> {
    session: Arc<Session>,
    engine: Engine,
    gate: Gate,
    selection: Selection,
    display: Display,
    /// Emptied buffers of events, while the sinks have a thread.
    spare: Vec<Vec<Event>>,
    naming: Naming<F>,
    /// The events that are shown when all symbols are available (`--resolve-at-end`).
    deferred: Option<Vec<Event>>,
    /// Reads /proc of the live machine. In a replay, the answers are in the stream.
    proc: Option<Box<dyn ProcReader>>,
    /// Returns the files that could not be read, because their file systems do not answer.
    unanswered: Unanswered<F>,
    /// Set when no more records are needed.
    enough: Arc<AtomicBool>,
}

/// The sinks, in this thread or in one of their own.
enum Display {
    Here(Sinks),
    Apart(Apart),
}

/// Returns the paths of the files that could not be read, because their file systems do not answer.
type Unanswered<F> = fn(&F) -> Vec<Vec<u8>>;

/// What decides which events are shown.
pub struct Shown {
    /// The settings of the gate.
    pub gate: gate::Settings,
    /// The parts of the request that explain why nothing was shown.
    pub selection: Selection,
    /// Set when no more records are needed.
    pub enough: Arc<AtomicBool>,
}

impl<F: Files + Clone> Work<F> {
    /// Puts the parts of a run together. `unanswered` returns the files that could not be read for `naming`, because
    /// their file systems do not answer.
    pub fn new(
        session: Arc<Session>,
        engine: Engine,
        shown: Shown,
        sinks: Sinks,
        (naming, unanswered): (Naming<F>, Unanswered<F>),
    ) -> Work<F> {
        Work {
            session,
            engine,
            gate: Gate::new(shown.gate),
            selection: shown.selection,
            display: Display::Here(sinks),
            spare: Vec::new(),
            naming,
            deferred: None,
            proc: None,
            unanswered,
            enough: shown.enough,
        }
    }

    /// Gives the sinks a thread of their own, unless they need to know more than a batch of events has.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub fn apart(self) -> io::Result<Work<F>> {
        // Only events that are no calls have functions of the kernel in their fields.
        let may_name = |spec: &EventSpec| spec.shown && !spec.role.records_calls();
        let has_names = self.engine.library().is_some() || self.session.events.events.iter().any(may_name);
        match self.display {
            Display::Here(sinks) if !has_names && !self.session.follows_cgroups && self.deferred.is_none() => {
                let mut engine = self.engine;
                engine.keep_changes();
                let display = Display::Apart(Apart::start(sinks, Arc::clone(&self.session))?);
                Ok(Work { engine, display, ..self })
            }
            display => Ok(Work { display, ..self }),
        }
    }

    /// Lets the engine tally calls if `is_enough` says that the request asks for no more than their numbers
    /// ([`crate::plan::sums::why_records`]).
    pub fn tallying(mut self, is_enough: bool) -> Work<F> {
        let settings = self.gate.settings();
        if is_enough && settings.span.is_none() {
            self.engine.tally(settings.rows.each_ref().map(|rows| rows.iter().map(Option::is_some).collect()));
        }
        self
    }

    /// Lets the engine have reads of /proc.
    pub fn reading_proc(self, proc: Box<dyn ProcReader>) -> Work<F> {
        Work { proc: Some(proc), ..self }
    }

    /// Keeps the events until all symbols are available, if `is_deferred` is set.
    pub fn deferring(self, is_deferred: bool) -> Work<F> {
        Work { deferred: is_deferred.then(Vec::new), ..self }
    }

    /// Processes one piece of input: shows the events that are due, and returns the answers to the reads of /proc that
    /// the input made necessary, which were processed as well.
    pub fn process(&mut self, input: Input, events: &mut Vec<Event>) -> Option<Input> {
        self.engine.add(&self.session, input);
        while self.engine.advance(&self.session, events) {
            self.show(events, false);
        }
        let answers = self.answer(events);
        self.emit(events);
        answers
    }

    /// Returns the emptied buffers of the records that were processed.
    pub fn spent(&mut self) -> Round {
        self.engine.spent()
    }

    /// Returns when the span of `--time` begins, as soon as that is known ([`gate::Span::begin`]).
    pub fn span_begin(&self) -> Option<Time> {
        self.gate.span_begin()
    }

    /// Counts calls that were not read, because they are before the span of `--time`.
    pub fn pass_over(&mut self, calls: u64) {
        self.gate.pass_over(calls);
        self.engine.pass_over(calls);
    }

    /// Shows the last events, and ends the sinks and the output.
    pub fn finish(mut self, events: &mut Vec<Event>) -> Outcome {
        while self.engine.advance_to_end(&self.session, events) {
            self.show(events, false);
        }
        self.engine.end(&self.session, events);
        self.emit(events);
        self.end()
    }

    /// Performs the reads of /proc that the engine asks for, passes the answers to it, and returns them.
    fn answer(&mut self, events: &mut Vec<Event>) -> Option<Input> {
        let reads = self.engine.take_reads();
        let proc = self.proc.as_mut().filter(|_| !reads.is_empty())?;
        let answers = Input::Answers(proc.answer(&reads));
        self.engine.input(&self.session, answers.clone(), events);
        Some(answers)
    }

    /// Shows the last events of a piece of input, and lets the sinks write what they have.
    fn emit(&mut self, events: &mut Vec<Event>) {
        self.show(events, false);
        if let Some(why) = self.naming.take_problem() {
            self.engine.notice(say::notice(NoticeCode::NamesMissing, why), events);
        }
        self.show(events, true);
        let has_failed = match &self.display {
            Display::Here(sinks) => sinks.has_failed(),
            Display::Apart(apart) => apart.has_failed(),
        };
        if self.gate.is_full() || self.gate.is_over(self.engine.now()) || has_failed {
            self.enough.store(true, Ordering::Relaxed);
        }
    }

    /// Shows events, and takes back their memory. With `is_tick`, the sinks write what they have.
    fn show(&mut self, events: &mut Vec<Event>, is_tick: bool) {
        self.pass_on(events, is_tick);
        self.engine.gone().into_iter().for_each(|pid| self.naming.end(pid));
        self.engine.recycle(events);
    }

    fn pass_on(&mut self, events: &mut Vec<Event>, is_tick: bool) {
        let Work { session, engine, gate, display, naming, deferred, spare, .. } = self;
        let names = LibraryNames { naming, library: engine.library() };
        let view = View { session, tasks: engine.tasks(), now: engine.now(), names: &names };
        match (display, deferred) {
            (Display::Here(sinks), None) => {
                for event in events.iter_mut() {
                    if gate.lets_through(event, &view) {
                        sinks.event(event, &view);
                    } else if gate.is_outside() {
                        sinks.pass_over(event, &view);
                    }
                }
                if is_tick {
                    sinks.tick(&view);
                }
            }
            (_, Some(deferred)) => {
                for mut event in events.drain(..) {
                    if gate.lets_through(&mut event, &view) {
                        // A symbol that is requested now is available at the end.
                        event.kind.stack().into_iter().for_each(|stack| names.frames(event.task.pid, stack, &mut |_| {}));
                        event.kind.caller().into_iter().for_each(|caller| _ = names.function(event.task.pid, &caller.frame));
                        deferred.push(event);
                    }
                }
            }
            (Display::Apart(apart), None) => {
                let now = view.now;
                let mut others: Vec<Event> = events.extract_if(.., |event| !gate.lets_through(event, &view)).collect();
                engine.recycle(&mut others);
                while let Some(mut shown) = apart.shown() {
                    engine.recycle(&mut shown);
                    spare.push(shown);
                }
                if is_tick || !events.is_empty() {
                    let events = std::mem::replace(events, spare.pop().unwrap_or_default());
                    apart.pass(Batch { events, changes: engine.take_changes(), now, is_tick });
                }
            }
        }
    }

    /// Shows the deferred events, ends the sinks and the output, and returns the outcome.
    fn end(self) -> Outcome {
        if self.deferred.is_some() && self.naming.is_waiting() {
            let until = Instant::now() + NAMES_WAIT;
            // Symbols that are not available by then are not shown.
            let _ = interrupt::patiently(Waiter::Worker, |step| {
                self.naming.wait(until.min(Instant::now() + step));
                (!self.naming.is_waiting() || Instant::now() >= until).then_some(())
            });
        }
        let Work { session, engine, gate, selection, display, naming, deferred, unanswered, .. } = self;
        let mut sinks = match display {
            Display::Here(sinks) => sinks,
            Display::Apart(apart) => apart.join(),
        };
        let names = LibraryNames { naming: &naming, library: engine.library() };
        let view = View { session: &session, tasks: engine.tasks(), now: engine.now(), names: &names };
        deferred.into_iter().flatten().for_each(|mut event| sinks.event(&mut event, &view));
        let mut verdict = selection.verdict(&session, engine.ledger(), &gate);
        verdict.unanswered_files = unanswered(&naming.files());
        let given_up = sinks.end(&TraceResult { ledger: engine.ledger(), verdict: &verdict }, &view);
        // The final output may have stacks that needed further files.
        verdict.unanswered_files = unanswered(&naming.files());
        if sinks.has_failed() {
            verdict.give_up(given_up);
        }
        Outcome { verdict, unnamed_tasks: engine.unnamed_tasks(), failed: sinks.close().err(), ..Outcome::default() }
    }
}
