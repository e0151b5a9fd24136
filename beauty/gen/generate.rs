//! Generates the text of the tables from the files of `beauty/` and the headers, and collects the faults of all steps.

use super::attributes::{self, Messages};
use super::brief;
use super::choice;
use super::constant::ConstantValue;
use super::coverage;
use super::emit::{self, ABIS, EmittedStruct, EmittedTable};
use super::emit_commands;
use super::emit_messages;
use super::fault::{Fault, Location, parse_rows};
use super::forms::{self, FormRow};
use super::header::Target;
use super::kind::{Vocabulary, is_basic};
use super::layout::{self, StructLayout};
use super::library::{Library, Load};
use super::link;
use super::macros::{self, Macro};
use super::messages::{self, MessageRows};
use super::numbers::{self, NumberRow};
use super::overlay::{self, ArchRow};
use super::requests::{self, Request, RequestRow};
use super::resolve::{self, Overlays, Resolved, Sources, common_prefix};
use super::structs::{self, StructRow};
use super::syscalls::{self, SyscallRow};
use super::tables::{self, TableKind, TableRow};
use std::collections::{BTreeMap, BTreeSet};

/// The input of the generator.
pub struct Input<'a> {
    /// The paths of the files of `beauty/`, as faults show them (`beauty/syscalls/file.tbl`), and their text.
    pub files: &'a [(String, String)],
    /// The text of `src/beauty/custom.rs`, and that of the files in `src/beauty/decoders/`.
    pub custom_rs: &'a str,
    pub decoders_rs: &'a str,
    pub load: &'a Load<'a>,
}

/// The output of the generator.
pub struct Output {
    /// The Rust text that `src/beauty/tables.rs` includes.
    pub rust: String,
    /// All tables with all names and values, for review.
    pub listing: String,
    /// How each argument is shown, for review.
    pub coverage: String,
}

/// Tables that are used without a row that names them: the errors of failed calls, and the kind `signal`.
const ALWAYS_USED: [&str; 2] = ["errno", "signal"];

/// The newest headers that the rows were compared with, as `LINUX_VERSION_CODE`: Linux 7.2, in any stable release.
const VERSION_CODE_MAX: i128 = 7 << 16 | 2 << 8 | 255;

const TARGETS: [Target; 4] = [Target::X86_64, Target::I386, Target::X32, Target::Aarch64];

/// The rows of all files.
#[derive(Default)]
pub struct Rows {
    pub syscalls: Vec<SyscallRow>,
    pub requests: Vec<RequestRow>,
    pub forms: Vec<FormRow>,
    pub tables: Vec<TableRow>,
    pub structs: Vec<StructRow>,
    pub messages: MessageRows,
    pub numbers: Vec<NumberRow>,
    pub overlays: Overlays,
}

pub fn generate(input: &Input) -> Result<Output, Vec<Fault>> {
    let mut faults = Vec::new();
    let rows = parse(input.files, &mut faults);
    let libraries = Libraries::new(&rows, input.load);
    let tables = resolve_tables(&rows, &libraries, &mut faults);
    let sized = libraries.base.take_sized();
    let macros = libraries.macros(&rows, &mut faults);
    let vocabulary = vocabulary(&rows, input, &mut faults);
    let value = |table: &str, name: &str| match table_constant(&tables, table, name) {
        Err(text) => {
            let of_macro = || macros::constant(&macros, &tables, table, name);
            libraries.value_in_headers(&rows, table, name).or_else(of_macro).map(Some).ok_or(text)
        }
        found => found,
    };
    let layouts = layout::layouts(&rows.structs, &vocabulary, &value, &mut faults);
    let choices = choice::choices(&rows.structs, &layouts, &value, &mut faults);
    let messages = attributes::messages(&rows.messages, &rows.structs, &vocabulary, &value, &mut faults);
    let calls = link::calls(&rows.syscalls, &rows.numbers, &vocabulary, &value, &mut faults);
    let requests = requests::requests(&rows.requests, &calls, &vocabulary, &value, &mut faults);
    let mut briefs = Vec::new();
    // With faults so far, tables and rows that failed would be reported as missing or unused, too.
    if faults.is_empty() {
        briefs = brief::briefs(&rows.structs, &layouts, &calls, &value, &mut faults);
        link::check_numbers(&rows.numbers, &calls, &mut faults);
        forms::check(&rows.forms, &calls, &rows.structs, &tables, &mut faults);
        check_use(&rows, (&calls, &requests), &layouts, &messages, &sized, &mut faults);
    }
    if !faults.is_empty() {
        faults.sort();
        faults.dedup();
        return Err(faults);
    }
    let structs = rows.structs.into_iter().zip(layouts).zip(briefs).zip(choices);
    let emitted = |(((row, layout), brief), choice)| EmittedStruct { row, layout, brief, choice };
    let mut structs: Vec<EmittedStruct> = structs.map(emitted).collect();
    structs.sort_by(|a, b| a.row.name.cmp(&b.row.name));
    // Writing to a String does not fail.
    let mut rust = emit::emit((&calls, &requests), &tables, &structs, &rows.numbers).unwrap_or_default();
    rust += &forms::emit(&rows.forms).unwrap_or_default();
    rust += &emit_messages::emit(&messages).unwrap_or_default();
    rust += &emit_commands::emit(&rows.tables, &tables, &macros).unwrap_or_default();
    let listed = coverage::Tables {
        calls: &calls,
        requests: &requests,
        rows: &rows.tables,
        tables: &tables,
        structs: &structs,
        messages: &messages,
    };
    Ok(Output { rust, listing: listing(&tables), coverage: coverage::report(&listed) })
}

pub fn parse(files: &[(String, String)], faults: &mut Vec<Fault>) -> Rows {
    let mut rows = Rows::default();
    for (name, text) in files {
        let parts: Vec<&str> = name.split('/').collect();
        match parts[..] {
            [.., "syscalls", _] => rows.syscalls.extend(parse_rows(name, text, syscalls::parse, faults).into_iter().flatten()),
            [.., "tables", _] => rows.tables.extend(parse_rows(name, text, tables::parse, faults)),
            [.., "messages", _] => messages::parse_file(name, text, &mut rows.messages, faults),
            [.., "structs", _] => rows.structs.extend(structs::parse_file(name, text, faults)),
            [.., "arch", "numbers.tbl"] => rows.numbers.extend(parse_rows(name, text, numbers::parse, faults)),
            [.., "arch", abi] => rows.overlays.arch.extend(parse_arch(name, text, abi, faults)),
            [.., "requests.tbl"] => rows.requests.extend(parse_rows(name, text, requests::parse, faults)),
            [.., "strace.tbl"] => rows.forms.extend(forms::parse_file(name, text, faults)),
            [.., "newer.tbl"] => rows.overlays.newer.extend(parse_rows(name, text, overlay::parse_newer, faults)),
            [.., "kernel.tbl"] => rows.overlays.kernel.extend(parse_rows(name, text, overlay::parse_kernel, faults)),
            _ => faults.push(Location { file: name.as_str().into(), line: 1 }.fault("this file name is not known: see beauty/README.md")),
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
            faults.push(
                Location { file: name.into(), line: 1 }.fault("this is not the file of an ABI: use i386.tbl, x32.tbl or aarch64.tbl"),
            );
            return Vec::new();
        }
    };
    parse_rows(name, text, |row| overlay::parse_arch(row, target), faults)
}

/// The headers and overlays for each ABI.
struct Libraries<'a> {
    /// x86-64.
    base: Library<'a>,
    /// The other ABIs, each with its index in `ABIS`.
    others: Vec<(usize, Library<'a>)>,
}

impl<'a> Libraries<'a> {
    fn new(rows: &Rows, load: &'a Load<'a>) -> Libraries<'a> {
        let sizes = |abi: usize| rows.structs.iter().map(|row| (row.name.clone(), u64::from(row.sizes[abi]))).collect();
        let mut base = Library::new(load, Target::X86_64, sizes(0));
        for row in rows.overlays.newer.iter().chain(&rows.overlays.kernel) {
            base.add_fallback(&row.name, &row.value);
        }
        // The headers' conditions are evaluated for x86-64 in all ABIs; the files in arch/ contain the differences.
        let other = |(abi, target): (usize, Target)| {
            let mut other = base.with_types_of(target, sizes(abi));
            for row in rows.overlays.arch.iter().filter(|row| row.target == target) {
                if let Some(value) = &row.value {
                    other.add_override(&row.name, value);
                }
            }
            (abi, other)
        };
        let others = TARGETS.into_iter().enumerate().skip(1).map(other).collect();
        Libraries { base, others }
    }

    /// Returns the macros of the tables that make commands of parameters.
    fn macros(&self, rows: &Rows, faults: &mut Vec<Fault>) -> Vec<Macro> {
        let others = self.others.iter().map(|(abi, library)| (*abi, library));
        let all: Vec<(usize, &Library)> = std::iter::once((0, &self.base)).chain(others).collect();
        macros::resolve(&rows.tables, &all, faults)
    }

    /// Returns the value of a constant that the table's headers define but the table does not select; the mask is that
    /// of the table's `bits`. `None` if the headers do not define it.
    fn value_in_headers(&self, rows: &Rows, table: &str, name: &str) -> Option<ConstantValue> {
        let row = rows.tables.iter().find(|row| row.name == table)?;
        let value = |library: &Library| {
            let found = library.evaluate(name, row.headers.first()?, &row.headers);
            found.ok().and_then(|int| u64::try_from(int.value).ok())
        };
        let base = value(&self.base)?;
        let mask = if row.bits == 64 { u64::MAX } else { u32::MAX.into() };
        let others: Vec<(usize, Option<u64>)> = self.others.iter().map(|(abi, library)| (*abi, value(library))).collect();
        Some(constant_value(name, base, others.into_iter(), mask))
    }
}

fn resolve_tables(rows: &Rows, libraries: &Libraries, faults: &mut Vec<Fault>) -> Vec<EmittedTable> {
    let ahead = is_ahead(&libraries.base);
    let base = Sources { library: &libraries.base, overlays: &rows.overlays, ahead };
    faults.extend(resolve::disagreements(&base, &rows.tables));
    faults.extend(resolve::redundant_arch_rows(&base, &rows.overlays, &rows.tables));

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
                            faults.extend(more.into_iter().map(|fault| fault.location.fault(format!("in {}: {}", ABIS[*abi], fault.text))))
                        }
                    }
                }
                tables.push(table(row, resolved, twins, &rows.overlays));
            }
            Err(more) => faults.extend(more),
        }
    }
    tables.sort_by(|a: &EmittedTable, b: &EmittedTable| a.name.cmp(&b.name));
    tables
}

/// Returns whether the headers are of a newer kernel than the one for which the rows were written.
pub fn is_ahead(library: &Library) -> bool {
    let version = library.in_header("linux/version.h", "LINUX_VERSION_CODE", &[]);
    version.is_some_and(|version| version.is_ok_and(|version| version.value > VERSION_CODE_MAX))
}

fn table(row: &TableRow, base: Resolved, twins: Vec<(usize, Resolved)>, overlays: &Overlays) -> EmittedTable {
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
    EmittedTable { name: row.name.clone(), kind: row.kind, bits: row.bits, header, prefix, base, twins }
}

fn vocabulary(rows: &Rows, input: &Input, faults: &mut Vec<Fault>) -> Vocabulary {
    let tables = rows.tables.iter().map(|row| (&row.location, &row.name));
    let structs = rows.structs.iter().map(|row| (&row.location, &row.name));
    let mut seen: BTreeMap<&str, &Location> = BTreeMap::new();
    for (location, name) in tables.chain(structs) {
        if let Some(first) = seen.insert(name, location) {
            faults.push(location.fault(format!("another table or struct has the name {name}: {}:{}", first.file, first.line)));
        } else if is_basic(name) && !ALWAYS_USED.contains(&name.as_str()) {
            faults.push(location.fault(format!("{name} is the name of a basic kind: rename the table or struct")));
        }
    }
    for row in &rows.tables {
        for field in row.fields.iter().filter(|field| !rows.tables.iter().any(|other| other.name == field.table)) {
            faults.push(row.location.fault(format!("there is no table {}", field.table)));
        }
    }
    Vocabulary {
        tables: rows.tables.iter().map(|row| row.name.clone()).collect(),
        structs: rows.structs.iter().map(|row| row.name.clone()).collect(),
        custom: public_functions(input.custom_rs),
        decoders: public_functions(input.decoders_rs),
    }
}

/// Returns the names after `pub fn` at the beginning of a line.
fn public_functions(rust: &str) -> BTreeSet<String> {
    let names = rust.lines().filter_map(|line| line.strip_prefix("pub fn ")?.split(['(', '<']).next());
    names.map(str::to_string).collect()
}

/// Returns a constant of a table, or `None` if the table could not be resolved.
fn table_constant(tables: &[EmittedTable], table: &str, name: &str) -> Result<Option<ConstantValue>, String> {
    let Some(found) = tables.iter().find(|known| known.name == table) else { return Ok(None) };
    let bits = if found.bits == 64 { u64::MAX } else { u32::MAX.into() };
    // A command may share its word with flags. Then only the bits of the command are compared.
    let field = found.base.fields.iter().find_map(|field| {
        let table = tables.iter().find(|known| known.name == field.table)?;
        constant(&table.base, name).is_some().then_some((table, field.mask))
    });
    let (of, mask) = field.unwrap_or((found, bits));
    // If only other ABIs have the constant, its value there is used.
    let in_others = || of.twins.iter().find_map(|(_, twin)| constant(twin, name));
    let value = constant(&of.base, name).or_else(in_others).ok_or_else(|| format!("{name} is not in the table {table}"))?;
    let others = of.twins.iter().map(|(abi, twin)| (*abi, constant(twin, name)));
    Ok(Some(constant_value(name, value, others.filter(|(_, value)| value.is_some()), mask)))
}

/// Combines the values of a constant in x86-64 and in the other ABIs.
fn constant_value(name: &str, value: u64, others: impl Iterator<Item = (usize, Option<u64>)>, mask: u64) -> ConstantValue {
    let mut found = ConstantValue { value: Ok(value), in_any_abi: vec![value], mask };
    for (abi, other) in others.filter(|(_, other)| *other != Some(value)) {
        found.value = Err(format!("{name} has another value in {}: use a constant that all ABIs share", ABIS[abi]));
        found.in_any_abi.extend(other.filter(|other| !found.in_any_abi.contains(other)));
    }
    found
}

fn constant(resolved: &Resolved, name: &str) -> Option<u64> {
    resolved.entries.iter().find(|entry| entry.name == name).map(|entry| entry.value)
}

fn check_use(
    rows: &Rows,
    (calls, requests): (&[link::Call], &[Request]),
    layouts: &[StructLayout],
    messages: &Messages,
    sized: &BTreeSet<String>,
    faults: &mut Vec<Fault>,
) {
    let (mut tables, mut structs) = link::named(calls.iter().chain(requests.iter().map(|request| &request.call)));
    let (of_messages, headers) = attributes::used(messages);
    tables.extend(of_messages);
    structs.extend(headers);
    let (of_fields, nested) = layout::named(layouts);
    tables.extend(of_fields.into_iter().map(str::to_string));
    structs.extend(nested.into_iter().map(str::to_string));
    structs.extend(rows.structs.iter().flat_map(|row| row.choices.iter().map(|choice| choice.of.clone())));
    tables.extend(ALWAYS_USED.map(str::to_string));
    tables.extend(rows.tables.iter().flat_map(|row| row.fields.iter().map(|field| field.table.clone())));
    for row in rows.tables.iter().filter(|row| !row.used_by_rust && !tables.contains(&row.name)) {
        faults.push(row.location.fault(format!("the table {} is unused: name it in a row, or add `rust` if Rust code uses it", row.name)));
    }
    for row in rows.structs.iter().filter(|row| !row.used_by_rust && !structs.contains(&row.name) && !sized.contains(&row.name)) {
        faults.push(row.location.fault(format!("the struct {} is unused: name it in a row, or add `rust` if Rust code uses it", row.name)));
    }
}

/// Lists the tables as text: a line for each table and each constant, and the differences of other ABIs.
fn listing(tables: &[EmittedTable]) -> String {
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

fn list_entries(out: &mut String, table: &EmittedTable, resolved: &Resolved) {
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
