//! Carries out a request.

use super::{ExitCode, check, complete, completions, list, probe, setup};
use crate::request::Request;
use crate::run;
use crate::say;
use crate::text::os_error::without_error_numbers;

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
        Request::List { what, glob, format } => list::list(*what, glob.as_deref(), *format),
        Request::Probe(what) => probe::carry_out(what),
        Request::Check(format) => check::check(*format),
        Request::Setup(setup) => setup::print(setup),
        Request::ListUsdt { program, format } => list::usdt::list(program, *format),
        Request::Complete(words) => complete::print(words),
        Request::Completions(shell) => completions::print(*shell),
    }
}
