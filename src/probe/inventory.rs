//! Every dynamic event of this kernel: what it is, whose it is, how often it was hit.

use super::dynamic_events::{DynamicEvents, Listed};
use super::grammar::{self, Field, Line, Place};
use super::groups::{self, USER, USER_MULTI};
use super::hits::{self, Hits};
use super::kept::{self, Kept};
use super::owner::Owner;
use super::user_events::status;
use crate::kernel::format::FormatField;
use crate::kernel::tracefs::{EventName, Tracefs};
use anyhow::Context;
use std::collections::HashSet;

/// A dynamic event.
#[derive(Clone, Debug)]
pub struct Entry {
    /// As tracefs has it.
    pub name: EventName,
    /// As `dynamic_events` shows it.
    pub line: String,
    pub whose: Whose,
    pub hits: Option<Hits>,
    /// Who listens to a user event (`ftrace`, `perf`); `None` for all others, of which the kernel does not say it.
    pub listeners: Option<Vec<String>>,
}

/// Who made an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// `rtrace probe add`
    ProbeAdd,
    /// A run of rtrace's, for itself.
    Run(Owner),
    Other,
}

impl Entry {
    /// A user event's fields.
    pub fn user_fields(&self) -> Option<Vec<Field>> {
        user_fields(&self.line)
    }

    /// The name that a user event's program gives it: of several formats, the one in tracefs has a number behind it.
    pub fn registered_name(&self) -> &str {
        match self.name.name.rsplit_once('.') {
            Some((name, _)) if self.name.subsystem == USER_MULTI => name,
            _ => &self.name.name,
        }
    }
}

/// Whether an event is for `rtrace probe del` to take away: all probes of its name are `rtrace probe add`'s, for they go together.
pub fn is_ours(all: &[Entry], name: &EventName) -> bool {
    all.iter().filter(|entry| entry.name == *name).all(|entry| entry.whose == Whose::ProbeAdd)
}

/// All, in the order in which they were made.
///
/// # Errors
/// The files cannot be read: in general, whoever asks is not root.
pub fn read(tracefs: &Tracefs) -> anyhow::Result<Vec<Entry>> {
    let root = tracefs.root();
    let listed = listed(tracefs)?;
    let hits = hits::of(root, &listed);
    let status = status::read(root).with_context(|| format!("cannot read {}", root.join("user_events_status")))?;
    let kept = Kept::here().read();
    let of_runs = Kept::of_runs().read();
    let of_run =
        |entry: &str| of_runs.iter().filter_map(|noted| kept::of_run(noted)).find_map(|(owner, bare)| (bare == entry).then_some(owner));
    let entry = |(listed, hits): (Listed, Option<Hits>)| {
        let entry = kept::entry(&listed.name, &listed.line);
        let whose = match Owner::of_event(&listed.name).or_else(|| of_run(&entry)) {
            Some(owner) => Whose::Run(owner),
            None if kept.contains(&entry) => Whose::ProbeAdd,
            None => Whose::Other,
        };
        let is_user = groups::is_of_user_events(&listed.name.subsystem);
        let listeners = || status.iter().find(|status| status.event == listed.name.name).map(|status| status.used_by.clone());
        Entry { whose, hits, listeners: is_user.then(listeners).flatten(), name: listed.name, line: listed.line }
    };
    Ok(listed.into_iter().zip(hits).map(entry).collect())
}

/// Their lines, by the names that tracefs has for them.
///
/// # Errors
/// The file cannot be read.
pub fn listed(tracefs: &Tracefs) -> anyhow::Result<Vec<Listed>> {
    let file = DynamicEvents::of(tracefs);
    let mut listed = file.read().with_context(|| format!("cannot read {}", tracefs.root().join("dynamic_events")))?;
    name_formats(tracefs, &mut listed);
    Ok(listed)
}

/// Gives user events of several formats the names that tracefs has for them: `dynamic_events` shows them all by the one that programs use.
fn name_formats(tracefs: &Tracefs, listed: &mut [Listed]) {
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

/// `NAME.N`, N being hexadecimal.
fn is_format_of(format: &str, name: &str) -> bool {
    format.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')).is_some_and(|number| number.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn user_fields(line: &str) -> Option<Vec<Field>> {
    match grammar::parse(line).ok()? {
        Line::Make(probe) => match probe.place {
            Place::User { fields, .. } => Some(fields),
            _ => None,
        },
        Line::Remove(_) => None,
    }
}

/// Whether a format file describes just the fields that were declared.
fn same_fields(declared: &[Field], format: &[&FormatField]) -> bool {
    declared.len() == format.len() && declared.iter().zip(format).all(|(declared, field)| same_field(declared, field))
}

/// A format file has an array's brackets behind the name, or nowhere.
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
    fn formats_are_told_by_their_fields() {
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
    fn names_of_formats() {
        assert!(is_format_of("test.1f", "test"));
        assert!(!is_format_of("test.x", "test") && !is_format_of("testing.1", "test"));
    }
}
