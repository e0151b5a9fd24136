//! Shows a recording: the same way as that of a live trace, with a file in place of the rings.
//!
//! A replay needs no privileges. It reads nothing of the present machine, except for the stacks of perf's recordings
//! ([`super::programs`]).

use super::programs::Programs;
use super::progress::Progress;
use super::read_ahead::Source;
use super::sentences;
use super::sinks::{Planned, Tasks, is_interleaved};
use super::verdict::Selection;
use super::work::{Shown, Work};
use crate::beauty::tables::{OTHER_NAMES, SYSCALLS};
use crate::engine::Engine;
use crate::event::{Synthesized, Time, Verdict};
use crate::gate;
use crate::interrupt;
use crate::plan::{PENDING_AFTER, sums};
use crate::recording::{AnyReader, Damage};
use crate::request::{Trace, select};
use crate::say;
use crate::session::{PathNames, Session};
use crate::show::{Mode, Show, Style, TimeFormat};
use crate::sink::output::Output;
use crate::source::{Input, Round};
use crate::stack::naming::{Fetch, Naming, Wanted};
use crate::stack::symbols::{Files, Options};
use crate::sys::exit_code::ExitCode;
use crate::text::os_error::without_error_numbers;
use anyhow::{Context, anyhow};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shows a recording as the request says, and returns the exit status. `has_own_selection` says that the request
/// selects calls and events itself, and not as the recorder did.
///
/// # Errors
/// A filter does not apply to the recording, or the output cannot be opened.
pub fn replay(request: &Trace, reader: AnyReader, has_own_selection: bool) -> anyhow::Result<ExitCode> {
    interrupt::block_signals()?;
    let programs = Programs::of(&reader);
    let session = Arc::new(session(request, reader.begin().session.clone(), has_own_selection));
    let of_all = request.show.max_summary_of_all.filter(|_| reader.begin().of_all).map(|rows| {
        let show = Show { max_summary: Some(rows), ..request.show.clone() };
        Trace { show, ..request.clone() }
    });
    let request = of_all.as_ref().unwrap_or(request);
    let tasks = Tasks::of_recording(session.scope);
    let shows_pending = request.show.pending == Some(true) || is_interleaved(request, &tasks);
    let span = span(request, &session, reader.lasts())?;
    let shown = gate::Settings { pending: shows_pending, span, ..bind(request, &session)? };
    // Lines that depend on all earlier ones need all of them to be read.
    let depends_on_all = shown.depend_on_earlier_events() || request.show.time == TimeFormat::Delta || request.show.style == Style::Strace;
    let mut may_pass_over = span.is_some() && !depends_on_all;
    say_what_it_lacks(request, &reader, &programs);
    let output = Output::open(&request.output)?;
    let mut progress = Progress::new(request, &output);
    let sinks = Planned::new(request, output, &tasks)?;
    let enough = Arc::new(AtomicBool::new(false));
    let pending_after = shows_pending.then_some(PENDING_AFTER);
    let engine = Engine::new(&session, pending_after, Box::new(programs.clone()));
    let shown = Shown { gate: shown, selection: Selection::of(request), enough: Arc::clone(&enough) };
    let naming = naming(request, programs.clone(), programs.names(reader.kernel_symbols()));
    // The reader passes over a span when the engine has come to its beginning, and names of generated code are those as
    // far as it has read.
    let has_threads = span.is_none() && engine.library().is_none() && std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    let work = Work::new(session, engine, shown, sinks.create(), (naming, Programs::unanswered));
    let work = work.deferring(request.graphs.names_at_end).tallying(sums::why_records(request).is_none());
    let mut work = if has_threads { work.apart().context("cannot create the thread that writes the output")? } else { work };
    let shows_names = reader.begin().lacks_answers && matches!(request.show.mode, Mode::Lines | Mode::Both) && !request.run.quiet;
    let mut source = Source::new(reader, has_threads).context("cannot create the thread that reads the recording")?;
    let mut events = Vec::new();
    while let Some(input) = source.next_input() {
        if !request.run.quiet {
            say_notices(&input);
        }
        work.process(input, &mut events);
        source.recycle(work.spent());
        progress.show(source.progress());
        if enough.load(Ordering::Relaxed) || interrupt::first().is_some() {
            break;
        }
        if let Some(begin) = work.span_begin().filter(|_| may_pass_over) {
            may_pass_over = false;
            if let Err(why) = source.pass_over(begin) {
                say!("rtrace: {why}");
            }
        }
    }
    progress.end();
    work.pass_over(source.passed_calls());
    let outcome = work.finish(&mut events);
    let (damages, unreadable) = source.finish();
    say_missing("", &outcome.verdict, &programs);
    if let Some(sentence) = sentences::unnamed_tasks(outcome.unnamed_tasks).filter(|_| shows_names) {
        say!("rtrace: {sentence}");
    }
    let failed = outcome.failed.as_ref().filter(|_| !outcome.is_quiet());
    if let Some(error) = failed {
        say!("rtrace: {}", without_error_numbers(&format!("{error:#}")));
    }
    for sentence in sentences::account(&outcome.verdict, &request.run, outcome.is_quiet()) {
        say!("rtrace: {sentence}");
    }
    say_damages("", &damages, unreadable);
    let is_incomplete = !damages.is_empty() || outcome.verdict.lost_records > 0 || outcome.verdict.given_up > 0;
    Ok(match failed {
        Some(_) => ExitCode::Failed,
        None if request.run.strict && is_incomplete => ExitCode::Lost,
        None if damages.iter().any(Damage::is_failure) => ExitCode::Failed,
        None => ExitCode::Success,
    })
}

/// Says what the request asks for and the recording does not have.
fn say_what_it_lacks(request: &Trace, reader: &AnyReader, programs: &Programs) {
    if !reader.has_wall_clock() && shows_time_of_day(&request.show) {
        say!(
            "rtrace: the recording does not say at which time of day it was made (`perf record -k CLOCK_MONOTONIC` writes that): times of \
             day count from the beginning of 1970"
        );
    }
    let may_have_lines = reader.begin().has_lines || reader.programs().is_some();
    if (request.graphs.lines || request.graphs.inlined) && !may_have_lines {
        say!("rtrace: the recording has no source lines: `rtrace record --lines` reads what they need");
    }
    if programs.lacks_registers() {
        say!(
            "rtrace: some events of the recording have not all registers that unwinding needs, and therefore no stacks \
             (`perf record --call-graph dwarf` records them)"
        );
    }
}

/// Returns the span of which events are shown. `lasts` are the times of the first and the last round of the recording.
pub(super) fn span(request: &Trace, session: &Session, lasts: Option<(Time, Time)>) -> anyhow::Result<Option<gate::Span>> {
    let Some(span) = &request.span else { return Ok(None) };
    let bounds = span.bounds(session, lasts).map_err(|why| anyhow!(why))?;
    Ok(Some(gate::Span::new(bounds, session)))
}

/// Returns the names of frames, from these files and other names.
pub(super) fn naming<F: Files>(request: &Trace, files: F, names: Box<dyn Fetch>) -> Naming<F> {
    let wanted = Wanted { lines: request.graphs.lines, inlined: request.graphs.inlined };
    Naming::new(files, Options::default(), names, wanted)
}

/// Says what the recorder said while it traced.
fn say_notices(input: &Input) {
    let (Input::Round(Round { synthesized: records, .. }) | Input::Answers(records)) = input;
    for (_, record) in records {
        if let Synthesized::Notice(notice) = record {
            say!("rtrace: {}", notice.text);
        }
    }
}

/// Returns whether the output has times of day.
fn shows_time_of_day(show: &Show) -> bool {
    let is_shown = matches!(show.time, TimeFormat::Local | TimeFormat::LocalDate | TimeFormat::Utc | TimeFormat::Epoch);
    is_shown || show.style == Style::Json
}

/// Says which data and programs are missing. `of` precedes each sentence: the name of the recording, if there are
/// several.
pub(super) fn say_missing(of: &str, verdict: &Verdict, programs: &Programs) {
    for sentence in sentences::missing_data(verdict).into_iter().chain(sentences::missing_programs(&programs.missing())) {
        say!("rtrace: {of}{sentence}");
    }
}

/// Says what is wrong with the file. A file that was not completed mostly ends inside a record, which needs no sentence
/// of its own. `of` precedes each sentence, as in [`say_missing`].
pub(super) fn say_damages(of: &str, damages: &[Damage], unreadable: u64) {
    const SENTENCES_MAX: usize = 8;
    for damage in damages.iter().take(SENTENCES_MAX) {
        say!("rtrace: {of}the recording is incomplete: {damage}");
    }
    if damages.len() > SENTENCES_MAX {
        say!("rtrace: {of}the recording has {} more places that cannot be read", damages.len() - SENTENCES_MAX);
    }
    if unreadable > 0 {
        say!("rtrace: {of}the recording lacks {unreadable} records that the recorder could not read");
    }
}

/// Returns the session of a recording for this request.
pub(super) fn session(request: &Trace, mut session: Session, has_own_selection: bool) -> Session {
    if has_own_selection {
        // The items of this request are others than those that the events were created for.
        session.events.events.iter_mut().for_each(|spec| spec.terms.created_for = None);
    }
    let as_written = |path: &std::ffi::OsString| PathNames { written: path.as_bytes().to_vec(), others: Vec::new() };
    if session.paths.is_empty() {
        session.paths = request.show.paths.iter().map(as_written).collect();
    }
    if request.graphs.max.is_some() {
        session.frames_max.general = request.graphs.max;
    }
    session
}

/// Returns which events of a recording are shown.
pub(super) fn bind(request: &Trace, session: &Session) -> anyhow::Result<gate::Settings> {
    let selection = select::resolve(&request.what.items, request.what.syscalls, SYSCALLS, OTHER_NAMES).map_err(|why| anyhow!(why))?;
    let stream = gate::Stream {
        events: session.events.events.iter().collect(),
        scope: session.scope,
        abi: session.abi,
        paths: &session.paths,
        filtered: Vec::new(),
    };
    gate::bind(request, &selection, &stream)
}
