//! `rtrace diff`: prints what a second run did otherwise.

use super::{ExitCode, environment, json, parse, stdout};
use crate::diff::{self, Outline, Words};
use crate::interrupt;
use crate::recording::Reader;
use crate::request::{AnswerFormat, Request};
use crate::run;
use anyhow::bail;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Compares two recordings, and prints the differences. The exit status says whether there are any.
///
/// # Errors
/// A recording cannot be read, or stdout cannot be written.
pub fn print([a, b]: &[PathBuf; 2], format: AnswerFormat) -> anyhow::Result<ExitCode> {
    interrupt::block_signals()?;
    let (first, words) = outline(a, Words::default())?;
    let (second, words) = outline(b, words)?;
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

/// Reads a recording with what its recorder selected.
fn outline(path: &Path, words: Words) -> anyhow::Result<(Outline, Words)> {
    let reader = Reader::open(path)?;
    let recorded = &reader.begin().selection;
    let input = [OsString::from("-i"), path.into()];
    let Ok(Request::Replay(request)) = parse::with_selection(recorded, &input, &environment()) else {
        bail!("this version does not understand what {} selected ({})", path.display(), recorded.join(" "));
    };
    run::outline(path, &request.trace, reader, words)
}

/// Returns what the recordings are called in sentences: their names without directories, if that tells them apart.
fn names(a: &Path, b: &Path) -> [String; 2] {
    let short = [a, b].map(|path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned());
    if short[0] == short[1] { [a, b].map(|path| path.display().to_string()) } else { short }
}
