//! From the files of `beauty/` and the headers to the text of the tables, with all that can be wrong on the way.

use super::constant::Found;
use super::emit::{self, ABIS, Table};
use super::fault::{Fault, Place, parse_rows};
use super::header::Target;
use super::kind::{Vocabulary, is_basic};
use super::layout::{self, Layout};
use super::library::{Library, Load};
use super::link;
use super::numbers::{self, NumberRow};
use super::overlay::{self, ArchRow};
use super::resolve::{self, Overlays, Resolved, Sources, common_prefix};
use super::structs::{self, StructRow};
use super::syscalls::{self, SyscallRow};
use super::tables::{self, TableKind, TableRow};
use std::collections::{BTreeMap, BTreeSet};

/// What tables are made of.
pub struct Input<'a> {
    /// The files of `beauty/`: their names as faults show them (`beauty/syscalls/file.tbl`), and their text.
    pub files: &'a [(String, String)],
    /// The text of `src/beauty/custom.rs`, and of the files in `src/beauty/decoders/`.
    pub custom_rs: &'a str,
    pub decoders_rs: &'a str,
    pub load: &'a Load<'a>,
}

/// What came of them.
pub struct Output {
    /// What `src/beauty/tables.rs` includes.
    pub rust: String,
    /// All tables with all names and values, for people to review.
    pub listing: String,
}

/// Tables that Rust code uses without a row that names them: of failed returns, and of the kind `signal`.
const ALWAYS_USED: [&str; 2] = ["errno", "signal"];

/// The newest headers that the rows were held against: Linux 7.2, as `LINUX_VERSION_CODE` counts, whatever its stable release.
const VERSION_CODE_MAX: i128 = 7 << 16 | 2 << 8 | 255;

const TARGETS: [Target; 4] = [Target::X86_64, Target::I386, Target::X32, Target::Aarch64];

/// The rows of all files.
#[derive(Default)]
pub struct Rows {
    pub syscalls: Vec<SyscallRow>,
    pub tables: Vec<TableRow>,
    pub structs: Vec<StructRow>,
    pub numbers: Vec<NumberRow>,
    pub overlays: Overlays,
}

pub fn generate(input: &Input) -> Result<Output, Vec<Fault>> {
    let mut faults = Vec::new();
    let rows = parse(input.files, &mut faults);
    let libraries = Libraries::new(&rows, input.load);
    let tables = resolve_tables(&rows, &libraries, &mut faults);
    let sized = libraries.base.take_sized();
    let vocabulary = vocabulary(&rows, input, &mut faults);
    let value = |table: &str, name: &str| match value_in(&tables, table, name) {
        Err(text) => libraries.value_in_headers(&rows, table, name).map(Some).ok_or(text),
        found => found,
    };
    let layouts = layout::layouts(&rows.structs, &vocabulary, &value, &mut faults);
    let calls = link::calls(&rows.syscalls, &rows.numbers, &vocabulary, &value, &mut faults);
    // A row that is wrong elsewhere would be called missing or unused here.
    if faults.is_empty() {
        link::check_numbers(&rows.numbers, &calls, &mut faults);
        check_use(&rows, &calls, &layouts, &sized, &mut faults);
    }
    if !faults.is_empty() {
        faults.sort();
        faults.dedup();
        return Err(faults);
    }
    let mut structs: Vec<(StructRow, Layout)> = rows.structs.into_iter().zip(layouts).collect();
    structs.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    // Writing into a String does not fail.
    let rust = emit::emit(&calls, &tables, &structs, &rows.numbers).unwrap_or_default();
    Ok(Output { rust, listing: listing(&tables) })
}

pub fn parse(files: &[(String, String)], faults: &mut Vec<Fault>) -> Rows {
    let mut rows = Rows::default();
    for (name, text) in files {
        let parts: Vec<&str> = name.split('/').collect();
        match parts[..] {
            [.., "syscalls", _] => rows.syscalls.extend(parse_rows(name, text, syscalls::parse, faults)),
            [.., "tables", _] => rows.tables.extend(parse_rows(name, text, tables::parse, faults)),
            [.., "structs", _] => rows.structs.extend(structs::parse_file(name, text, faults)),
            [.., "arch", "numbers.tbl"] => rows.numbers.extend(parse_rows(name, text, numbers::parse, faults)),
            [.., "arch", abi] => rows.overlays.arch.extend(parse_arch(name, text, abi, faults)),
            [.., "newer.tbl"] => rows.overlays.newer.extend(parse_rows(name, text, overlay::parse_newer, faults)),
            [.., "kernel.tbl"] => rows.overlays.kernel.extend(parse_rows(name, text, overlay::parse_kernel, faults)),
            _ => faults.push(Place { file: name.as_str().into(), line: 1 }.fault("is no file that beauty/ knows")),
        }
    }
    rows
}

fn parse_arch(name: &str, text: &str, file: &str, faults: &mut Vec<Fault>) -> Vec<ArchRow> {
    let target = match file {
        "i386.tbl" => Target::I386,
        "x32.tbl" => Target::X32,
        "aarch64.tbl" => Target::Aarch64,
        _ => {
            faults.push(Place { file: name.into(), line: 1 }.fault("is no ABI's file: i386.tbl, x32.tbl and aarch64.tbl are there"));
            return Vec::new();
        }
    };
    parse_rows(name, text, |row| overlay::parse_arch(row, target), faults)
}

/// The headers and overlays, for each ABI.
struct Libraries<'a> {
    /// For x86-64, with the structs whose sizes were part of a constant (ioctl commands carry them).
    base: Library<'a>,
    others: Vec<(usize, Library<'a>)>,
}

impl<'a> Libraries<'a> {
    fn new(rows: &Rows, load: &'a Load<'a>) -> Libraries<'a> {
        let sizes = |abi: usize| rows.structs.iter().map(|row| (row.name.clone(), u64::from(row.sizes[abi]))).collect();
        let mut base = Library::new(load, Target::X86_64, sizes(0));
        for row in rows.overlays.newer.iter().chain(&rows.overlays.kernel) {
            base.lay_under(&row.name, &row.value);
        }
        // Conditions of headers are x86-64's for all ABIs: what they would change stands in arch/.
        let other = |(abi, target): (usize, Target)| {
            let mut other = base.with_types_of(target, sizes(abi));
            for row in rows.overlays.arch.iter().filter(|row| row.target == target) {
                if let Some(value) = &row.value {
                    other.lay_over(&row.name, value);
                }
            }
            (abi, other)
        };
        let others = TARGETS.into_iter().enumerate().skip(1).map(other).collect();
        Libraries { base, others }
    }

    /// The value of a constant that a table's headers have and the table does not take, with the bits that the table is
    /// of. `None` if they do not have it either.
    fn value_in_headers(&self, rows: &Rows, table: &str, name: &str) -> Option<Found> {
        let row = rows.tables.iter().find(|row| row.name == table)?;
        let value = |library: &Library| {
            let found = library.evaluate(name, row.headers.first()?, &row.headers);
            found.ok().and_then(|int| u64::try_from(int.value).ok())
        };
        let base = value(&self.base)?;
        let mask = if row.bits == 64 { u64::MAX } else { u32::MAX.into() };
        let others: Vec<(usize, Option<u64>)> = self.others.iter().map(|(abi, library)| (*abi, value(library))).collect();
        Some(found_in(name, base, others.into_iter(), mask))
    }
}

fn resolve_tables(rows: &Rows, libraries: &Libraries, faults: &mut Vec<Fault>) -> Vec<Table> {
    let ahead = is_ahead(&libraries.base);
    let base = Sources { library: &libraries.base, overlays: &rows.overlays, ahead };
    faults.extend(resolve::disagreements(&base, &rows.tables));
    faults.extend(resolve::idle_arch_rows(&base, &rows.overlays, &rows.tables));

    let mut tables = Vec::new();
    for row in &rows.tables {
        match base.resolve(row) {
            Ok(resolved) => {
                let mut twins = Vec::new();
                for (abi, library) in &libraries.others {
                    match (Sources { library, overlays: &rows.overlays, ahead }.resolve(row)) {
                        Ok(twin) if twin == resolved => {}
                        Ok(twin) => twins.push((*abi, twin)),
                        Err(more) => {
                            faults.extend(more.into_iter().map(|fault| fault.place.fault(format!("in {}: {}", ABIS[*abi], fault.text))))
                        }
                    }
                }
                tables.push(table(row, resolved, twins, &rows.overlays));
            }
            Err(more) => faults.extend(more),
        }
    }
    tables.sort_by(|a: &Table, b: &Table| a.name.cmp(&b.name));
    tables
}

/// Whether the headers are of a newer kernel than the rows were written for.
pub fn is_ahead(library: &Library) -> bool {
    let version = library.in_header("linux/version.h", "LINUX_VERSION_CODE", &[]);
    version.is_some_and(|version| version.is_ok_and(|version| version.value > VERSION_CODE_MAX))
}

fn table(row: &TableRow, base: Resolved, twins: Vec<(usize, Resolved)>, overlays: &Overlays) -> Table {
    let names = base.entries.iter().map(|entry| entry.name.as_str());
    let prefix = row.prefix.clone().unwrap_or_else(|| common_prefix(names).to_string());
    let header = match &row.headers[..] {
        [only] if only == "kernel.tbl" => {
            let first = base.entries.first();
            let file = first.and_then(|first| overlays.kernel.iter().find(|constant| constant.name == first.name));
            file.map_or(only.clone(), |constant| constant.header.clone())
        }
        headers => headers.join(","),
    };
    Table { name: row.name.clone(), kind: row.kind, bits: row.bits, header, prefix, base, twins }
}

fn vocabulary(rows: &Rows, input: &Input, faults: &mut Vec<Fault>) -> Vocabulary {
    let tables = rows.tables.iter().map(|row| (&row.place, &row.name));
    let structs = rows.structs.iter().map(|row| (&row.place, &row.name));
    let mut seen: BTreeMap<&str, &Place> = BTreeMap::new();
    for (place, name) in tables.chain(structs) {
        if let Some(first) = seen.insert(name, place) {
            faults.push(place.fault(format!("{name} is there already: {}:{}", first.file, first.line)));
        } else if is_basic(name) && !ALWAYS_USED.contains(&name.as_str()) {
            faults.push(place.fault(format!("{name} is a basic kind and cannot name a table or struct")));
        }
    }
    for row in &rows.tables {
        for field in row.fields.iter().filter(|field| !rows.tables.iter().any(|other| other.name == field.table)) {
            faults.push(row.place.fault(format!("{} is no table", field.table)));
        }
    }
    Vocabulary {
        tables: rows.tables.iter().map(|row| row.name.clone()).collect(),
        structs: rows.structs.iter().map(|row| row.name.clone()).collect(),
        custom: public_functions(input.custom_rs),
        decoders: public_functions(input.decoders_rs),
    }
}

/// The names after `pub fn` at the beginning of a line.
fn public_functions(rust: &str) -> BTreeSet<String> {
    let names = rust.lines().filter_map(|line| line.strip_prefix("pub fn ")?.split(['(', '<']).next());
    names.map(str::to_string).collect()
}

/// A table's constant. Nothing is told of a table that has faults of its own.
fn value_in(tables: &[Table], table: &str, name: &str) -> Result<Option<Found>, String> {
    let Some(found) = tables.iter().find(|known| known.name == table) else { return Ok(None) };
    let bits = if found.bits == 64 { u64::MAX } else { u32::MAX.into() };
    // A command may share its word with flags: then its bits alone are compared.
    let field = found.base.fields.iter().find_map(|field| {
        let table = tables.iter().find(|known| known.name == field.table)?;
        constant(&table.base, name).is_some().then_some((table, field.mask))
    });
    let (of, mask) = field.unwrap_or((found, bits));
    let value = constant(&of.base, name).ok_or_else(|| format!("{name} is not in the table {table}"))?;
    let others = of.twins.iter().map(|(abi, twin)| (*abi, constant(twin, name)));
    Ok(Some(found_in(name, value, others.filter(|(_, value)| value.is_some()), mask)))
}

/// A constant, by its values in x86-64 and in other ABIs.
fn found_in(name: &str, value: u64, others: impl Iterator<Item = (usize, Option<u64>)>, mask: u64) -> Found {
    let mut found = Found { value: Ok(value), of_any: vec![value], mask };
    for (abi, other) in others.filter(|(_, other)| *other != Some(value)) {
        found.value = Err(format!("{name} has another value in {}, so nothing can depend on it", ABIS[abi]));
        found.of_any.extend(other.filter(|other| !found.of_any.contains(other)));
    }
    found
}

fn constant(resolved: &Resolved, name: &str) -> Option<u64> {
    resolved.entries.iter().find(|entry| entry.name == name).map(|entry| entry.value)
}

fn check_use(rows: &Rows, calls: &[link::Call], layouts: &[Layout], sized: &BTreeSet<String>, faults: &mut Vec<Fault>) {
    let (mut tables, mut structs) = link::named(calls);
    let (of_fields, nested) = layout::named(layouts);
    tables.extend(of_fields.into_iter().map(str::to_string));
    structs.extend(nested.into_iter().map(str::to_string));
    tables.extend(ALWAYS_USED.map(str::to_string));
    tables.extend(rows.tables.iter().flat_map(|row| row.fields.iter().map(|field| field.table.clone())));
    for row in rows.tables.iter().filter(|row| !row.used_by_rust && !tables.contains(&row.name)) {
        faults.push(row.place.fault(format!("nothing uses the table {}: name it in a row, or say `rust` if Rust code does", row.name)));
    }
    for row in rows.structs.iter().filter(|row| !row.used_by_rust && !structs.contains(&row.name) && !sized.contains(&row.name)) {
        faults.push(row.place.fault(format!("no row uses the struct {}", row.name)));
    }
}

/// Tables as text: a line a table, a line an entry, and where other ABIs differ.
fn listing(tables: &[Table]) -> String {
    let mut out = String::new();
    for table in tables {
        let kind = if table.kind == TableKind::Flags { "flags" } else { "enum" };
        out += &format!("{} {kind} {} {} bits", table.name, table.header, table.bits);
        if !table.prefix.is_empty() {
            out += &format!(", without {}", table.prefix);
        }
        out.push('\n');
        list_entries(&mut out, table, &table.base);
        for (abi, twin) in &table.twins {
            out += &format!("  in {}:\n", ABIS[*abi]);
            list_differences(&mut out, &table.base, twin);
        }
    }
    out
}

fn list_entries(out: &mut String, table: &Table, resolved: &Resolved) {
    for entry in &resolved.entries {
        let negative =
            table.kind == TableKind::Enum && table.bits == 32 && entry.value > i32::MAX as u64 && entry.value > u32::MAX as u64 - 4096;
        let value = if negative { (entry.value as i32).to_string() } else { format!("{:#x}", entry.value) };
        *out += &format!("    {} {value}\n", entry.name);
    }
    for field in &resolved.fields {
        *out += &format!("    {:#x}: {}\n", field.mask, field.table);
    }
}

fn list_differences(out: &mut String, base: &Resolved, twin: &Resolved) {
    for entry in twin.entries.iter().filter(|entry| !base.entries.contains(entry)) {
        *out += &format!("    {} {:#x}\n", entry.name, entry.value);
    }
    for entry in base.entries.iter().filter(|entry| !twin.entries.iter().any(|other| other.name == entry.name)) {
        *out += &format!("    {} is not there\n", entry.name);
    }
    for field in twin.fields.iter().filter(|field| !base.fields.contains(field)) {
        *out += &format!("    {:#x}: {}\n", field.mask, field.table);
    }
}
