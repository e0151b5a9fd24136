//! `rtrace list`: what can be traced here, and what rtrace knows of it.
//!
//! One line a thing, its columns apart by blanks, the name first, so that grep, cut and a person read the same lines. A word that is the exact name of
//! one syscall, table, struct or group shows all of it; structs stand among the tables. Nothing is opened but tracefs's directories.

mod row;
mod structs;
pub mod usdt;

use super::ExitCode;
use super::stdout;
use crate::beauty::row::{Groups, Struct, Syscall, Table, TableKind};
use crate::beauty::tables::{STRUCTS, SYSCALLS, TABLES};
use crate::kernel::tracefs::{Tracefs, TracefsError};
use crate::request::Listing;
use crate::request::select::GROUPS;
use crate::text::{glob, near};
use anyhow::bail;
use std::io::{self, Write};

/// What is listed: the tables that were built in, and this kernel's events.
pub struct Known<'a> {
    pub syscalls: &'a [Syscall],
    pub tables: &'a [&'a Table],
    pub structs: &'a [&'static Struct],
    pub tracefs: Result<Tracefs, TracefsError>,
}

/// Lists to stdout.
///
/// # Errors
/// Nothing matches (with near names), or events were asked for and tracefs cannot be read.
pub fn list(what: Listing, pattern: Option<&str>) -> anyhow::Result<ExitCode> {
    let known = Known { syscalls: SYSCALLS, tables: TABLES, structs: STRUCTS, tracefs: Tracefs::find() };
    let mut text = Vec::new();
    write(what, pattern, &known, &mut text)?;
    stdout::print(&text)
}

/// Writes the lines.
///
/// # Errors
/// As [`list`].
pub fn write(what: Listing, pattern: Option<&str>, known: &Known, out: &mut Vec<u8>) -> anyhow::Result<()> {
    let lister = Lister { known, pattern };
    let asked = |one: Listing| what == one || what == Listing::Everything;
    if asked(Listing::Syscalls) {
        lister.syscalls(out)?;
    }
    if asked(Listing::Groups) {
        lister.groups(out)?;
    }
    if asked(Listing::Tables) {
        lister.tables(out)?;
        lister.structs(out)?;
    }
    if asked(Listing::Events) {
        match lister.events(out) {
            // Beside other things, events that cannot be seen are said to be so.
            Err(error) if what == Listing::Everything && !out.is_empty() => writeln!(out, "# no events: {error}")?,
            Err(error) if what == Listing::Everything => bail!("{} (events: {error})", lister.nothing(what)),
            result => result?,
        }
    }
    if out.is_empty() { bail!(lister.nothing(what)) } else { Ok(()) }
}

struct Lister<'a> {
    known: &'a Known<'a>,
    pattern: Option<&'a str>,
}

impl Lister<'_> {
    fn matches(&self, name: &str) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern.as_bytes(), name.as_bytes()))
    }

    /// The pattern is this very name.
    fn is(&self, name: &str) -> bool {
        self.pattern == Some(name)
    }

    fn syscalls(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let events = self.known.tracefs.as_ref().map(Tracefs::syscalls).ok();
        let here = |event: &str| match &events {
            Some(events) if events.iter().any(|name| name == event) => "event",
            Some(_) => "raw",
            None => "?",
        };
        for syscall in self.known.syscalls {
            if self.is(syscall.name) || (self.is(syscall.event) && self.pattern.is_some_and(|name| !self.has_row(name))) {
                row::whole(syscall, here(syscall.event), out)?;
            } else if self.matches(syscall.name) {
                row::line(syscall, here(syscall.event), out)?;
            }
        }
        let unknown = events.iter().flatten().filter(|event| self.known.syscalls.iter().all(|syscall| syscall.event != **event));
        for event in unknown.filter(|event| self.matches(event)) {
            writeln!(out, "{event:<24} {:>4} event {:<24} printed by the types in its event's format file", "-", "-")?;
        }
        Ok(())
    }

    fn has_row(&self, name: &str) -> bool {
        self.known.syscalls.iter().any(|syscall| syscall.name == name)
    }

    fn groups(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let bare = self.pattern.map(|pattern| pattern.strip_prefix('%').unwrap_or(pattern));
        for (name, group) in GROUPS {
            if bare.is_some_and(|pattern| !glob::matches(pattern.as_bytes(), name.as_bytes())) {
                continue;
            }
            let members: Vec<&str> = self.known.syscalls.iter().filter(|s| s.groups.contains(*group)).map(|s| s.name).collect();
            writeln!(out, "{:<24} {:>4} {}", format!("%{name}"), members.len(), members.join(" "))?;
        }
        Ok(())
    }

    fn tables(&self, out: &mut Vec<u8>) -> io::Result<()> {
        for table in self.known.tables {
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
        // A constant's name finds its tables.
        let Some(pattern) = self.pattern else { return Ok(()) };
        for table in self.known.tables {
            let found = |name: &str| pattern.contains('_') && glob::matches(pattern.as_bytes(), name.as_bytes());
            for entry in table.entries.iter().filter(|entry| found(entry.name)) {
                writeln!(out, "{:<24} {:<18} {} {}", entry.name, format!("{:#x}", entry.value), table.name, table.header)?;
            }
        }
        Ok(())
    }

    fn structs(&self, out: &mut Vec<u8>) -> io::Result<()> {
        for of in self.known.structs.iter().filter(|of| self.matches(of.name)) {
            if self.is(of.name) { structs::whole(of, out)? } else { structs::line(of, out)? }
        }
        Ok(())
    }

    fn events(&self, out: &mut Vec<u8>) -> anyhow::Result<()> {
        let tracefs = self.known.tracefs.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
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

    /// The sentence when nothing matches.
    fn nothing(&self, what: Listing) -> String {
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
        self.known.syscalls.iter().map(|syscall| syscall.name.to_owned()).collect()
    }

    fn table_names(&self) -> Vec<String> {
        let tables = self.known.tables.iter().map(|table| table.name);
        tables.chain(self.known.structs.iter().map(|of| of.name)).map(str::to_owned).collect()
    }

    fn event_names(&self) -> Vec<String> {
        let all = self.known.tracefs.as_ref().ok().and_then(|tracefs| tracefs.matching("*", "*").ok()).unwrap_or_default();
        // Whoever leaves the subsystem out means the name.
        let whole = self.pattern.is_some_and(|pattern| pattern.contains(':'));
        all.into_iter().map(|event| if whole { event.to_string() } else { event.name }).collect()
    }
}

/// The constants of a table, and of the enums among its bits.
fn constants(table: &Table, out: &mut Vec<u8>) -> io::Result<()> {
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

/// A syscall's groups, each by its first name.
fn group_names(groups: Groups) -> Vec<String> {
    let first = |bit: Groups| GROUPS.iter().find(|(_, group)| *group == bit).map(|(name, _)| format!("%{name}"));
    groups.iter().filter_map(first).collect()
}

#[cfg(test)]
mod tests;
