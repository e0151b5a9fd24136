//! Shows a recording: the same way as that of a live trace, with a file in place of the rings.
//!
//! A replay needs no privileges and reads nothing of the present machine.

use super::sentences;
use super::sinks::{Planned, Tasks, is_interleaved};
use super::verdict::Selection;
use super::work::{Shown, Work};
use crate::beauty::tables::{OTHER_NAMES, SYSCALLS};
use crate::engine::Engine;
use crate::event::Synthesized;
use crate::gate;
use crate::interrupt;
use crate::plan::PENDING_AFTER;
use crate::recording::{AnyReader, Damage, JitFile, KernelSymbols, RecordedFiles};
use crate::request::{Trace, select};
use crate::say;
use crate::session::{PathNames, Session};
use crate::show::{Show, Style, TimeFormat};
use crate::sink::output::Output;
use crate::source::{Input, Round};
use crate::stack::naming::{Fetch, Naming, Wanted};
use crate::stack::symbols::{Options, ReadAt};
use crate::sys::exit_code::ExitCode;
use crate::text::os_error::without_error_numbers;
use anyhow::anyhow;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Shows a recording as the request says, and returns the exit status. `has_own_selection` says that the request
/// selects calls and events itself, and not as the recorder did.
///
/// # Errors
/// A filter does not apply to the recording, or the output cannot be opened.
pub fn replay(request: &Trace, mut reader: AnyReader, has_own_selection: bool) -> anyhow::Result<ExitCode> {
    interrupt::block_signals()?;
    let session = Arc::new(session(request, reader.begin().session.clone(), has_own_selection));
    let of_all = request.show.max_summary_of_all.filter(|_| reader.begin().of_all).map(|rows| {
        let show = Show { max_summary: Some(rows), ..request.show.clone() };
        Trace { show, ..request.clone() }
    });
    let request = of_all.as_ref().unwrap_or(request);
    let tasks = Tasks::of_recording(session.scope);
    let shows_pending = request.show.pending == Some(true) || is_interleaved(request, &tasks);
    let shown = gate::Settings { pending: shows_pending, ..bind(request, &session)? };
    if !reader.has_wall_clock() && shows_time_of_day(&request.show) {
        say!(
            "rtrace: the recording does not say at which time of day it was made (`perf record -k CLOCK_MONOTONIC` writes that): times of \
             day count from the beginning of 1970"
        );
    }
    if (request.graphs.lines || request.graphs.inlined) && !reader.begin().has_lines {
        say!("rtrace: the recording has no source lines: `rtrace record --lines` reads what they need");
    }
    let sinks = Planned::new(request, Output::open(&request.output)?, &tasks)?;
    let enough = Arc::new(AtomicBool::new(false));
    let pending_after = shows_pending.then_some(PENDING_AFTER);
    let engine = Engine::new(&session, pending_after, Box::new(reader.files()));
    let shown = Shown { gate: shown, selection: Selection::of(request), enough: Arc::clone(&enough) };
    let naming = naming(request, reader.files(), reader.kernel_symbols());
    let mut work = Work::new(session, engine, shown, sinks.create(), (naming, |_| Vec::new())).deferring(request.graphs.names_at_end);
    let mut events = Vec::new();
    while let Some(input) = reader.next_input() {
        if !request.run.quiet {
            say_notices(&input);
        }
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
    say_damages(reader.damages(), reader.unreadable());
    let is_incomplete = !reader.damages().is_empty() || outcome.verdict.lost_records > 0 || outcome.verdict.given_up > 0;
    Ok(match failed {
        Some(_) => ExitCode::Failed,
        None if request.run.strict && is_incomplete => ExitCode::Lost,
        None if reader.damages().iter().any(|damage| *damage != Damage::NotFinished) => ExitCode::Failed,
        None => ExitCode::Success,
    })
}

/// Returns the names of frames, from the files of the recording.
pub(super) fn naming(request: &Trace, files: RecordedFiles, kernel: KernelSymbols) -> Naming<RecordedFiles> {
    let wanted = Wanted { lines: request.graphs.lines, inlined: request.graphs.inlined };
    let names = RecordedNames { kernel, files: files.clone() };
    Naming::new(files, Options::default(), Box::new(names), wanted)
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

/// Says what is wrong with the file. A file that was not completed mostly ends inside a record, which needs no sentence
/// of its own.
pub(super) fn say_damages(damages: &[Damage], unreadable: u64) {
    const SENTENCES_MAX: usize = 8;
    for damage in damages.iter().take(SENTENCES_MAX) {
        say!("rtrace: the recording is incomplete: {damage}");
    }
    if damages.len() > SENTENCES_MAX {
        say!("rtrace: the recording has {} more places that cannot be read", damages.len() - SENTENCES_MAX);
    }
    if unreadable > 0 {
        say!("rtrace: the recording lacks {} records that the recorder could not read", unreadable);
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

/// The names of a recording that are in no file which a process mapped.
struct RecordedNames {
    kernel: KernelSymbols,
    files: RecordedFiles,
}

impl Fetch for RecordedNames {
    fn kernel(&mut self) -> io::Result<Vec<u8>> {
        let text = self.kernel.lock().unwrap_or_else(PoisonError::into_inner).clone();
        text.ok_or_else(|| io::Error::other("the recording does not have them"))
    }

    fn perf_map(&mut self, pid: i32) -> Option<Box<dyn ReadAt>> {
        self.files.jit(pid, JitFile::Map)
    }

    fn jitdump(&mut self, pid: i32, _: &[u8]) -> Option<Box<dyn ReadAt>> {
        self.files.jit(pid, JitFile::Dump)
    }

    fn pause(&self) -> Duration {
        Duration::ZERO
    }
}
