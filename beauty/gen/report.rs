//! Compares the tables with the headers of a kernel, for the maintenance of the tables (`examples/uapi.rs`).

use crate::generator::commands;
use crate::generator::generate::Rows;
use crate::generator::glob;
use crate::generator::header::Target;
use crate::generator::library::{Library, Load};
use crate::generator::resolve::{Overlays, Sources};
use crate::generator::tables::TableRow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;

/// Returns lines for `newer.tbl`: constants that a table mentions and that only the newer headers define.
pub fn newer(rows: &Rows, old: &Load, new: &Load) -> Vec<String> {
    let (old, new) = (library(rows, old, 0), library(rows, new, 0));
    let mut lines = BTreeSet::new();
    for table in &rows.tables {
        for header in table.headers.iter().filter(|header| *header != "kernel.tbl") {
            let Some(read) = new.header(header) else { continue };
            let before = old.header(header);
            for constant in read.constants.iter().filter(|constant| mentions(&new, header, table, &constant.name)) {
                if before.as_ref().is_some_and(|before| before.constant(&constant.name).is_some()) {
                    continue;
                }
                new.take_sized();
                if let Some(Ok(value)) = new.in_header(header, &constant.name, &table.headers) {
                    let value = of_struct(value.value, &new.take_sized()).unwrap_or_else(|| shown(value.value));
                    lines.insert((header.clone(), constant.line, format!("{} {value} {header}", constant.name)));
                }
            }
        }
    }
    lines.into_iter().map(|(_, _, line)| line).collect()
}

/// Returns the constants whose values differ between two sets of headers, and those that only the older ones define.
pub fn changed(rows: &Rows, old: &Load, new: &Load) -> Vec<String> {
    let (old, new) = (library(rows, old, 0), library(rows, new, 0));
    let mut lines = BTreeSet::new();
    for table in &rows.tables {
        for header in &table.headers {
            let Some(read) = old.header(header) else { continue };
            for name in read.constants.iter().map(|constant| &constant.name).filter(|name| mentions(&old, header, table, name)) {
                let value = |library: &Library| library.in_header(header, name, &table.headers).and_then(Result::ok).map(|int| int.value);
                match (value(&old), value(&new)) {
                    (Some(before), Some(now)) if before != now => {
                        lines.insert(format!("{name} of {header} was {} and is now {}", shown(before), shown(now)));
                    }
                    (Some(before), None) => {
                        lines.insert(format!("{name} of {header} was {} and is no longer defined", shown(before)));
                    }
                    _ => {}
                }
            }
        }
    }
    lines.into_iter().collect()
}

/// Returns the constants of the tables' headers that no table mentions, neither to select nor to exclude them.
pub fn unselected(rows: &Rows, load: &Load) -> Vec<String> {
    let headers = headers_of_tables(rows);
    unselected_constants(rows, load, &headers).iter().map(|(header, line, name)| format!("{header}:{line}: {name}")).collect()
}

/// Returns the constants of the headers that no row has, and the headers that no table reads, sorted by header.
pub fn without_row(rows: &Rows, load: &Load, names: &[String]) -> Vec<String> {
    let mut headers = headers_of_tables(rows);
    headers.retain(|header, _| names.iter().any(|name| name == header));
    let unread = names.iter().filter(|name| !headers.contains_key(name.as_str())).map(|name| format!("{name}: no table reads it"));
    let constants = unselected_constants(rows, load, &headers);
    let mut lines: Vec<String> = constants.iter().map(|(header, _, name)| format!("{header}: {name}")).chain(unread).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Returns the headers of the tables, each with the tables that read it.
fn headers_of_tables(rows: &Rows) -> BTreeMap<&str, Vec<&TableRow>> {
    let mut by_header: BTreeMap<&str, Vec<&TableRow>> = BTreeMap::new();
    for table in &rows.tables {
        for header in &table.headers {
            by_header.entry(header).or_default().push(table);
        }
    }
    by_header
}

/// Returns the constants of the headers that none of their tables mentions, each with its header and line.
fn unselected_constants(rows: &Rows, load: &Load, headers: &BTreeMap<&str, Vec<&TableRow>>) -> Vec<(String, usize, String)> {
    let library = library(rows, load, 0);
    let mut found = Vec::new();
    for (header, tables) in headers {
        let Some(read) = library.header(header) else { continue };
        let is_mentioned = |name: &str| tables.iter().any(|table| mentions(&library, header, table, name));
        let constants = read.constants.iter().filter(|constant| !is_mentioned(&constant.name));
        found.extend(constants.map(|constant| (header.to_string(), constant.line, constant.name.clone())));
    }
    found
}

/// The directories of the headers that the kernel exports.
const EXPORTED: [&str; 13] = ["asm", "asm-generic", "cxl", "drm", "fwctl", "linux", "misc", "mtd", "rdma", "scsi", "sound", "video", "xen"];

/// Returns the names of the kernel's headers in the directories, sorted.
pub fn header_names(directories: &[PathBuf]) -> Vec<String> {
    let mut names = BTreeSet::new();
    for base in directories {
        let mut queue: Vec<PathBuf> = EXPORTED.iter().map(|name| base.join(name)).collect();
        while let Some(directory) = queue.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    queue.push(path);
                } else if path.extension().is_some_and(|extension| extension == "h") {
                    names.extend(path.strip_prefix(base).map(|name| name.display().to_string()));
                }
            }
        }
    }
    names.into_iter().collect()
}

/// Returns the version of Linux and a hash of the headers: their names and texts. Two sets of headers of one version
/// may differ, because distributions add parts of later kernels.
pub fn identity(load: &Load, names: &[String]) -> String {
    // FNV-1a, because the standard library's hash may change with the compiler.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for name in names {
        let text = load(name).unwrap_or_default();
        let bytes = name.bytes().chain([0]).chain(text.bytes()).chain([0]);
        bytes.for_each(|byte| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    }
    let library = Library::new(load, Target::X86_64, HashMap::new());
    let version = library.in_header("linux/version.h", "LINUX_VERSION_CODE", &[]).and_then(Result::ok);
    let version = version.map_or("unknown".into(), |code| format!("{}.{}.{}", code.value >> 16, code.value >> 8 & 0xff, code.value & 0xff));
    format!("{version} {hash:016x}")
}

/// Returns the ioctl commands of the headers that no table has, neither to name nor to exclude them.
///
/// Commands are the constants that `_IO()` and the like make, and in the headers of tables of commands also the numbers
/// without a size whose second byte is that of a command of the table (`0x54xx` of terminals).
pub fn unnamed_commands(rows: &Rows, load: &Load, headers: &[String]) -> Vec<String> {
    let library = library(rows, load, 0);
    let sources = Sources { library: &library, overlays: &rows.overlays, ahead: true };
    let tables: Vec<&TableRow> = rows.tables.iter().filter(|table| table.commands).collect();
    let resolved: Vec<Vec<u64>> = tables
        .iter()
        .map(|table| sources.resolve(table).map(|table| table.entries.iter().map(|entry| entry.value).collect()).unwrap_or_default())
        .collect();
    let mut lines = Vec::new();
    for header in headers {
        let Some(read) = library.header(header) else { continue };
        let own: Vec<(&TableRow, &Vec<u64>)> = tables
            .iter()
            .zip(&resolved)
            .filter(|(table, _)| table.headers.contains(header))
            .map(|(table, values)| (*table, values))
            .collect();
        for constant in &read.constants {
            let others: Vec<String> = own.iter().flat_map(|(table, _)| table.headers.clone()).collect();
            let value = library.in_header(header, &constant.name, &others).and_then(Result::ok).map(|int| int.value as u64);
            let is_old = |(_, values): &(&TableRow, &Vec<u64>)| {
                value.is_some_and(|value| value >> 16 == 0 && values.iter().any(|other| other >> 8 == value >> 8 && value > 0xff))
            };
            if !commands::is_command(&library, header, &constant.name, &others) && !own.iter().any(is_old) {
                continue;
            }
            let has = |(table, values): &(&TableRow, &Vec<u64>)| {
                let is_excluded =
                    table.selectors.iter().any(|selector| !selector.takes && glob::matches(&selector.pattern, &constant.name));
                is_excluded || value.is_some_and(|value| values.contains(&value))
            };
            if !own.iter().any(has) {
                lines.push(format!("{header}:{}: {}", constant.line, constant.name));
            }
        }
    }
    lines
}

/// Returns the lines of `newer.tbl` whose constants the headers now define, and those whose constants no table
/// mentions.
pub fn outdated(rows: &Rows, load: &Load) -> Vec<String> {
    let library = library(rows, load, 0);
    let mut lines = Vec::new();
    for row in &rows.overlays.newer {
        if library.header(&row.header).is_some_and(|header| header.constant(&row.name).is_some()) {
            lines.push(row.location.fault(format!("{} is now in {}", row.name, row.header)).to_string());
        }
        if !rows.tables.iter().any(|table| table.headers.contains(&row.header) && mentions(&library, &row.header, table, &row.name)) {
            lines.push(row.location.fault(format!("no table mentions {}", row.name)).to_string());
        }
    }
    lines
}

/// Returns lines for `arch/ABI.tbl`: constants that tables select and whose values in the ABI's headers are not those
/// of x86-64. `asm` are the names of the ABI's own headers.
pub fn arch(rows: &Rows, base: &Load, load: &Load, target: Target, asm: &[String]) -> Vec<String> {
    let overlays = Overlays { newer: rows.overlays.newer.clone(), kernel: rows.overlays.kernel.clone(), arch: Vec::new() };
    let base_library = library(rows, base, 0);
    let sources = Sources { library: &base_library, overlays: &overlays, ahead: false };
    let mut other = library(rows, load, target as usize);
    other.target = target;
    let mut lines = BTreeSet::new();
    for table in &rows.tables {
        let Ok(resolved) = sources.resolve(table) else { continue };
        for name in resolved.entries.iter().map(|entry| &entry.name) {
            let of_x86 = table.headers.iter().find_map(|header| sources.known(header, name)).map(|int| int.value);
            let own = asm.iter().find_map(|header| other.in_header(header, name, &[])).and_then(Result::ok);
            let of_target = own.or_else(|| {
                let shared = table.headers.iter().filter(|header| !header.starts_with("asm/") && *header != "kernel.tbl");
                shared.filter_map(|header| other.in_header(header, name, &[])).find_map(Result::ok)
            });
            match (of_x86, of_target.map(|int| int.value)) {
                (Some(before), Some(now)) if before != now => {
                    lines.insert(format!("{name} {}", shown(now)));
                }
                (Some(_), None) if table.headers.iter().any(|header| base_library.in_header(header, name, &[]).is_some()) => {
                    lines.insert(format!("{name} -"));
                }
                _ => {}
            }
        }
        lines.extend(only_in_abi(table, &other, asm, &base_library));
    }
    lines.into_iter().collect()
}

/// Returns lines for the constants of an ABI's own headers that a table would select if x86-64 had them.
fn only_in_abi(table: &TableRow, other: &Library, asm: &[String], base: &Library) -> Vec<String> {
    let mut lines = Vec::new();
    for header in asm {
        // Only a header that corresponds to one of the table's: asm/mman.h to asm-generic/mman.h.
        let file = header.rsplit('/').next().unwrap_or(header);
        let Some(beside) = table.headers.iter().find(|own| own.ends_with(file)) else { continue };
        let Some(read) = other.header(header) else { continue };
        for name in read.constants.iter().map(|constant| &constant.name).filter(|name| crate::generator::resolve::selects(table, name)) {
            let known = table.headers.iter().any(|own| base.in_header(own, name, &[]).is_some());
            if let (false, Some(Ok(value))) = (known, other.in_header(header, name, &[])) {
                lines.push(format!("{name} {} {beside}", shown(value.value)));
            }
        }
    }
    lines
}

fn library<'a>(rows: &Rows, load: &'a Load<'a>, abi: usize) -> Library<'a> {
    let sizes: HashMap<String, u64> = rows.structs.iter().map(|row| (row.name.clone(), u64::from(row.sizes[abi]))).collect();
    let mut library = Library::new(load, Target::X86_64, sizes);
    for row in &rows.overlays.kernel {
        library.add_fallback(&row.name, &row.value);
    }
    library
}

/// Returns whether the table's row mentions the name, be it to exclude it.
fn mentions(library: &Library, header: &str, table: &TableRow, name: &str) -> bool {
    let selected = table.selectors.iter().any(|selector| glob::matches(&selector.pattern, name));
    let is_command = || match library.header(header).is_some_and(|read| read.constant(name).is_some()) {
        true => commands::is_command(library, header, name, &table.headers),
        // It is a constant of an overlay.
        false => true,
    };
    selected
        || table.takes_commands && is_command()
        || table.fields.iter().any(|field| field.mask == name)
        || table.zero.as_deref() == Some(name)
}

/// Returns an ioctl command as an expression with the struct whose size it contains, because sizes differ per ABI.
fn of_struct(command: i128, sized: &BTreeSet<String>) -> Option<String> {
    let mut names = sized.iter();
    let (Some(name), None) = (names.next(), names.next()) else { return None };
    let macro_name = ["", "_IOW", "_IOR", "_IOWR"].get(usize::try_from(command >> 30).ok()?)?;
    Some(format!("{macro_name}({:#x},{},{name})", command >> 8 & 0xff, command & 0xff))
}

fn shown(value: i128) -> String {
    if value < 10 { value.to_string() } else { format!("{value:#x}") }
}
