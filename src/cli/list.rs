//! `rtrace list`: lists what can be traced on this machine, and the tables that rtrace decodes it with.
//!
//! Each line is one syscall, group, table, struct or event. It begins with the name, and blanks separate the columns,
//! so that grep, cut and a person read the same lines. The exact name of a syscall, table, struct or group shows all
//! that is known about it; structs are listed among the tables. Of the machine, only tracefs is read.

mod row;
mod structs;
pub mod usdt;

use super::ExitCode;
use super::stdout;
use crate::beauty::row::{ConstantTable, Groups, Struct, Syscall, TableKind};
use crate::beauty::tables::{STRUCTS, SYSCALLS, TABLES};
use crate::kernel::tracefs::{Tracefs, TracefsError};
use crate::request::Listing;
use crate::request::select::GROUPS;
use crate::text::{glob, near};
use anyhow::bail;
use std::io::{self, Write};

/// The things to list: rtrace's built-in tables, and the events in this kernel's tracefs.
pub struct Catalog<'a> {
    pub syscalls: &'a [Syscall],
    pub tables: &'a [&'a ConstantTable],
    pub structs: &'a [&'static Struct],
    pub tracefs: Result<Tracefs, TracefsError>,
}

/// Prints the list on stdout.
///
/// # Errors
/// Nothing matches (the message suggests similar names), or events were asked for and tracefs cannot be read.
pub fn list(what: Listing, pattern: Option<&str>) -> anyhow::Result<ExitCode> {
    let catalog = Catalog { syscalls: SYSCALLS, tables: TABLES, structs: STRUCTS, tracefs: Tracefs::find() };
    let mut text = Vec::new();
    write(what, pattern, &catalog, &mut text)?;
    stdout::print(&text)
}

/// Writes the lines of the list.
///
/// # Errors
/// Those of [`list`].
pub fn write(what: Listing, pattern: Option<&str>, catalog: &Catalog, out: &mut Vec<u8>) -> anyhow::Result<()> {
    let lister = Lister { catalog, pattern };
    let is_asked_for = |one: Listing| what == one || what == Listing::Everything;
    if is_asked_for(Listing::Syscalls) {
        lister.syscalls(out)?;
    }
    if is_asked_for(Listing::Groups) {
        lister.groups(out)?;
    }
    if is_asked_for(Listing::Tables) {
        lister.tables(out)?;
        lister.structs(out)?;
    }
    if is_asked_for(Listing::Events) {
        match lister.events(out) {
            // If other things have been listed, an unreadable tracefs is a remark and not an error.
            Err(error) if what == Listing::Everything && !out.is_empty() => writeln!(out, "# no events: {error}")?,
            Err(error) if what == Listing::Everything => bail!("{} (events: {error})", lister.no_match(what)),
            result => result?,
        }
    }
    if out.is_empty() { bail!(lister.no_match(what)) } else { Ok(()) }
}

/// Writes those things of a catalog that match a pattern; all of them without a pattern.
struct Lister<'a> {
    catalog: &'a Catalog<'a>,
    pattern: Option<&'a str>,
}

impl Lister<'_> {
    fn matches(&self, name: &str) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern.as_bytes(), name.as_bytes()))
    }

    /// Whether the pattern is exactly this name.
    fn is(&self, name: &str) -> bool {
        self.pattern == Some(name)
    }

    fn syscalls(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let events = self.catalog.tracefs.as_ref().map(Tracefs::syscalls).ok();
        let seen_by = |event: &str| match &events {
            Some(events) if events.iter().any(|name| name == event) => "event",
            Some(_) => "raw",
            None => "?",
        };
        for syscall in self.catalog.syscalls {
            if self.is(syscall.name) || (self.is(syscall.event) && self.pattern.is_some_and(|name| !self.has_row(name))) {
                row::full(syscall, seen_by(syscall.event), out)?;
            } else if self.matches(syscall.name) {
                row::line(syscall, seen_by(syscall.event), out)?;
            }
        }
        let unknown = events.iter().flatten().filter(|event| self.catalog.syscalls.iter().all(|syscall| syscall.event != **event));
        for event in unknown.filter(|event| self.matches(event)) {
            writeln!(out, "{event:<24} {:>4} event {:<24} not in rtrace's tables: printed by the event's format file", "-", "-")?;
        }
        Ok(())
    }

    fn has_row(&self, name: &str) -> bool {
        self.catalog.syscalls.iter().any(|syscall| syscall.name == name)
    }

    fn groups(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let bare = self.pattern.map(|pattern| pattern.strip_prefix('%').unwrap_or(pattern));
        for (name, group) in GROUPS {
            if bare.is_some_and(|pattern| !glob::matches(pattern.as_bytes(), name.as_bytes())) {
                continue;
            }
            let members: Vec<&str> = self.catalog.syscalls.iter().filter(|s| s.groups.contains(*group)).map(|s| s.name).collect();
            writeln!(out, "{:<24} {:>4} {}", format!("%{name}"), members.len(), members.join(" "))?;
        }
        Ok(())
    }

    fn tables(&self, out: &mut Vec<u8>) -> io::Result<()> {
        for table in self.catalog.tables {
            if self.matches(table.name) {
                let kind = match table.kind {
                    TableKind::Flags => "flags",
                    TableKind::Enum => "enum",
                };
                writeln!(out, "{:<24} {:>4} {kind:<5} {}", table.name, table.entries.len(), table.header)?;
                if self.is(table.name) {
                    constants(table, out)?;
                }
            }
        }
        // The name of a constant finds the tables that have it.
        let Some(pattern) = self.pattern else { return Ok(()) };
        for table in self.catalog.tables {
            let found = |name: &str| pattern.contains('_') && glob::matches(pattern.as_bytes(), name.as_bytes());
            for entry in table.entries.iter().filter(|entry| found(entry.name)) {
                writeln!(out, "{:<24} {:<18} {} {}", entry.name, format!("{:#x}", entry.value), table.name, table.header)?;
            }
        }
        Ok(())
    }

    fn structs(&self, out: &mut Vec<u8>) -> io::Result<()> {
        for of in self.catalog.structs.iter().filter(|of| self.matches(of.name)) {
            if self.is(of.name) { structs::full(of, out)? } else { structs::line(of, out)? }
        }
        Ok(())
    }

    fn events(&self, out: &mut Vec<u8>) -> anyhow::Result<()> {
        let tracefs = self.catalog.tracefs.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
        let found = match self.pattern.and_then(|pattern| pattern.split_once(':')) {
            Some((subsystem, name)) => tracefs.matching(subsystem, name)?,
            None => tracefs
                .matching("*", "*")?
                .into_iter()
                .filter(|event| self.matches(&event.name) || self.matches(&event.subsystem))
                .collect(),
        };
        for event in found {
            writeln!(out, "{event}")?;
        }
        Ok(())
    }

    /// Returns the error message for a pattern that matches nothing.
    fn no_match(&self, what: Listing) -> String {
        let (noun, mut names): (_, Vec<String>) = match what {
            Listing::Syscalls => ("syscall", self.syscall_names()),
            Listing::Groups => ("group", GROUPS.iter().map(|(name, _)| format!("%{name}")).collect()),
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

/// Writes the constants of a table, those of its multi-bit fields, and those whose values differ in other ABIs.
fn constants(table: &ConstantTable, out: &mut Vec<u8>) -> io::Result<()> {
    for entry in table.entries {
        writeln!(out, "    {:<18} {}", format!("{:#x}", entry.value), entry.name)?;
    }
    for field in table.fields {
        writeln!(out, "    {:<18} one of {}:", format!("{:#x}", field.mask), field.table.name)?;
        for entry in field.table.entries {
            writeln!(out, "        {:<14} {}", format!("{:#x}", entry.value), entry.name)?;
        }
    }
    for (abi, twin) in table.per_abi {
        let differing = twin.entries.iter().filter(|entry| !table.entries.contains(entry));
        let names: Vec<String> = differing.map(|entry| format!("{}={:#x}", entry.name, entry.value)).collect();
        writeln!(out, "    in {}: {}", abi.name(), names.join(" "))?;
    }
    Ok(())
}

/// Returns the names of groups; of a group with several names, the first one.
fn group_names(groups: Groups) -> Vec<String> {
    let first = |bit: Groups| GROUPS.iter().find(|(_, group)| *group == bit).map(|(name, _)| format!("%{name}"));
    groups.iter().filter_map(first).collect()
}

#[cfg(test)]
mod tests;
