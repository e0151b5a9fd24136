//! `rtrace diff`: prints what a second run did otherwise.

use super::{ExitCode, environment, json, parse, stdout};
use crate::diff::{self, Outline, Words};
use crate::interrupt;
use crate::json_trace::JsonTrace;
use crate::recording::Reader;
use crate::request::{AnswerFormat, Color, Comparison, Request};
use crate::run;
use anyhow::bail;
use std::io::{self, IsTerminal};
use std::path::Path;

/// Compares two recordings or traces, and prints the differences. The exit status says whether there are any.
///
/// # Errors
/// A file cannot be read, or stdout cannot be written.
pub fn print(request: &Comparison) -> anyhow::Result<ExitCode> {
    interrupt::block_signals()?;
    let [a, b] = &request.files;
    let (first, words) = outline(a, request, Words::default())?;
    let (second, mut words) = outline(b, request, words)?;
    let differences = diff::compare([first, second], &mut words);
    match request.format {
        AnswerFormat::Text => {
            let names = names(a, b);
            let color = request.color == Color::Always || request.color == Color::Auto && io::stdout().is_terminal();
            stdout::print_as_is(&diff::text(&differences, [&names[0], &names[1]], &words, color))?
        }
        AnswerFormat::Json => json::print("diff", diff::objects(&differences, &words))?,
    };
    Ok(if differences.is_empty() { ExitCode::Success } else { ExitCode::Differ })
}

/// Reads what is selected of a recording or trace.
fn outline(path: &Path, request: &Comparison, words: Words) -> anyhow::Result<(Outline, Words)> {
    let is_own = !request.selection.is_empty();
    let options = parse::words_of_diff(path, request.span.as_deref());
    let of = |selection: &[String]| match parse::with_selection(selection, &options, &environment()) {
        Ok(Request::Replay(replay)) => Ok(replay.trace),
        _ => bail!("this version does not understand what {} selected ({})", path.display(), selection.join(" ")),
    };
    if JsonTrace::is_json(path) {
        return run::outline_of_trace(path, (&of(&request.selection)?, is_own), JsonTrace::open(path)?, words);
    }
    let reader = Reader::open(path)?;
    let trace = of(if is_own { &request.selection } else { &reader.begin().selection })?;
    run::outline(path, (&trace, is_own), reader, words)
}

/// Returns what the recordings are called in sentences: their names without directories, if that tells them apart.
fn names(a: &Path, b: &Path) -> [String; 2] {
    let short = [a, b].map(|path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned());
    if short[0] == short[1] { [a, b].map(|path| path.display().to_string()) } else { short }
}
