//! Does what `rtrace probe` is asked.

use super::{add, del, emit, list, show};
use crate::cli::ExitCode;
use crate::cli::stdout;
use crate::kernel::tracefs::Tracefs;
use crate::request::Probing;

/// Lists, shows, makes, deletes or emits; what there is to read goes to stdout.
///
/// # Errors
/// There is no tracefs for us; whatever else prevents it, a sentence.
pub fn carry_out(what: &Probing) -> anyhow::Result<ExitCode> {
    let tracefs = Tracefs::find()?;
    let text = match what {
        Probing::List { patterns } => list::list(&tracefs, patterns)?,
        Probing::Show { event } => show::show(&tracefs, event)?,
        Probing::Add { lines, force } => add::add(&tracefs, lines, *force)?,
        Probing::Delete { patterns, force } => return del::delete(&tracefs, patterns, *force),
        Probing::Emit { event, values } => emit::emit(&tracefs, event, values)?,
    };
    stdout::print(text.as_bytes())
}
