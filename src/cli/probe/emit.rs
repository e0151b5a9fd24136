//! `rtrace probe emit`: a record of a user event, as a program would write it.

use super::pattern::{Pattern, nothing};
use crate::cli::words;
use crate::kernel::tracefs::Tracefs;
use crate::probe::grammar::Field;
use crate::probe::groups::USER_MULTI;
use crate::probe::inventory::{self, Entry};
use crate::probe::user_events::access;
use crate::probe::user_events::payload::record;
use crate::say;
use anyhow::{Context, anyhow, bail};
use rtrace_mark::event::Flags;

/// Writes one record with these values, `NAME=VALUE` with blanks between and quotes as in a shell. Gives nothing to print: that nobody listened is a note on stderr.
///
/// # Errors
/// There is no such user event, a value is wrong, the kernel does not let us.
pub fn emit(tracefs: &Tracefs, word: &str, values: &[String]) -> anyhow::Result<String> {
    // Says so where the kernel has none.
    access::data()?;
    let entries = inventory::read(tracefs)?;
    let (entry, fields) = chosen(tracefs, &entries, word)?;
    let values: Vec<String> =
        values.iter().map(|text| words::split(text)).collect::<Result<Vec<_>, _>>().map_err(|error| anyhow!(error))?.concat();
    let mut record = record(&fields, &values).with_context(|| format!("{} was not emitted", entry.name))?;
    let flags = Flags { persist: false, multi_format: entry.name.subsystem == USER_MULTI };
    let registration = access::register(entry.registered_name(), &Field::declarations(&fields), flags)?;
    let written = registration.is_listened_to()
        && registration.write(&mut record).with_context(|| format!("the kernel refuses the record of {}", entry.name))?;
    if !written {
        say!("rtrace: nobody listens to {}, so nothing was recorded (`rtrace -a -e {}` would)", entry.name, entry.name);
    }
    Ok(String::new())
}

/// The one user event that is meant, with its fields.
fn chosen<'a>(tracefs: &Tracefs, entries: &'a [Entry], word: &str) -> anyhow::Result<(&'a Entry, Vec<Field>)> {
    let pattern = Pattern::of(word);
    let mut found = entries.iter().filter(|entry| pattern.matches(&entry.name)).filter_map(|entry| Some((entry, entry.user_fields()?)));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some((one, _)), Some((other, _))) => bail!("`{}` means several user events: {}, {}", word.escape_debug(), one.name, other.name),
        (None, _) => {
            if let Some(other) = tracefs.matching(pattern.group(), pattern.event())?.first() {
                bail!("{other} is no user event: only those are written by programs, others by the kernel");
            }
            let users = entries.iter().filter(|entry| entry.user_fields().is_some()).map(|entry| &entry.name);
            bail!(nothing("user event", word, users))
        }
    }
}
