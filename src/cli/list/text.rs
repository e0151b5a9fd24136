//! Prints a list as lines of text.

use super::{Found, Item, row, structs};
use crate::beauty::row::{ConstantTable, TableKind};
use std::io::{self, Write};

/// Returns the lines of a list.
///
/// # Errors
/// None in practice: writing to a vector does not fail.
pub fn lines(found: &Found) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    found.items.iter().try_for_each(|item| write(item, &mut out))?;
    if let Some(why) = &found.no_events {
        writeln!(out, "# no events: {why}")?;
    }
    Ok(out)
}

fn write(item: &Item, out: &mut Vec<u8>) -> io::Result<()> {
    match item {
        Item::Syscall { row, seen_by, whole: true } => row::full(row, *seen_by, out),
        Item::Syscall { row, seen_by, whole: false } => row::line(row, *seen_by, out),
        Item::SyscallWithoutRow { event } => {
            writeln!(out, "{event:<24} {:>4} event {:<24} not in rtrace's tables: printed by the event's format file", "-", "-")
        }
        Item::Group { name, members } => writeln!(out, "{:<24} {:>4} {}", format!("%{name}"), members.len(), members.join(" ")),
        Item::Table { table, whole } => {
            writeln!(out, "{:<24} {:>4} {:<5} {}", table.name, table.entries.len(), kind(table), table.header)?;
            if *whole { constants(table, out) } else { Ok(()) }
        }
        Item::Constant { constant, table } => {
            writeln!(out, "{:<24} {:<18} {} {}", constant.name, format!("{:#x}", constant.value), table.name, table.header)
        }
        Item::Struct { of, whole: true } => structs::full(of, out),
        Item::Struct { of, whole: false } => structs::line(of, out),
        Item::Event(name) => writeln!(out, "{name}"),
    }
}

/// Returns the word for how the constants of the table make up a number: as flags or as an enum.
pub fn kind(table: &ConstantTable) -> &'static str {
    match table.kind {
        TableKind::Flags => "flags",
        TableKind::Enum => "enum",
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
