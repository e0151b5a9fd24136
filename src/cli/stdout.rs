//! Prints a text to stdout, for subcommands that print one answer and end.

use super::ExitCode;
use crate::sys::caller;
use crate::text::escape;
use anyhow::{Context, bail};
use memchr::memchr_iter;
use std::io::{self, Write};

/// Prints the text. It may have names that other users chose, so control characters other than tabs and newlines are
/// escaped.
///
/// # Errors
/// Those of [`print_as_is`].
pub fn print(text: &[u8]) -> anyhow::Result<ExitCode> {
    let mut shown = Vec::with_capacity(text.len());
    let mut start = 0;
    for end in memchr_iter(b'\n', text).chain([text.len()]) {
        escape::controls(&mut shown, &text[start..end]);
        shown.extend_from_slice(&text[end..text.len().min(end + 1)]);
        start = end + 1;
    }
    print_as_is(&shown)
}

/// Prints the text, of which the caller has escaped what needs it.
///
/// # Errors
/// stdout cannot be written. A reader that closes the pipe (`| head`) is no error.
pub fn print_as_is(text: &[u8]) -> anyhow::Result<ExitCode> {
    if caller::was_closed(1) {
        bail!("cannot write to stdout: it is closed");
    }
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::Success),
        result => result.context("cannot write to stdout").map(|()| ExitCode::Success),
    }
}
