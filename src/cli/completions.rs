//! Completion scripts for shells.

use super::ExitCode;
use super::args;
use clap_complete::Shell;
use std::io::{self, Write};

/// The script for a shell, to be sourced or put where the shell looks for it.
pub fn script(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "rtrace", &mut text);
    text
}

/// Prints the script to stdout.
///
/// # Errors
/// stdout cannot be written.
pub fn print(shell: Shell) -> anyhow::Result<ExitCode> {
    match io::stdout().write_all(&script(shell)) {
        // `rtrace completions bash | head` is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(anyhow::Error::new(error).context("cannot write to stdout")),
        _ => Ok(ExitCode::Success),
    }
}
