//! Emits the list that leads from the number of an ioctl command to the table that names it.

use super::emit::{ABIS, EmittedTable};
use super::macro_row::Parameter;
use super::macros::Macro;
use super::resolve::Resolved;
use super::tables::TableRow;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// In the list of commands: the number has several names, and: tables of certain files have the number.
const SEVERAL: u16 = 0x7fff;
const OF_FILES: u16 = 0x8000;

/// Emits the tables of commands, and for each ABI the sorted commands with the index of a table that names each.
///
/// A number that several tables name has its names in an extra table, joined by ` or `. Tables of the commands of
/// certain files only (`of=`) are left out there if another table has the number.
pub fn emit(rows: &[TableRow], tables: &[EmittedTable], macros: &[Macro]) -> Result<String, fmt::Error> {
    // In the order of the rows, which is that of the alternatives.
    let commands: Vec<(&TableRow, &EmittedTable)> =
        rows.iter().filter(|row| row.commands).filter_map(|row| Some((row, tables.iter().find(|table| table.name == row.name)?))).collect();
    let mut out = String::new();
    let mut lists = Vec::new();
    let mut alternatives = Vec::new();
    for abi in 0..ABIS.len() {
        let (list, joined) = of_abi(&commands, abi);
        lists.push(list);
        alternatives.push(joined);
    }
    for (abi, joined) in alternatives.iter().enumerate() {
        writeln!(
            out,
            "static ALTERNATIVES_{}: ConstantTable = ConstantTable {{ name: \"ioctl_alternatives\", kind: TableKind::Enum, bits: 32, header: \"\", prefix: \"\", entries: &[",
            ABIS[abi].to_uppercase()
        )?;
        for (value, name) in joined {
            writeln!(out, "    TableConstant {{ value: {value:#x}, name: {name:?} }},")?;
        }
        writeln!(out, "], fields: &[], per_abi: &[] }};")?;
    }
    writeln!(out, "/// The tables of ioctl commands, each with the files whose commands these are; none for any file.")?;
    writeln!(out, "pub static COMMAND_TABLES: [CommandTable; {}] = [", commands.len())?;
    for (row, table) in &commands {
        writeln!(out, "    CommandTable {{ table: &constants::{}, files: &{:?} }},", table.name.to_uppercase(), row.files)?;
    }
    writeln!(out, "];\n/// The numbers that have several names, by ABI.")?;
    let names: Vec<String> = ABIS.iter().map(|abi| format!("&ALTERNATIVES_{}", abi.to_uppercase())).collect();
    writeln!(out, "pub static COMMAND_ALTERNATIVES: [&ConstantTable; 4] = [{}];", names.join(", "))?;
    writeln!(
        out,
        "/// The ioctl commands in ascending order, by ABI: the number, and the index of the table in `COMMAND_TABLES` that names it, or\n/// {SEVERAL:#x} if the names are in `COMMAND_ALTERNATIVES`. The index has the bit {OF_FILES:#x} if tables of certain files have the\n/// number.\npub static COMMANDS: [&[(u32, u16)]; 4] = ["
    )?;
    for list in &lists {
        writeln!(out, "    &{list:?},")?;
    }
    writeln!(out, "];")?;
    emit_macros(&mut out, &commands, macros)?;
    Ok(out)
}

/// Emits the macros that make commands of parameters, in the order of their tables.
fn emit_macros(out: &mut String, commands: &[(&TableRow, &EmittedTable)], macros: &[Macro]) -> fmt::Result {
    writeln!(out, "/// The macros that make ioctl commands of parameters.\npub static COMMAND_MACROS: &[CommandMacro] = &[")?;
    for (of, table) in macros.iter().filter_map(|of| Some((of, commands.iter().position(|(row, _)| row.name == of.table)?))) {
        writeln!(out, "    CommandMacro {{ name: {:?}, table: {table}, first: {:?}, parameters: &[", of.name, of.first)?;
        for parameter in &of.parameters {
            match parameter {
                Parameter::Size => writeln!(out, "        CommandParameter::Size {{ unit: {} }},", of.unit)?,
                Parameter::Added { table, count } => {
                    let table = table.as_ref().map_or("None".to_string(), |table| format!("Some(&constants::{})", table.to_uppercase()));
                    writeln!(out, "        CommandParameter::Added {{ count: {count}, table: {table} }},")?;
                }
            }
        }
        writeln!(out, "    ] }},")?;
    }
    writeln!(out, "];")
}

/// Commands, and the index of the table or of the list of tables that have each.
type Commands = Vec<(u32, u16)>;
/// Commands with several names, and these names joined by ` or `.
type JoinedNames = Vec<(u64, String)>;

/// Returns the commands of an ABI with the indices of their tables, and the joined names of those with several.
fn of_abi(commands: &[(&TableRow, &EmittedTable)], abi: usize) -> (Commands, JoinedNames) {
    let mut found: BTreeMap<u64, Vec<(usize, &str)>> = BTreeMap::new();
    for (index, (_, table)) in commands.iter().enumerate() {
        let own: &Resolved = table.twins.iter().find(|(other, _)| *other == abi).map_or(&table.base, |(_, twin)| twin);
        own.entries.iter().for_each(|entry| found.entry(entry.value).or_default().push((index, &entry.name)));
    }
    let (mut list, mut alternatives) = (Vec::new(), Vec::new());
    for (value, mut named) in found {
        let is_of_any_file = |index: usize| commands[index].0.files.is_empty();
        let of_files = if named.iter().all(|(index, _)| is_of_any_file(*index)) { 0 } else { OF_FILES };
        if named.iter().any(|(index, _)| is_of_any_file(*index)) {
            named.retain(|(index, _)| is_of_any_file(*index));
        }
        let mut names: Vec<&str> = Vec::new();
        named.iter().for_each(|(_, name)| {
            if !names.contains(name) {
                names.push(name)
            }
        });
        let Ok(number) = u32::try_from(value) else { continue };
        match &named[..] {
            [(only, _), ..] if names.len() == 1 => list.push((number, *only as u16 | of_files)),
            _ => {
                list.push((number, SEVERAL | of_files));
                alternatives.push((value, names.join(" or ")));
            }
        }
    }
    (list, alternatives)
}
