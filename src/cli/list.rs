//! `rtrace list`: lists what can be traced on this machine, and the tables that rtrace decodes it with.
//!
//! Each line is one syscall, group, table, struct or event. It begins with the name, and blanks separate the columns,
//! so that grep, cut and a person read the same lines. The exact name of a syscall, table, struct or group shows all
//! that is known about it; structs are listed among the tables. Of the machine, only tracefs is read. With `--json`,
//! each thing is an object that has everything that is known about it.

mod json;
mod row;
mod structs;
mod text;
pub mod usdt;

use super::ExitCode;
use super::stdout;
use crate::beauty::lookup::requests;
use crate::beauty::row::{ConstantTable, Groups, Struct, StructLayout, Syscall, TableConstant};
use crate::beauty::tables::{STRUCTS, SYSCALLS, TABLES};
use crate::kernel::tracefs::{EventName, Tracefs, TracefsError};
use crate::request::select::{GROUPS, REQUESTS};
use crate::request::{AnswerFormat, Listing};
use crate::say;
use crate::text::{glob, near};
use anyhow::bail;

/// The things to list: rtrace's built-in tables, and the events in this kernel's tracefs.
pub struct Catalog<'a> {
    /// The rows of the syscalls, in the order in which they are listed.
    pub syscalls: &'a [Syscall],
    /// The tables of constants, in the order in which they are listed.
    pub tables: &'a [&'a ConstantTable],
    /// The structs, in the order in which they are listed.
    pub structs: &'a [&'static Struct],
    /// Where this kernel's events are, or why they cannot be listed.
    pub tracefs: Result<Tracefs, TracefsError>,
}

/// The things of a catalog that match a pattern, in the order in which they are listed.
pub struct Found<'a> {
    items: Vec<Item<'a>>,
    /// Why there are no events among these things, although the request includes events.
    no_events: Option<String>,
}

/// A thing that is listed. `whole` means that the pattern is exactly its name.
enum Item<'a> {
    Syscall {
        row: &'a Syscall,
        seen_by: Option<SeenBy>,
        whole: bool,
    },
    /// A syscall that has an event in this kernel, but no row in rtrace's tables.
    SyscallWithoutRow {
        event: String,
    },
    Group {
        name: &'static str,
        members: Vec<&'a str>,
    },
    Table {
        table: &'a ConstantTable,
        whole: bool,
    },
    /// A constant whose name matches the pattern.
    Constant {
        constant: &'a TableConstant,
        table: &'a ConstantTable,
    },
    Struct {
        of: &'static Struct,
        whole: bool,
    },
    Event(EventName),
}

/// The tracepoints that show a syscall on this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeenBy {
    /// The syscall's own tracepoints.
    Event,
    /// `raw_syscalls:sys_enter` and `raw_syscalls:sys_exit`.
    RawSyscalls,
}

/// Prints the list on stdout.
///
/// # Errors
/// Nothing matches (the message suggests similar names), or events were asked for and tracefs cannot be read.
pub fn list(what: Listing, pattern: Option<&str>, format: AnswerFormat) -> anyhow::Result<ExitCode> {
    let catalog = Catalog { syscalls: SYSCALLS, tables: TABLES, structs: STRUCTS, tracefs: Tracefs::find() };
    let found = find(what, pattern, &catalog)?;
    match format {
        AnswerFormat::Text => stdout::print(&text::lines(&found)?),
        AnswerFormat::Json => {
            if let Some(why) = &found.no_events {
                say!("rtrace: no events are listed: {why}");
            }
            super::json::print("list", json::objects(&found, catalog.tracefs.as_ref().ok()))
        }
    }
}

/// Finds the things that match a pattern, or all of them if there is no pattern.
///
/// # Errors
/// Those of [`list`].
pub fn find<'a>(what: Listing, pattern: Option<&str>, catalog: &'a Catalog<'a>) -> anyhow::Result<Found<'a>> {
    let finder = Finder { catalog, pattern };
    let is_asked_for = |one: Listing| what == one || what == Listing::Everything;
    let mut items = Vec::new();
    let mut no_events = None;
    if is_asked_for(Listing::Syscalls) {
        finder.syscalls(&mut items);
    }
    if is_asked_for(Listing::Groups) {
        finder.groups(&mut items);
    }
    if is_asked_for(Listing::Tables) {
        finder.tables(&mut items);
        finder.structs(&mut items);
    }
    if is_asked_for(Listing::Events) {
        match finder.events() {
            Ok(events) => items.extend(events),
            // If other things match, an unreadable tracefs is reported as a remark and not as an error.
            Err(error) if what == Listing::Everything && !items.is_empty() => no_events = Some(error.to_string()),
            Err(error) if what == Listing::Everything => bail!("{} (events: {error})", finder.no_match(what)),
            Err(error) => return Err(error),
        }
    }
    if items.is_empty() { bail!(finder.no_match(what)) } else { Ok(Found { items, no_events }) }
}

/// Finds the things of a catalog that match a pattern, or all of them if there is no pattern.
struct Finder<'a, 'p> {
    catalog: &'a Catalog<'a>,
    pattern: Option<&'p str>,
}

impl<'a> Finder<'a, '_> {
    fn matches(&self, name: &str) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern.as_bytes(), name.as_bytes()))
    }

    /// Whether the pattern is exactly this name.
    fn is(&self, name: &str) -> bool {
        self.pattern == Some(name)
    }

    fn syscalls(&self, items: &mut Vec<Item<'a>>) {
        let events = self.catalog.tracefs.as_ref().map(Tracefs::syscalls).ok();
        let seen_by = |event: &str| {
            let events = events.as_ref()?;
            Some(if events.iter().any(|name| name == event) { SeenBy::Event } else { SeenBy::RawSyscalls })
        };
        for row in self.catalog.syscalls {
            let whole = self.is(row.name) || (self.is(row.event) && self.pattern.is_some_and(|name| !self.has_row(name)));
            if whole || self.matches(row.name) {
                items.push(Item::Syscall { row, seen_by: seen_by(row.event), whole });
            }
        }
        let unknown = events.iter().flatten().filter(|event| self.catalog.syscalls.iter().all(|syscall| syscall.event != **event));
        items.extend(unknown.filter(|event| self.matches(event)).map(|event| Item::SyscallWithoutRow { event: event.clone() }));
    }

    fn has_row(&self, name: &str) -> bool {
        self.catalog.syscalls.iter().any(|syscall| syscall.name == name)
    }

    fn groups(&self, items: &mut Vec<Item<'a>>) {
        let bare = self.pattern.map(|pattern| pattern.strip_prefix('%').unwrap_or(pattern));
        for (name, group) in GROUPS {
            if bare.is_none_or(|pattern| glob::matches(pattern.as_bytes(), name.as_bytes())) {
                let members = self.catalog.syscalls.iter().filter(|s| s.groups.contains(*group)).map(|s| s.name).collect();
                items.push(Item::Group { name, members });
            }
        }
        if bare.is_none_or(|pattern| glob::matches(pattern.as_bytes(), REQUESTS.as_bytes())) {
            items.push(Item::Group { name: REQUESTS, members: requests::names().collect() });
        }
    }

    fn tables(&self, items: &mut Vec<Item<'a>>) {
        let tables = self.catalog.tables;
        let matching = tables.iter().filter(|table| self.matches(table.name));
        items.extend(matching.map(|table| Item::Table { table, whole: self.is(table.name) }));
        // The name of a constant finds the tables that have it.
        let Some(pattern) = self.pattern.filter(|pattern| pattern.contains('_')) else { return };
        for table in tables {
            let matching = table.entries.iter().filter(|entry| glob::matches(pattern.as_bytes(), entry.name.as_bytes()));
            items.extend(matching.map(|constant| Item::Constant { constant, table }));
        }
    }

    /// Finds structs. A struct whose members are not known is not listed.
    fn structs(&self, items: &mut Vec<Item<'a>>) {
        let known = self.catalog.structs.iter().filter(|of| !matches!(of.layout, StructLayout::Opaque));
        items.extend(known.filter(|of| self.matches(of.name)).map(|of| Item::Struct { of, whole: self.is(of.name) }));
    }

    fn events(&self) -> anyhow::Result<Vec<Item<'a>>> {
        let tracefs = self.catalog.tracefs.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
        let found = match self.pattern.and_then(|pattern| pattern.split_once(':')) {
            Some((subsystem, name)) => tracefs.matching(subsystem, name)?,
            None => tracefs
                .matching("*", "*")?
                .into_iter()
                .filter(|event| self.matches(&event.name) || self.matches(&event.subsystem))
                .collect(),
        };
        Ok(found.into_iter().map(Item::Event).collect())
    }

    /// Returns the error message for a pattern that matches nothing.
    fn no_match(&self, what: Listing) -> String {
        let (noun, mut names): (_, Vec<String>) = match what {
            Listing::Syscalls => ("syscall", self.syscall_names()),
            Listing::Groups => ("group", GROUPS.iter().map(|(name, _)| *name).chain([REQUESTS]).map(|name| format!("%{name}")).collect()),
            Listing::Tables => ("table, struct or constant", self.table_names()),
            Listing::Events => ("event", self.event_names()),
            Listing::Everything => {
                ("syscall, group, table, struct or event", self.syscall_names().into_iter().chain(self.event_names()).collect())
            }
        };
        if what == Listing::Everything {
            names.extend(self.table_names());
        }
        let pattern = self.pattern.unwrap_or("*");
        let near = near::nearest(pattern, names.iter().map(String::as_str), 4);
        format!("no {noun} matches `{}`{}", pattern.escape_debug(), near::hint(&near))
    }

    fn syscall_names(&self) -> Vec<String> {
        self.catalog.syscalls.iter().map(|syscall| syscall.name.to_owned()).collect()
    }

    fn table_names(&self) -> Vec<String> {
        let tables = self.catalog.tables.iter().map(|table| table.name);
        tables.chain(self.catalog.structs.iter().map(|of| of.name)).map(str::to_owned).collect()
    }

    fn event_names(&self) -> Vec<String> {
        let all = self.catalog.tracefs.as_ref().ok().and_then(|tracefs| tracefs.matching("*", "*").ok()).unwrap_or_default();
        // A pattern without a subsystem is compared with the names of events alone.
        let has_subsystem = self.pattern.is_some_and(|pattern| pattern.contains(':'));
        all.into_iter().map(|event| if has_subsystem { event.to_string() } else { event.name }).collect()
    }
}

/// Returns the names of groups; of a group with several names, the first one.
fn group_names(groups: Groups) -> Vec<String> {
    let first = |bit: Groups| GROUPS.iter().find(|(_, group)| *group == bit).map(|(name, _)| format!("%{name}"));
    groups.iter().filter_map(first).collect()
}

#[cfg(test)]
mod tests;
