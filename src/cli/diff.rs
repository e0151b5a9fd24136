//! `rtrace diff`: prints what a second run did otherwise.

use super::{ExitCode, environment, json, parse, stdout};
use crate::diff::{self, Outline, Words};
use crate::interrupt;
use crate::recording::Reader;
use crate::request::{AnswerFormat, Request};
use crate::run;
use anyhow::{anyhow, bail};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Compares two recordings, and prints the differences. The exit status says whether there are any. `selection` has the
/// options that select what is compared; without any, it is what the recorders selected.
///
/// # Errors
/// A recording cannot be read, or stdout cannot be written.
pub fn print([a, b]: &[PathBuf; 2], selection: &[String], format: AnswerFormat) -> anyhow::Result<ExitCode> {
    interrupt::block_signals()?;
    let (first, words) = outline(a, selection, Words::default())?;
    let (second, words) = outline(b, selection, words)?;
    let differences = diff::compare([&first, &second], &words);
    match format {
        AnswerFormat::Text => {
            let names = names(a, b);
            stdout::print(&diff::text(&differences, [&names[0], &names[1]], &words))?
        }
        AnswerFormat::Json => json::print("diff", diff::objects(&differences, &words))?,
    };
    Ok(if differences.is_empty() { ExitCode::Success } else { ExitCode::Differ })
}

/// Reads what is selected of a recording.
fn outline(path: &Path, selection: &[String], words: Words) -> anyhow::Result<(Outline, Words)> {
    let reader = Reader::open(path).map_err(|why| if is_json(path) { of_trace(path) } else { why })?;
    let is_own = !selection.is_empty();
    let selection = if is_own { selection } else { &reader.begin().selection };
    let input = [OsString::from("-i"), path.into()];
    let Ok(Request::Replay(request)) = parse::with_selection(selection, &input, &environment()) else {
        bail!("this version does not understand what {} selected ({})", path.display(), selection.join(" "));
    };
    run::outline(path, (&request.trace, is_own), reader, words)
}

/// Returns whether a file begins as a trace of `--json` does.
fn is_json(path: &Path) -> bool {
    let mut start = [0; 8];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok()) && start == *b"{\"type\":"
}

fn of_trace(path: &Path) -> anyhow::Error {
    anyhow!("{} is a trace in JSON, which lacks what was not shown: diff compares recordings (`rtrace record`)", path.display())
}

/// Returns what the recordings are called in sentences: their names without directories, if that tells them apart.
fn names(a: &Path, b: &Path) -> [String; 2] {
    let short = [a, b].map(|path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned());
    if short[0] == short[1] { [a, b].map(|path| path.display().to_string()) } else { short }
}
