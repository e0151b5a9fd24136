//! Carries out the subcommands of `rtrace probe`.

use super::{add, del, emit, list, show};
use crate::cli::ExitCode;
use crate::cli::stdout;
use crate::kernel::tracefs::Tracefs;
use crate::request::ProbeCommand;

/// Carries out one subcommand and prints its answer on stdout.
///
/// # Errors
/// tracefs cannot be read, or the subcommand fails; the error is one sentence.
pub fn carry_out(what: &ProbeCommand) -> anyhow::Result<ExitCode> {
    let tracefs = Tracefs::find()?;
    let text = match what {
        ProbeCommand::List { patterns, format } => return list::list(&tracefs, patterns, *format),
        ProbeCommand::Show { event } => show::show(&tracefs, event)?,
        ProbeCommand::Add { lines, force } => add::add(&tracefs, lines, *force)?,
        ProbeCommand::Delete { patterns, force } => return del::delete(&tracefs, patterns, *force),
        ProbeCommand::Emit { event, values } => emit::emit(&tracefs, event, values)?,
    };
    stdout::print(text.as_bytes())
}
