//! Printing a whole text to stdout, for commands that answer and end.

use super::ExitCode;
use anyhow::Context;
use std::io::{self, Write};

/// Prints it.
///
/// # Errors
/// stdout cannot be written. A reader that has seen enough (`| head`) is no failure.
pub fn print(text: &[u8]) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::Success),
        result => result.context("cannot write to stdout").map(|()| ExitCode::Success),
    }
}
