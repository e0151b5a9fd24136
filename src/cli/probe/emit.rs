//! `rtrace probe emit`: writes a record of a user event, as a program would.

use super::pattern::{Pattern, no_match};
use crate::cli::words;
use crate::kernel::tracefs::Tracefs;
use crate::probe::grammar::Field;
use crate::probe::groups::USER_MULTI;
use crate::probe::inventory::{self, DynamicEvent};
use crate::probe::user_events::access;
use crate::probe::user_events::payload::record;
use crate::say;
use anyhow::{Context, anyhow, bail};
use rtrace_mark::event::Flags;

/// Writes one record with these values: `NAME=VALUE`, separated by blanks and quoted as in a shell. Returns an empty
/// answer; if no tracer listens to the event, prints a note on stderr.
///
/// # Errors
/// There is no such user event, a value is wrong, or the kernel refuses the record.
pub fn emit(tracefs: &Tracefs, word: &str, values: &[String]) -> anyhow::Result<String> {
    // This fails with a clear error if the kernel has no user events.
    access::data()?;
    let entries = inventory::read(tracefs)?;
    let (entry, fields) = chosen(tracefs, &entries, word)?;
    let values: Vec<String> =
        values.iter().map(|text| words::split(text)).collect::<Result<Vec<_>, _>>().map_err(|error| anyhow!(error))?.concat();
    let mut record = record(&fields, &values).with_context(|| format!("{} was not emitted", entry.name))?;
    let flags = Flags { persist: false, multi_format: entry.name.subsystem == USER_MULTI };
    let registration = access::register(entry.registered_name(), &Field::declarations(&fields), flags)?;
    let written = registration.is_enabled()
        && registration.write(&mut record).with_context(|| format!("the kernel refuses the record of {}", entry.name))?;
    if !written {
        say!("rtrace: no tracer listens to {}, so no record was written (`rtrace -a -e {}` listens)", entry.name, entry.name);
    }
    Ok(String::new())
}

/// Returns the only user event that matches, with its fields.
fn chosen<'a>(tracefs: &Tracefs, entries: &'a [DynamicEvent], word: &str) -> anyhow::Result<(&'a DynamicEvent, Vec<Field>)> {
    let pattern = Pattern::of(word);
    let mut found = entries.iter().filter(|entry| pattern.matches(&entry.name)).filter_map(|entry| Some((entry, entry.user_fields()?)));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some((one, _)), Some((other, _))) => bail!("`{}` matches several user events: {}, {}", word.escape_debug(), one.name, other.name),
        (None, _) => {
            if let Some(other) = tracefs.matching(pattern.group(), pattern.event())?.first() {
                bail!("{other} is not a user event: programs can write only those, the kernel writes all others");
            }
            let users = entries.iter().filter(|entry| entry.user_fields().is_some()).map(|entry| &entry.name);
            bail!(no_match("user event", word, users))
        }
    }
}
