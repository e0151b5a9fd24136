//! Completion scripts for shells.

use super::{ExitCode, args, stdout};
use clap_complete::Shell;

/// The script for a shell, to be sourced or put where the shell looks for it.
pub fn script(shell: Shell) -> Vec<u8> {
    let asking = match shell {
        Shell::Bash => include_str!("completions/rtrace.bash"),
        Shell::Zsh => include_str!("completions/_rtrace"),
        Shell::Fish => include_str!("completions/rtrace.fish"),
        // These know options and their values only.
        _ => "",
    };
    if !asking.is_empty() {
        return asking.as_bytes().to_vec();
    }
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "rtrace", &mut text);
    text
}

/// Prints the script to stdout.
///
/// # Errors
/// stdout cannot be written.
pub fn print(shell: Shell) -> anyhow::Result<ExitCode> {
    stdout::print(&script(shell))
}
