//! Finds the addresses of source lines.

use super::debug::{Debug, Reader, Unit};
use super::die::{Die, DieId};
use crate::text::near;
use anyhow::{anyhow, bail};
use gimli::constants as dw;
use gimli::{LineProgramHeader, Range, Reader as _};
use std::collections::BTreeSet;
use std::rc::Rc;

/// A row of a line table.
#[derive(Clone, Copy, Debug)]
struct Row {
    address: u64,
    file: u64,
    line: u64,
    /// The address is a recommended breakpoint location (`is_stmt`).
    is_statement: bool,
    is_prologue_end: bool,
    is_end: bool,
}

impl Debug {
    /// Returns all addresses at which a line of a file begins, including its inlined copies. The file is named by the
    /// end of its path.
    ///
    /// # Errors
    /// Several files or no file have this name, or the line has no code.
    pub fn addresses_of_line(&self, file: &str, line: u32) -> anyhow::Result<Vec<u64>> {
        let mut paths = BTreeSet::new();
        let (mut found, mut with_code) = (LineAddresses::default(), BTreeSet::new());
        self.each_table(|unit, header| {
            let files = files_called(self, unit, header, file);
            if files.is_empty() {
                return;
            }
            let rows = rows(unit);
            for number in &files {
                if rows.iter().any(|row| row.file == *number) {
                    paths.extend(path(self, unit, header, *number));
                }
            }
            with_code.extend(rows.iter().filter(|row| row.is_statement && !row.is_end && files.contains(&row.file)).map(|row| row.line));
            found.add(&rows, &files, line.into());
        });
        if paths.len() > 1 {
            let list: Vec<String> = paths.iter().take(8).map(|path| path.escape_debug().to_string()).collect();
            bail!("there are several files {}: {}; write a longer part of the path", file.escape_debug(), list.join(", "));
        }
        if paths.is_empty() {
            bail!("the debug information has no source file {} with code{}", file.escape_debug(), self.near_files(file));
        }
        let addresses = found.finish();
        if addresses.is_empty() {
            bail!("{}:{line} has no code{}", file.escape_debug(), around(&with_code, line.into()));
        }
        Ok(addresses)
    }

    /// Returns the addresses of a line of a function, counted from the line of its declaration. `entry` is the
    /// function's address, if it has code that is not inlined.
    ///
    /// # Errors
    /// There is no such function, or the line has no code in it.
    pub fn addresses_in_function(&self, name: &str, entry: Option<u64>, line: u32) -> anyhow::Result<Vec<u64>> {
        let at_entry = entry.and_then(|entry| self.function_at(entry)).map(|function| (function.number, function.chain[0].clone()));
        let (number, function) =
            at_entry.or_else(|| self.function_named(name)).ok_or_else(|| anyhow!("there is no function {}", name.escape_debug()))?;
        let origins = function.with_origins();
        let declared = origins.iter().find_map(|die| Some((die, die.number(dw::DW_AT_decl_file)?, die.number(dw::DW_AT_decl_line)?)));
        let (die, file, first) =
            declared.ok_or_else(|| anyhow!("the debug information does not say on which line {} begins", name.escape_debug()))?;
        let header = die.unit.line_program.as_ref().map(|program| program.header());
        let file = header.and_then(|header| path(self, &die.unit, header, file));
        let file = file.ok_or_else(|| anyhow!("the debug information does not say in which file {} is", name.escape_debug()))?;
        let wanted = first.checked_add(line.into()).and_then(|line| u32::try_from(line).ok());
        let wanted = wanted.ok_or_else(|| anyhow!("{}:{line} is too large a line number", name.escape_debug()))?;
        let called = function.name().unwrap_or_else(|| name.to_owned());
        let mut addresses = self.addresses_of_line(&file, wanted).unwrap_or_default();
        addresses.retain(|address| self.function_at(*address).is_some_and(|function| function.is_or_has(&called)));
        if addresses.is_empty() {
            let base = file.rsplit('/').next().unwrap_or(&file);
            let near = self.lines_around(number, &origins, &file, (first, wanted.into()));
            bail!("{name}:{line}, which is {}:{wanted}, has no code in {name}{near}", base.escape_debug(), name = name.escape_debug());
        }
        Ok(addresses)
    }

    /// Returns a hint which lines before and after a line without code have code, in the function and its inlined
    /// copies, counted from its first line. `function` is the function and its origins; `number` is its unit.
    fn lines_around(&self, number: usize, function: &[Die<'_>], file: &str, (first, wanted): (u64, u64)) -> String {
        let Some(unit) = self.unit(number, false) else { return String::new() };
        let Some(program) = &unit.line_program else { return String::new() };
        let files = files_called(self, &unit, program.header(), file);
        let code = self.code_of(&unit, function);
        let is_in = |row: &Row| code.iter().any(|range| (range.begin..range.end).contains(&row.address));
        let rows = rows(&unit);
        let own = rows.iter().filter(|row| row.is_statement && !row.is_end && row.line >= first && files.contains(&row.file) && is_in(row));
        around(&own.map(|row| row.line - first).collect(), wanted - first)
    }

    /// Returns the address ranges of a function and of its inlined copies in a unit.
    fn code_of(&self, unit: &Rc<Unit>, function: &[Die<'_>]) -> Vec<Range> {
        let ids: Vec<DieId> = function.iter().map(Die::id).collect();
        let mut found = Vec::new();
        let mut cursor = unit.entries();
        while let Ok(Some(entry)) = cursor.next_dfs() {
            if matches!(entry.tag(), dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine) {
                let die = Die { debug: self, in_shared: false, unit: unit.clone(), entry: entry.clone() };
                if ids.contains(&die.id()) || die.reference(dw::DW_AT_abstract_origin).is_some_and(|origin| ids.contains(&origin)) {
                    found.extend(die.ranges());
                }
            }
        }
        found
    }

    /// Returns the end of a function's prologue: the address that the compiler marked, or else the address of the
    /// function's second line.
    pub fn prologue_end(&self, entry: u64, end: u64) -> Option<u64> {
        let function = self.function_at(entry)?;
        let unit = self.unit(function.number, false)?;
        let rows = rows(&unit);
        let mut within: Vec<&Row> = rows.iter().filter(|row| (entry..end).contains(&row.address) && !row.is_end).collect();
        within.sort_by_key(|row| row.address);
        let marked = within.iter().find(|row| row.is_prologue_end && row.address > entry);
        marked.or_else(|| within.iter().find(|row| row.is_statement && row.address > entry)).map(|row| row.address)
    }

    fn each_table(&self, mut visit: impl FnMut(&Unit, &LineProgramHeader<Reader>)) {
        self.find_unit::<()>(|_, unit| {
            if let Some(program) = &unit.line_program {
                visit(unit, program.header());
            }
            std::ops::ControlFlow::Continue(())
        });
    }

    fn near_files(&self, wanted: &str) -> String {
        let mut names = BTreeSet::new();
        self.find_unit::<()>(|_, unit| {
            names.extend(
                unit.name.as_ref().and_then(|name| name.to_string_lossy().ok()).and_then(|name| Some(name.rsplit('/').next()?.to_owned())),
            );
            std::ops::ControlFlow::Continue(())
        });
        near::hint(&near::nearest(wanted, names.iter().map(String::as_str), 3)).escape_debug().to_string()
    }
}

/// The addresses of one line, gathered over all line tables.
#[derive(Default)]
struct LineAddresses {
    with_code: BTreeSet<u64>,
    /// Addresses at which another line begins as well, so that this line has no code there.
    empty: BTreeSet<u64>,
}

impl LineAddresses {
    /// Adds the addresses at which the line begins, but not those of further rows of the same line.
    fn add(&mut self, rows: &[Row], files: &[u64], line: u64) {
        let is_of_line = |row: &Row| row.line == line && files.contains(&row.file) && !row.is_end;
        let mut continues = false;
        for (at, row) in rows.iter().enumerate() {
            if is_of_line(row) && row.is_statement && !continues {
                match rows.get(at + 1) {
                    Some(next) if next.address == row.address && !is_of_line(next) => self.empty.insert(row.address),
                    _ => self.with_code.insert(row.address),
                };
            }
            continues = is_of_line(row) && (row.is_statement || continues);
        }
    }

    fn finish(self) -> Vec<u64> {
        let chosen = if self.with_code.is_empty() { self.empty } else { self.with_code };
        chosen.into_iter().collect()
    }
}

/// Maximum number of rows that are read of one table.
const ROWS_MAX: usize = 4 << 20;

fn rows(unit: &Unit) -> Vec<Row> {
    let mut found = Vec::new();
    let Some(program) = unit.line_program.clone() else { return found };
    let mut rows = program.rows();
    while let Ok(Some((_, row))) = rows.next_row() {
        if found.len() >= ROWS_MAX {
            break;
        }
        found.push(Row {
            address: row.address(),
            file: row.file_index(),
            line: row.line().map_or(0, |line| line.get()),
            is_statement: row.is_stmt(),
            is_prologue_end: row.prologue_end(),
            is_end: row.end_sequence(),
        });
    }
    found
}

/// Returns the numbers of the files in a line table.
fn files(header: &LineProgramHeader<Reader>) -> impl Iterator<Item = u64> {
    let first = if header.version() >= 5 { 0 } else { 1 };
    (first..).take(header.file_names().len())
}

/// Returns the numbers of the files whose paths end with `end`.
fn files_called(debug: &Debug, unit: &Unit, header: &LineProgramHeader<Reader>, end: &str) -> Vec<u64> {
    // Comparing the file names first avoids assembling the paths of all files.
    let base = end.rsplit('/').next().unwrap_or(end);
    let has_name = |number: &u64| {
        let name = header.file(*number).and_then(|file| debug.dwarf(false).attr_string(unit, file.path_name()).ok());
        name.is_some_and(|name| name.to_slice().is_ok_and(|name| name.ends_with(base.as_bytes())))
    };
    files(header).filter(has_name).filter(|number| path(debug, unit, header, *number).is_some_and(|path| ends_with(&path, end))).collect()
}

/// Returns the path of a file with its directory, as it was passed to the compiler.
fn path(debug: &Debug, unit: &Unit, header: &LineProgramHeader<Reader>, number: u64) -> Option<String> {
    let text = |value| Some(debug.dwarf(false).attr_string(unit, value).ok()?.to_string_lossy().ok()?.into_owned());
    let file = header.file(number)?;
    let name = text(file.path_name())?;
    if name.starts_with('/') {
        return Some(name);
    }
    let directory = file.directory(header).and_then(text);
    let full = directory.map_or_else(|| name.clone(), |directory| format!("{directory}/{name}"));
    let compiled_in = unit.comp_dir.as_ref().and_then(|directory| Some(directory.to_string_lossy().ok()?.into_owned()));
    Some(match compiled_in {
        Some(directory) if !full.starts_with('/') => format!("{directory}/{full}"),
        _ => full,
    })
}

/// Returns whether a path ends with whole components `end`.
fn ends_with(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/') || end.starts_with('/'))
}

/// Returns a hint which lines before and after a line without code have code.
fn around(with_code: &BTreeSet<u64>, line: u64) -> String {
    let (before, behind) = (with_code.range(..line).next_back(), with_code.range(line..).next());
    match (before, behind) {
        (Some(before), Some(behind)) => format!("; lines {before} and {behind} have code"),
        (Some(one), None) | (None, Some(one)) => format!("; line {one} has code"),
        (None, None) => String::new(),
    }
}
