//! Completion scripts for shells.

use super::{ExitCode, args, stdout};
use clap_complete::Shell;

/// Returns the script for a shell, to be sourced or installed in the shell's completion directory.
pub fn script(shell: Shell) -> Vec<u8> {
    let dynamic = match shell {
        Shell::Bash => include_str!("completions/rtrace.bash"),
        Shell::Zsh => include_str!("completions/_rtrace"),
        Shell::Fish => include_str!("completions/rtrace.fish"),
        // The generated scripts of other shells complete only options and the values that their definitions list.
        _ => "",
    };
    if !dynamic.is_empty() {
        return dynamic.as_bytes().to_vec();
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
