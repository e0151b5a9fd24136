//! Resolves the rows of `tables/` with the headers and overlays: names and values, in the order in which a value is
//! compared with them.

use super::commands;
use super::fault::{Fault, Location};
use super::glob;
use super::header::Target;
use super::int::Int;
use super::library::Library;
use super::overlay::{ArchRow, ConstantRow};
use super::tables::{Clash, TableKind, TableRow};

/// A constant of a resolved table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableConstant {
    pub name: String,
    pub value: u64,
}

/// Bits of a flag word that contain a value of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitField {
    pub mask: u64,
    pub table: String,
}

/// A table for one ABI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub entries: Vec<TableConstant>,
    pub fields: Vec<BitField>,
}

/// The rows of the overlays.
#[derive(Default)]
pub struct Overlays {
    pub newer: Vec<ConstantRow>,
    pub kernel: Vec<ConstantRow>,
    pub arch: Vec<ArchRow>,
}

/// The headers and overlays from which tables are resolved for one ABI.
pub struct Sources<'a> {
    pub library: &'a Library<'a>,
    pub overlays: &'a Overlays,
    /// The headers are newer than the rows. New constants that would be faults are left out, so that rtrace builds.
    pub ahead: bool,
}

/// A constant that a table's selectors may select.
struct Candidate {
    name: String,
    header: String,
    /// The expression of an overlay, if one defines the constant.
    overlay_value: Option<String>,
}

impl Sources<'_> {
    pub fn resolve(&self, table: &TableRow) -> Result<Resolved, Vec<Fault>> {
        let candidates = self.candidates(table).map_err(|fault| vec![fault])?;
        // Another ABI may lack the constants of a selector.
        let lacks_header = table.commands && !table.headers.iter().all(|header| self.has_header(header));
        let is_checked = self.library.target == Target::X86_64 && !lacks_header;
        let mut faults = if is_checked { unmatched_selectors(table, &candidates) } else { Vec::new() };
        let mut entries = Vec::new();
        for candidate in candidates.iter().filter(|candidate| self.selects(table, candidate)) {
            match self.value(candidate, table).and_then(|value| register_value(value, table.bits)) {
                Ok(value) => entries.push(TableConstant { name: candidate.name.clone(), value }),
                Err(_) if self.ahead || table.takes_commands && !selects(table, &candidate.name) => {}
                Err(text) => faults.push(table.location.fault(format!("{} of {} {text}", candidate.name, candidate.header))),
            }
        }
        let fields = self.fields(table, &mut faults);
        entries.retain(|entry| !fields.iter().any(|field| entry.value & !field.mask == 0));
        let zero = self.zero(table, &candidates, &mut faults);
        entries.retain(|entry| table.zero.as_ref() != Some(&entry.name));
        if table.kind == TableKind::Flags && self.ahead {
            entries.retain(|entry| entry.value != 0);
        } else if table.kind == TableKind::Flags {
            faults.extend(entries.iter().filter(|entry| entry.value == 0).map(|entry| {
                let name = &entry.name;
                table
                    .location
                    .fault(format!("{name} is 0 and has no bits: add zero={name} if it is the name of 0, or exclude it with !{name}"))
            }));
        }
        let clash = if self.ahead && table.clash == Clash::Fails { Clash::First } else { table.clash };
        let mut entries = without_clashes(table, entries, clash, &mut faults);
        match table.kind {
            // A constant with several bits comes before the constants that it consists of: its lowest bit is theirs or
            // lower, and it has more bits.
            TableKind::Flags => {
                entries.sort_by_key(|entry| (entry.value.trailing_zeros(), u32::MAX - entry.value.count_ones(), entry.value))
            }
            TableKind::Enum => entries.sort_by_key(|entry| entry.value),
        }
        entries.extend(zero);
        if faults.is_empty() { Ok(Resolved { entries, fields }) } else { Err(faults) }
    }

    /// Returns the constants of the table's headers in the order of the headers, each header followed by the overlays
    /// that add to it.
    fn candidates(&self, table: &TableRow) -> Result<Vec<Candidate>, Fault> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for header in &table.headers {
            // A distribution need not install all headers with ioctl commands, and newer kernels lack some.
            if table.commands && !self.has_header(header) {
                continue;
            }
            let mut found = self.candidates_of(header, &table.location)?;
            found.retain(|new| !candidates.iter().any(|known| known.name == new.name));
            candidates.extend(found);
        }
        Ok(candidates)
    }

    fn has_header(&self, header: &str) -> bool {
        header == "kernel.tbl" || self.library.header(header).is_some() || self.overlays.newer.iter().any(|row| row.header == header)
    }

    fn candidates_of(&self, header: &str, location: &Location) -> Result<Vec<Candidate>, Fault> {
        let overlay =
            |row: &ConstantRow| Candidate { name: row.name.clone(), header: header.into(), overlay_value: Some(row.value.clone()) };
        let mut found = Vec::new();
        if header == "kernel.tbl" {
            found.extend(self.overlays.kernel.iter().map(overlay));
        } else {
            let newer: Vec<&ConstantRow> = self.overlays.newer.iter().filter(|row| row.header == header).collect();
            match self.library.header(header) {
                Some(read) => found.extend(read.constants.iter().map(|constant| Candidate {
                    name: constant.name.clone(),
                    header: header.into(),
                    overlay_value: None,
                })),
                None if newer.is_empty() => {
                    return Err(location.fault(format!(
                        "{header} is not installed: install the kernel's UAPI headers (linux-libc-dev), or set RTRACE_UAPI"
                    )));
                }
                None => {}
            }
            let missing = newer.into_iter().filter(|row| !found.iter().any(|known: &Candidate| known.name == row.name));
            let missing: Vec<Candidate> = missing.map(overlay).collect();
            found.extend(missing);
        }
        for row in self.overlays.arch.iter().filter(|row| row.target == self.library.target) {
            match (&row.value, &row.header) {
                (None, _) => found.retain(|known| known.name != row.name),
                (Some(value), Some(only)) if only == header => {
                    found.push(Candidate { name: row.name.clone(), header: header.into(), overlay_value: Some(value.clone()) });
                }
                (Some(value), None) => {
                    found.iter_mut().filter(|known| known.name == row.name).for_each(|known| known.overlay_value = Some(value.clone()));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Returns whether the table has the constant: its selectors take it, or it is an ioctl command and the table takes
    /// all of them.
    fn selects(&self, table: &TableRow, candidate: &Candidate) -> bool {
        let Candidate { name, header, overlay_value } = candidate;
        let is_command = || match overlay_value {
            Some(text) => text.starts_with("_IO"),
            None => commands::is_command(self.library, header, name, &table.headers),
        };
        selects(table, name) || table.takes_commands && !excludes(table, name) && is_command()
    }

    fn value(&self, candidate: &Candidate, table: &TableRow) -> Result<Int, String> {
        let Candidate { name, header, overlay_value } = candidate;
        match overlay_value {
            Some(text) => self.library.evaluate(text, header, &table.headers),
            None => self.library.in_header(header, name, &table.headers).unwrap_or_else(|| Err("is not defined".into())),
        }
    }

    fn fields(&self, table: &TableRow, faults: &mut Vec<Fault>) -> Vec<BitField> {
        let mut fields = Vec::new();
        for field in &table.fields {
            let value = self.library.evaluate(&field.mask, &table.headers[0], &table.headers);
            match value.and_then(|value| register_value(value, table.bits)) {
                Ok(mask) => fields.push(BitField { mask, table: field.table.clone() }),
                Err(text) => faults.push(table.location.fault(format!("the mask {} {text}", field.mask))),
            }
        }
        fields
    }

    fn zero(&self, table: &TableRow, candidates: &[Candidate], faults: &mut Vec<Fault>) -> Option<TableConstant> {
        let name = table.zero.clone()?;
        let value = match candidates.iter().find(|candidate| candidate.name == name) {
            Some(candidate) => self.value(candidate, table),
            None => Err("is not in the table's headers".into()),
        };
        match value {
            Ok(value) if value.value == 0 => return Some(TableConstant { name, value: 0 }),
            Ok(value) => faults.push(table.location.fault(format!("{name} is {}, not 0", value.value))),
            Err(text) => faults.push(table.location.fault(format!("{name} {text}"))),
        }
        None
    }
}

/// Returns whether the table's selectors select the name and do not exclude it.
pub fn selects(table: &TableRow, name: &str) -> bool {
    table.selectors.iter().any(|selector| selector.takes && glob::matches(&selector.pattern, name)) && !excludes(table, name)
}

/// Returns whether the table's selectors exclude the name.
fn excludes(table: &TableRow, name: &str) -> bool {
    table.selectors.iter().any(|selector| !selector.takes && glob::matches(&selector.pattern, name))
}

fn unmatched_selectors(table: &TableRow, candidates: &[Candidate]) -> Vec<Fault> {
    let unmatched = table.selectors.iter().filter(|selector| !candidates.iter().any(|known| glob::matches(&selector.pattern, &known.name)));
    unmatched
        .map(|selector| {
            let problem = if glob::is_glob(&selector.pattern) { "matches no constant of" } else { "is not a constant of" };
            table.location.fault(format!("{} {problem} {}", selector.pattern, table.headers.join(",")))
        })
        .collect()
}

/// Returns the value as the lower 32 bits or all bits of a register, in two's complement.
fn register_value(value: Int, bits: u8) -> Result<u64, String> {
    if bits == 64 {
        return Ok(value.value as u64);
    }
    let fits = (i128::from(i32::MIN)..=i128::from(u32::MAX)).contains(&value.value);
    if fits {
        Ok(u64::from(value.value as u32))
    } else {
        Err(format!("is {:#x}, which has more than 32 bits: add bits=64 if the kernel reads the whole register", value.value))
    }
}

/// Keeps one name of each value.
fn without_clashes(table: &TableRow, entries: Vec<TableConstant>, clash: Clash, faults: &mut Vec<Fault>) -> Vec<TableConstant> {
    let mut kept: Vec<TableConstant> = Vec::new();
    for entry in entries {
        let Some(known) = kept.iter_mut().find(|known| known.value == entry.value) else {
            kept.push(entry);
            continue;
        };
        match clash {
            Clash::First => {}
            Clash::Last => *known = entry,
            Clash::Fails => faults.push(table.location.fault(format!(
                "{} and {} are both {:#x}: exclude one with `!`, or add `first` or `last`",
                known.name, entry.name, entry.value
            ))),
        }
    }
    kept
}

/// Returns the prefix that perf style omits from the names: the longest common one that ends in `_` and is not a whole
/// name.
pub fn common_prefix<'a>(mut names: impl Iterator<Item = &'a str>) -> &'a str {
    let Some(first) = names.next() else { return "" };
    let common = names.fold(first.len(), |length, name| length.min(first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count()));
    first[..common].rfind('_').filter(|&at| at + 1 < first.len()).map_or("", |at| &first[..=at])
}

/// Returns a fault for each constant of `newer.tbl` or `kernel.tbl` whose value differs from that in a table's header.
pub fn disagreements(sources: &Sources, tables: &[TableRow]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut headers: Vec<&String> = tables.iter().flat_map(|table| &table.headers).filter(|header| *header != "kernel.tbl").collect();
    headers.sort();
    headers.dedup();
    let newer = sources.overlays.newer.iter().map(|row| (row, vec![&row.header]));
    let kernel = sources.overlays.kernel.iter().map(|row| (row, headers.clone()));
    for (row, headers) in newer.chain(kernel) {
        let of_row = sources.library.evaluate(&row.value, &row.header, &[]);
        for header in headers {
            let Some(Ok(of_header)) = sources.library.in_header(header, &row.name, &[]) else { continue };
            match &of_row {
                Ok(of_row) if of_row.value == of_header.value => {}
                Ok(of_row) => {
                    let text = format!("{} is {:#x} here, but {:#x} in {header}", row.name, of_row.value, of_header.value);
                    faults.push(row.location.fault(text));
                }
                Err(_) => {}
            }
        }
        if let Err(text) = of_row {
            faults.push(row.location.fault(format!("{} {text}", row.name)));
        }
    }
    faults
}

/// Returns a fault for each line of `arch/` without effect: no table selects the name, or x86-64 has the same value.
pub fn redundant_arch_rows(base: &Sources, overlays: &Overlays, tables: &[TableRow]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for row in &overlays.arch {
        if row.target == Target::X86_64 {
            faults.push(row.location.fault("x86-64 has no overlay: the other ABIs' overlays state the differences from it"));
            continue;
        }
        let selecting: Vec<&TableRow> =
            tables.iter().filter(|table| selects(table, &row.name) || table.fields.iter().any(|field| field.mask == row.name)).collect();
        if selecting.is_empty() {
            faults.push(row.location.fault(format!("no table selects {}", row.name)));
        }
        if let (Some(value), None) = (&row.value, &row.header) {
            let headers = selecting.iter().flat_map(|table| &table.headers);
            let known: Vec<Int> = headers.filter_map(|header| base.known(header, &row.name)).collect();
            match base.library.evaluate(value, "kernel.tbl", &[]) {
                Ok(_) if known.is_empty() => {
                    faults.push(row.location.fault(format!("x86-64 does not have {}: add its header to the line", row.name)))
                }
                Ok(own) if known.iter().all(|known| known.value == own.value) => {
                    faults.push(row.location.fault(format!("{} has the same value in x86-64", row.name)));
                }
                _ => {}
            }
        }
    }
    faults
}

impl Sources<'_> {
    /// Returns the value of a constant in a header, or in the overlay of the header.
    pub fn known(&self, header: &str, name: &str) -> Option<Int> {
        let overlay = if header == "kernel.tbl" { &self.overlays.kernel } else { &self.overlays.newer };
        let overlay_value = overlay.iter().find(|row| row.name == name && (header == "kernel.tbl" || row.header == header));
        match self.library.in_header(header, name, &[]) {
            Some(value) => value.ok(),
            None => overlay_value.and_then(|row| self.library.evaluate(&row.value, header, &[]).ok()),
        }
    }
}
