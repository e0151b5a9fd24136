//! Carries out a request.

use super::parse::Stop;
use super::{ExitCode, check, complete, completions, diff, environment, evlist, list, parse, probe, script, setup};
use crate::recording::AnyReader;
use crate::request::{Replay, Request};
use crate::run;
use crate::say;
use crate::text::os_error::without_error_numbers;
use anyhow::bail;

/// Carries out a request, and returns the exit status of rtrace. An error is printed on stderr.
pub fn carry_out(request: &Request) -> ExitCode {
    fallible(request).unwrap_or_else(|error| {
        let text = without_error_numbers(&format!("{error:#}"));
        match request {
            Request::Trace(trace) if trace.run.as_strace => {
                say!("strace: {text}");
                ExitCode::WrongForStrace
            }
            _ => {
                say!("rtrace: {text}");
                ExitCode::Failed
            }
        }
    })
}

fn fallible(request: &Request) -> anyhow::Result<ExitCode> {
    match request {
        Request::Trace(trace) => run::trace(trace),
        Request::Replay(request) => replay(request),
        Request::Diff(request) => diff::print(request),
        Request::Script { recording, span } => script::print(recording, span.as_ref()),
        Request::EventList { recording, what } => evlist::print(recording, *what),
        Request::Convert(request) => run::convert(request),
        Request::List { what, glob, format } => list::list(*what, glob.as_deref(), *format),
        Request::Probe(what) => probe::carry_out(what),
        Request::Check(format) => check::check(*format),
        Request::Setup(setup) => setup::print(setup),
        Request::ListUsdt { program, format } => list::usdt::list(program, *format),
        Request::Complete(words) => complete::print(words),
        Request::Completions(shell) => completions::print(*shell),
    }
}

/// Shows a recording. If the request selects no events itself, those are shown that the recorder selected.
fn replay(request: &Replay) -> anyhow::Result<ExitCode> {
    let reader = AnyReader::open(&request.file)?;
    let recorded = &reader.begin().selection;
    if request.selects || recorded.is_empty() {
        return run::replay(&request.trace, reader, request.selects);
    }
    let (file, words) = (request.file.display(), recorded.join(" "));
    match parse::with_selection(recorded, &request.words, &environment()) {
        Ok(Request::Replay(request)) => run::replay(&request.trace, reader, false),
        // Nobody selected the events of a recording of perf: all that it has are shown, as far as the options allow.
        Err(Stop::Wrong(why)) if matches!(reader, AnyReader::Perf(_)) => {
            say!("rtrace: {why}");
            run::replay(&request.trace, reader, true)
        }
        Err(Stop::Wrong(why)) => bail!("{why} ({file} was recorded with {words}; -e selects other calls)"),
        _ => bail!("this version does not understand what {file} selected ({words}): select calls by -e"),
    }
}
