//! Lists the dynamic events of this kernel: their definition, who created them, and how often they were hit.

use super::dynamic_events::{DynamicEvents, EventDefinition};
use super::grammar::{self, Field, Line, ProbePoint};
use super::groups::{self, USER, USER_MULTI};
use super::hits::{self, Hits};
use super::owner::Owner;
use super::ownership_list::{self, OwnershipList};
use super::user_events::status;
use crate::kernel::format::FormatField;
use crate::kernel::tracefs::{EventName, Tracefs};
use anyhow::Context;
use std::collections::HashSet;

/// A dynamic event.
#[derive(Clone, Debug)]
pub struct DynamicEvent {
    /// The name in tracefs.
    pub name: EventName,
    /// The line in `dynamic_events`.
    pub line: String,
    /// Who created the event, by its name and by the lists that rtrace keeps of its own events.
    pub creator: Creator,
    /// How often the event was hit and missed; `None` if the kernel does not count its hits.
    pub hits: Option<Hits>,
    /// Which tracers have enabled a user event (`ftrace`, `perf`); `None` for other events, for which the kernel does
    /// not report this.
    pub listeners: Option<Vec<String>>,
}

/// Who created an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creator {
    /// `rtrace probe add`
    ProbeAdd,
    /// A run of rtrace, for itself.
    Run(Owner),
    Other,
}

impl DynamicEvent {
    /// Returns the fields, if this is a user event.
    pub fn user_fields(&self) -> Option<Vec<Field>> {
        user_fields(&self.line)
    }

    /// Returns the name under which programs register a user event. With several formats, the name in tracefs has a
    /// numeric suffix.
    pub fn registered_name(&self) -> &str {
        match self.name.name.rsplit_once('.') {
            Some((name, _)) if self.name.subsystem == USER_MULTI => name,
            _ => &self.name.name,
        }
    }
}

/// Returns whether `rtrace probe del` may remove an event: all probes of its name were created by `rtrace probe add`,
/// because the kernel removes them together.
pub fn is_ours(all: &[DynamicEvent], name: &EventName) -> bool {
    all.iter().filter(|entry| entry.name == *name).all(|entry| entry.creator == Creator::ProbeAdd)
}

/// Reads all dynamic events, in the order of their creation.
///
/// # Errors
/// The files cannot be read, usually because the caller is not root.
pub fn read(tracefs: &Tracefs) -> anyhow::Result<Vec<DynamicEvent>> {
    let root = tracefs.root();
    let listed = definitions(tracefs)?;
    let hits = hits::of(root, &listed);
    let status = status::read(root).with_context(|| format!("cannot read {}", root.join("user_events_status")))?;
    let recorded_by_probe_add = OwnershipList::of_probe_add().read();
    let of_runs = OwnershipList::of_runs().read();
    let run_of = |entry: &str| {
        of_runs
            .iter()
            .filter_map(|recorded| ownership_list::parse_run_entry(recorded))
            .find_map(|(owner, bare)| (bare == entry).then_some(owner))
    };
    let entry = |(listed, hits): (EventDefinition, Option<Hits>)| {
        let entry = ownership_list::entry(&listed.name, &listed.line);
        let creator = match Owner::of_event(&listed.name).or_else(|| run_of(&entry)) {
            Some(owner) => Creator::Run(owner),
            None if recorded_by_probe_add.contains(&entry) => Creator::ProbeAdd,
            None => Creator::Other,
        };
        let is_user = groups::is_of_user_events(&listed.name.subsystem);
        let listeners = || status.iter().find(|status| status.event == listed.name.name).map(|status| status.used_by.clone());
        DynamicEvent { creator, hits, listeners: is_user.then(listeners).flatten(), name: listed.name, line: listed.line }
    };
    Ok(listed.into_iter().zip(hits).map(entry).collect())
}

/// Reads the lines of `dynamic_events`, with the events' names in tracefs.
///
/// # Errors
/// The file cannot be read.
pub fn definitions(tracefs: &Tracefs) -> anyhow::Result<Vec<EventDefinition>> {
    let file = DynamicEvents::of(tracefs);
    let mut listed = file.read().with_context(|| format!("cannot read {}", tracefs.root().join("dynamic_events")))?;
    name_formats(tracefs, &mut listed);
    Ok(listed)
}

/// Sets the names of user events with several formats to the ones in tracefs: `dynamic_events` shows all of them under
/// the name that programs use.
fn name_formats(tracefs: &Tracefs, listed: &mut [EventDefinition]) {
    let mut formats = tracefs.names(USER_MULTI).unwrap_or_default();
    if formats.is_empty() {
        return;
    }
    let mut single = HashSet::new();
    for listed in listed.iter_mut().filter(|listed| listed.name.subsystem == USER) {
        let Some(fields) = user_fields(&listed.line) else { continue };
        let is = |subsystem: &str, name: &str| {
            tracefs.format(subsystem, name).is_ok_and(|format| same_fields(&fields, &format.own_fields().collect::<Vec<_>>()))
        };
        let name = listed.name.name.clone();
        if !single.contains(&name) && is(USER, &name) {
            single.insert(name);
        } else if let Some(at) = formats.iter().position(|format| is_format_of(format, &name) && is(USER_MULTI, format)) {
            listed.name = EventName { subsystem: USER_MULTI.to_owned(), name: formats.remove(at) };
        }
    }
}

/// Returns whether `format` is `NAME.N`, with a hexadecimal N.
fn is_format_of(format: &str, name: &str) -> bool {
    format.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')).is_some_and(|number| number.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn user_fields(line: &str) -> Option<Vec<Field>> {
    match grammar::parse(line).ok()? {
        Line::Make(probe) => match probe.place {
            ProbePoint::User { fields, .. } => Some(fields),
            _ => None,
        },
        Line::Remove(_) => None,
    }
}

/// Returns whether a format file describes exactly the declared fields.
fn same_fields(declared: &[Field], format: &[&FormatField]) -> bool {
    declared.len() == format.len() && declared.iter().zip(format).all(|(declared, field)| same_field(declared, field))
}

/// Compares a declared field with one of a format file, which puts the brackets of an array behind the name or omits
/// them.
fn same_field(declared: &Field, field: &FormatField) -> bool {
    let bare = |kind: &str| kind.split('[').next().unwrap_or_default().trim_end().to_owned();
    let length = declared.kind.split_once('[').and_then(|(_, length)| length.strip_suffix(']')?.parse::<u32>().ok());
    let bytes = length.or(declared.size);
    declared.name == field.name && bare(&declared.kind) == bare(&field.type_name) && bytes.is_none_or(|bytes| bytes == field.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::format::Format;

    #[test]
    fn formats_are_matched_by_their_fields() {
        let format = Format::parse(
            "name: x\nID: 1\n\tfield:u32 a;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:char b[20];\toffset:12;\tsize:20;\tsigned:1;\n\
             \tfield:__rel_loc char c[];\toffset:32;\tsize:4;\tsigned:1;\n\tfield:struct s d;\toffset:36;\tsize:3;\tsigned:1;\n",
        )
        .unwrap();
        let is = |line: &str| same_fields(&user_fields(line).unwrap(), &format.own_fields().collect::<Vec<_>>());
        assert!(is("u:x u32 a; char[20] b; __rel_loc char[] c; struct s d 3"));
        for other in [
            "u:x u32 a; char[20] b; __rel_loc char[] c",
            "u:x u64 a; char[20] b; __rel_loc char[] c; struct s d 3",
            "u:x u32 a; char[21] b; __rel_loc char[] c; struct s d 3",
            "u:x u32 a; char[20] b; __data_loc char[] c; struct s d 3",
            "u:x u32 a; char[20] b; __rel_loc char[] c; struct s d 4",
        ] {
            assert!(!is(other), "{other}");
        }
    }

    #[test]
    fn names_of_formats_have_a_hexadecimal_number() {
        assert!(is_format_of("test.1f", "test"));
        assert!(!is_format_of("test.x", "test") && !is_format_of("testing.1", "test"));
    }
}
