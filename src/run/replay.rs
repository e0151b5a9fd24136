//! Shows a recording: the same way as that of a live trace, with a file in place of the rings.
//!
//! A replay needs no privileges and reads nothing of the present machine.

use super::sentences;
use super::sinks::Planned;
use super::verdict::Selection;
use super::work::{Shown, Work};
use crate::beauty::tables::{OTHER_NAMES, SYSCALLS};
use crate::engine::Engine;
use crate::gate;
use crate::interrupt;
use crate::plan::PENDING_AFTER;
use crate::recording::{AnyReader, Damage};
use crate::request::{Trace, select};
use crate::say;
use crate::session::{PathNames, Session};
use crate::show::{Show, Style, TimeFormat};
use crate::sink::output::Output;
use crate::stack::library::Closed;
use crate::stack::naming::{Fetch, Naming, Wanted};
use crate::stack::symbols::{Files, Options, ReadAt, Want};
use crate::sys::exit_code::ExitCode;
use crate::text::os_error::without_error_numbers;
use anyhow::anyhow;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shows a recording as the request says, and returns the exit status. `has_own_selection` says that the request
/// selects calls and events itself, and not as the recorder did.
///
/// # Errors
/// A filter does not apply to the recording, or the output cannot be opened.
pub fn replay(request: &Trace, mut reader: AnyReader, has_own_selection: bool) -> anyhow::Result<ExitCode> {
    interrupt::block_signals()?;
    let session = Arc::new(session(request, reader.begin().session.clone(), has_own_selection));
    let shown = bind(request, &session)?;
    if !reader.has_wall_clock() && shows_time_of_day(&request.show) {
        say!(
            "rtrace: the recording does not say at which time of day it was made (`perf record -k CLOCK_MONOTONIC` writes that): times of \
             day count from the beginning of 1970"
        );
    }
    let sinks = Planned::new(request, Output::open(&request.output)?)?;
    let enough = Arc::new(AtomicBool::new(false));
    let pending_after = request.show.pending.unwrap_or_default().then_some(PENDING_AFTER);
    let engine = Engine::new(&session, pending_after, Box::new(Closed));
    let shown = Shown { gate: shown, selection: Selection::of(request), enough: Arc::clone(&enough) };
    let naming = Naming::new(NoFiles, Options::default(), Box::new(NoFiles), Wanted::default());
    let mut work = Work::new(session, engine, shown, sinks.create(), (naming, |_| Vec::new()));
    let mut events = Vec::new();
    while let Some(input) = reader.next_input() {
        work.process(input, &mut events);
        reader.recycle(work.spent());
        if enough.load(Ordering::Relaxed) || interrupt::first().is_some() {
            break;
        }
    }
    let outcome = work.finish(&mut events);
    for sentence in sentences::missing_data(&outcome.verdict) {
        say!("rtrace: {sentence}");
    }
    let failed = outcome.failed.as_ref().filter(|_| !outcome.is_quiet());
    if let Some(error) = failed {
        say!("rtrace: {}", without_error_numbers(&format!("{error:#}")));
    }
    for sentence in sentences::account(&outcome.verdict, &request.run, outcome.is_quiet()) {
        say!("rtrace: {sentence}");
    }
    say_damages(&reader);
    let is_incomplete = !reader.damages().is_empty() || outcome.verdict.lost_records > 0 || outcome.verdict.given_up > 0;
    Ok(match failed {
        Some(_) => ExitCode::Failed,
        None if request.run.strict && is_incomplete => ExitCode::Lost,
        None if reader.damages().iter().any(|damage| *damage != Damage::NotFinished) => ExitCode::Failed,
        None => ExitCode::Success,
    })
}

/// Returns whether the output has times of day.
fn shows_time_of_day(show: &Show) -> bool {
    let is_shown = matches!(show.time, TimeFormat::Local | TimeFormat::LocalDate | TimeFormat::Utc | TimeFormat::Epoch);
    is_shown || show.style == Style::Json
}

/// Says what is wrong with the file. A file that was not completed mostly ends inside a record, which needs no sentence
/// of its own.
fn say_damages(reader: &AnyReader) {
    const SENTENCES_MAX: usize = 8;
    let damages = reader.damages();
    for damage in damages.iter().take(SENTENCES_MAX) {
        say!("rtrace: the recording is incomplete: {damage}");
    }
    if damages.len() > SENTENCES_MAX {
        say!("rtrace: the recording has {} more places that cannot be read", damages.len() - SENTENCES_MAX);
    }
    if reader.unreadable() > 0 {
        say!("rtrace: the recording lacks {} records that the recorder could not read", reader.unreadable());
    }
}

/// Returns the session of a recording for this request.
fn session(request: &Trace, mut session: Session, has_own_selection: bool) -> Session {
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
fn bind(request: &Trace, session: &Session) -> anyhow::Result<gate::Settings> {
    let selection = select::resolve(&request.what.items, request.what.syscalls, SYSCALLS, OTHER_NAMES).map_err(|why| anyhow!(why))?;
    let stream = gate::Stream {
        events: session.events.events.iter().collect(),
        scope: session.scope,
        abi: session.abi,
        paths: &session.paths,
        filtered: Vec::new(),
    };
    let settings = gate::bind(request, &selection, &stream)?;
    Ok(gate::Settings { pending: request.show.pending.unwrap_or_default(), ..settings })
}

/// The files of the traced machine, which a replay does not have.
#[derive(Clone, Debug)]
struct NoFiles;

impl Files for NoFiles {
    fn find(&mut self, _: Want<'_>) -> Option<Box<dyn ReadAt>> {
        None
    }
}

impl Fetch for NoFiles {
    fn kernel(&mut self) -> io::Result<Vec<u8>> {
        Err(io::Error::other("the recording has no symbols of the kernel"))
    }

    fn perf_map(&mut self, _: i32) -> Option<Box<dyn ReadAt>> {
        None
    }

    fn jitdump(&mut self, _: i32, _: &[u8]) -> Option<Box<dyn ReadAt>> {
        None
    }
}
