//! The way of the input through the engine, the gate and the sinks, of a live trace and of a replay.

use super::verdict::Selection;
use crate::engine::Engine;
use crate::engine::view::View;
use crate::event::{Event, Notice, NoticeCode, Time, Verdict};
use crate::gate::{self, Gate};
use crate::interrupt::{self, Waiter};
use crate::recording::Totals;
use crate::say;
use crate::session::Session;
use crate::sink::output::{SharedOutput, is_quiet_end};
use crate::sink::{Sink, TraceResult};
use crate::source::{Input, Round};
use crate::stack::name::Names;
use crate::stack::naming::{LibraryNames, Naming};
use crate::stack::symbols::Files;
use crate::task::ProcReader;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// How long the end of a trace waits for symbols that are being downloaded.
const NAMES_WAIT: Duration = Duration::from_secs(60);

/// The result of a trace.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What the trace has, what it lacks, and why.
    pub verdict: Verdict,
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
    sinks: Vec<Box<dyn Sink>>,
    naming: Naming<F>,
    /// The events that are shown when all symbols are available (`--resolve-at-end`).
    deferred: Option<Vec<Event>>,
    /// Reads /proc of the live machine. In a replay, the answers are in the stream.
    proc: Option<Box<dyn ProcReader>>,
    /// Returns the files that could not be read, because their file systems do not answer.
    unanswered: Unanswered<F>,
    /// Set when no more records are needed.
    enough: Arc<AtomicBool>,
    /// The error after which the output is no longer written.
    failed: Option<io::Error>,
    /// The number of selected calls since that error.
    unwritten_calls: u64,
    output: SharedOutput,
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
        (sinks, output): (Vec<Box<dyn Sink>>, SharedOutput),
        (naming, unanswered): (Naming<F>, Unanswered<F>),
    ) -> Work<F> {
        Work {
            session,
            engine,
            gate: Gate::new(shown.gate),
            selection: shown.selection,
            sinks,
            naming,
            deferred: None,
            proc: None,
            unanswered,
            enough: shown.enough,
            failed: None,
            unwritten_calls: 0,
            output,
        }
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
        self.engine.input(&self.session, input, events);
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
    pub fn finish(&mut self, events: &mut Vec<Event>) -> Outcome {
        self.engine.end(&self.session, events);
        self.emit(events);
        let verdict = self.end();
        let finished = self.output.lock().unwrap_or_else(PoisonError::into_inner).finish();
        Outcome { verdict, failed: self.failed.take().map(Into::into).or(finished.err()), ..Outcome::default() }
    }

    /// Performs the reads of /proc that the engine asks for, passes the answers to it, and returns them.
    fn answer(&mut self, events: &mut Vec<Event>) -> Option<Input> {
        let reads = self.engine.take_reads();
        let proc = self.proc.as_mut().filter(|_| !reads.is_empty())?;
        let answers = Input::Answers(proc.answer(&reads));
        self.engine.input(&self.session, answers.clone(), events);
        Some(answers)
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
        if self.gate.is_full() || self.gate.is_over(self.engine.now()) || self.failed.is_some() {
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
                } else if gate.is_outside() {
                    sinks.iter_mut().for_each(|sink| sink.pass_over(event, &view));
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
        let Work { session, engine, gate, selection, sinks, naming, deferred, failed, unwritten_calls, unanswered, .. } = self;
        let names = LibraryNames { naming, library: engine.library() };
        let view = View { session, tasks: engine.tasks(), now: engine.now(), names: &names };
        for mut event in deferred.take().unwrap_or_default() {
            pass_to_sinks(sinks, &mut event, &view, failed, unwritten_calls);
        }
        let mut verdict = selection.verdict(session, engine.ledger(), gate);
        verdict.unanswered_files = unanswered(&naming.files());
        let result = TraceResult { ledger: engine.ledger(), verdict: &verdict };
        let ended = end_sinks(sinks, &result, &view);
        *failed = failed.take().or(ended.err());
        // The final output may have stacks that needed further files.
        verdict.unanswered_files = unanswered(&naming.files());
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

/// Passes an event to the sinks, unless a write has failed. The last sink may exchange it.
fn pass_to_sinks(sinks: &mut [Box<dyn Sink>], event: &mut Event, view: &View, failed: &mut Option<io::Error>, unwritten_calls: &mut u64) {
    match failed {
        Some(_) => *unwritten_calls += event.kind.calls(),
        None => {
            let Some((last, others)) = sinks.split_last_mut() else { return };
            *failed = others.iter_mut().try_for_each(|sink| sink.event(event, view)).and_then(|()| last.take(event, view)).err();
        }
    }
}
