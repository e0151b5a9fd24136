//! A row of `tables/` and the headers give a table: names and values, in the order in which they are tried.

use super::fault::{Fault, Place};
use super::glob;
use super::header::Target;
use super::int::Int;
use super::library::Library;
use super::overlay::{ArchRow, ConstantRow};
use super::tables::{Clash, TableKind, TableRow};

/// A constant of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub value: u64,
}

/// Bits of a flag word that are a value of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub mask: u64,
    pub table: String,
}

/// A table for one ABI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub entries: Vec<Entry>,
    pub fields: Vec<Field>,
}

/// The overlays, as rows.
#[derive(Default)]
pub struct Overlays {
    pub newer: Vec<ConstantRow>,
    pub kernel: Vec<ConstantRow>,
    pub arch: Vec<ArchRow>,
}

/// Everything that a table's values come from, for one ABI.
pub struct Sources<'a> {
    pub library: &'a Library<'a>,
    pub overlays: &'a Overlays,
    /// The headers are newer than the rows: what is new there and does not fit is left out, so that rtrace builds.
    pub ahead: bool,
}

/// A constant that a table's selectors are tried on.
struct Candidate {
    name: String,
    header: String,
    /// The expression, where an overlay gives it.
    laid_over: Option<String>,
}

impl Sources<'_> {
    pub fn resolve(&self, table: &TableRow) -> Result<Resolved, Vec<Fault>> {
        let candidates = self.candidates(table).map_err(|fault| vec![fault])?;
        // Another ABI may lack what a selector means.
        let mut faults = if self.library.target == Target::X86_64 { unmatched_selectors(table, &candidates) } else { Vec::new() };
        let mut entries = Vec::new();
        for candidate in candidates.iter().filter(|candidate| takes(table, &candidate.name)) {
            match self.value(candidate, table).and_then(|value| fitting(value, table.bits)) {
                Ok(value) => entries.push(Entry { name: candidate.name.clone(), value }),
                Err(_) if self.ahead => {}
                Err(text) => faults.push(table.place.fault(format!("{} of {} {text}", candidate.name, candidate.header))),
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
                table.place.fault(format!("{name} is 0, so no bit shows it: say zero={name} if it is the name of 0, or !{name}"))
            }));
        }
        let clash = if self.ahead && table.clash == Clash::Fails { Clash::First } else { table.clash };
        let mut entries = without_clashes(table, entries, clash, &mut faults);
        match table.kind {
            // A composite has its parts' lowest bit or a lower one, and more bits than each of them.
            TableKind::Flags => {
                entries.sort_by_key(|entry| (entry.value.trailing_zeros(), u32::MAX - entry.value.count_ones(), entry.value))
            }
            TableKind::Enum => entries.sort_by_key(|entry| entry.value),
        }
        entries.extend(zero);
        if faults.is_empty() { Ok(Resolved { entries, fields }) } else { Err(faults) }
    }

    /// The constants of the table's headers, in the headers' order, overlays after the header that they complete.
    fn candidates(&self, table: &TableRow) -> Result<Vec<Candidate>, Fault> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for header in &table.headers {
            let mut found = self.of_header(header, &table.place)?;
            found.retain(|new| !candidates.iter().any(|known| known.name == new.name));
            candidates.extend(found);
        }
        Ok(candidates)
    }

    fn of_header(&self, header: &str, place: &Place) -> Result<Vec<Candidate>, Fault> {
        let overlay = |row: &ConstantRow| Candidate { name: row.name.clone(), header: header.into(), laid_over: Some(row.value.clone()) };
        let mut found = Vec::new();
        if header == "kernel.tbl" {
            found.extend(self.overlays.kernel.iter().map(overlay));
        } else {
            let newer: Vec<&ConstantRow> = self.overlays.newer.iter().filter(|row| row.header == header).collect();
            match self.library.header(header) {
                Some(read) => found.extend(read.constants.iter().map(|constant| Candidate {
                    name: constant.name.clone(),
                    header: header.into(),
                    laid_over: None,
                })),
                None if newer.is_empty() => {
                    return Err(place
                        .fault(format!("{header} is not there: install the kernel's UAPI headers (linux-libc-dev), or set RTRACE_UAPI")));
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
                    found.push(Candidate { name: row.name.clone(), header: header.into(), laid_over: Some(value.clone()) });
                }
                (Some(value), None) => {
                    found.iter_mut().filter(|known| known.name == row.name).for_each(|known| known.laid_over = Some(value.clone()));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn value(&self, candidate: &Candidate, table: &TableRow) -> Result<Int, String> {
        let Candidate { name, header, laid_over } = candidate;
        match laid_over {
            Some(text) => self.library.evaluate(text, header, &table.headers),
            None => self.library.in_header(header, name, &table.headers).unwrap_or_else(|| Err("is not there".into())),
        }
    }

    fn fields(&self, table: &TableRow, faults: &mut Vec<Fault>) -> Vec<Field> {
        let mut fields = Vec::new();
        for field in &table.fields {
            let value = self.library.evaluate(&field.mask, &table.headers[0], &table.headers);
            match value.and_then(|value| fitting(value, table.bits)) {
                Ok(mask) => fields.push(Field { mask, table: field.table.clone() }),
                Err(text) => faults.push(table.place.fault(format!("the mask {} {text}", field.mask))),
            }
        }
        fields
    }

    fn zero(&self, table: &TableRow, candidates: &[Candidate], faults: &mut Vec<Fault>) -> Option<Entry> {
        let name = table.zero.clone()?;
        let value = match candidates.iter().find(|candidate| candidate.name == name) {
            Some(candidate) => self.value(candidate, table),
            None => Err("is in none of the table's headers".into()),
        };
        match value {
            Ok(value) if value.value == 0 => return Some(Entry { name, value: 0 }),
            Ok(value) => faults.push(table.place.fault(format!("{name} is {}, not 0", value.value))),
            Err(text) => faults.push(table.place.fault(format!("{name} {text}"))),
        }
        None
    }
}

/// Whether the table's selectors take the name.
pub fn takes(table: &TableRow, name: &str) -> bool {
    let fits = |takes: bool| table.selectors.iter().any(|selector| selector.takes == takes && glob::matches(&selector.pattern, name));
    fits(true) && !fits(false)
}

fn unmatched_selectors(table: &TableRow, candidates: &[Candidate]) -> Vec<Fault> {
    let unmatched = table.selectors.iter().filter(|selector| !candidates.iter().any(|known| glob::matches(&selector.pattern, &known.name)));
    unmatched
        .map(|selector| {
            let what = if glob::is_glob(&selector.pattern) { "matches nothing" } else { "is no constant" };
            table.place.fault(format!("{} {what} in {}", selector.pattern, table.headers.join(",")))
        })
        .collect()
}

/// The bits of a register that hold the value, sign and all.
fn fitting(value: Int, bits: u8) -> Result<u64, String> {
    if bits == 64 {
        return Ok(value.value as u64);
    }
    let fits = (i128::from(i32::MIN)..=i128::from(u32::MAX)).contains(&value.value);
    if fits {
        Ok(u64::from(value.value as u32))
    } else {
        Err(format!("is {:#x}, more than 32 bits: say bits=64 if the kernel reads them", value.value))
    }
}

/// Leaves one name for each value.
fn without_clashes(table: &TableRow, entries: Vec<Entry>, clash: Clash, faults: &mut Vec<Fault>) -> Vec<Entry> {
    let mut kept: Vec<Entry> = Vec::new();
    for entry in entries {
        let Some(known) = kept.iter_mut().find(|known| known.value == entry.value) else {
            kept.push(entry);
            continue;
        };
        match clash {
            Clash::First => {}
            Clash::Last => *known = entry,
            Clash::Fails => faults.push(table.place.fault(format!(
                "{} and {} are both {:#x}: leave one out with `!`, or say `first` or `last`",
                known.name, entry.name, entry.value
            ))),
        }
    }
    kept
}

/// What perf style leaves out of all names: the longest common beginning that ends in `_` and leaves something of each.
pub fn common_prefix<'a>(mut names: impl Iterator<Item = &'a str>) -> &'a str {
    let Some(first) = names.next() else { return "" };
    let common = names.fold(first.len(), |length, name| length.min(first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count()));
    first[..common].rfind('_').filter(|&at| at + 1 < first.len()).map_or("", |at| &first[..=at])
}

/// Constants on which two sources disagree: `newer.tbl` or `kernel.tbl` and a header that a table reads.
pub fn disagreements(sources: &Sources, tables: &[TableRow]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut headers: Vec<&String> = tables.iter().flat_map(|table| &table.headers).filter(|header| *header != "kernel.tbl").collect();
    headers.sort();
    headers.dedup();
    let newer = sources.overlays.newer.iter().map(|row| (row, vec![&row.header]));
    let kernel = sources.overlays.kernel.iter().map(|row| (row, headers.clone()));
    for (row, headers) in newer.chain(kernel) {
        let own = sources.library.evaluate(&row.value, &row.header, &[]);
        for header in headers {
            let Some(Ok(theirs)) = sources.library.in_header(header, &row.name, &[]) else { continue };
            match &own {
                Ok(own) if own.value == theirs.value => {}
                Ok(own) => faults.push(row.place.fault(format!("{} is {:#x} here, {:#x} in {header}", row.name, own.value, theirs.value))),
                Err(_) => {}
            }
        }
        if let Err(text) = own {
            faults.push(row.place.fault(format!("{} {text}", row.name)));
        }
    }
    faults
}

/// Lines of `arch/` that say nothing: no table takes the name, or the value is x86-64's anyway.
pub fn idle_arch_rows(base: &Sources, overlays: &Overlays, tables: &[TableRow]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for row in &overlays.arch {
        if row.target == Target::X86_64 {
            faults.push(row.place.fault("x86-64 is what the others are compared with: it has no overlay"));
            continue;
        }
        let taking: Vec<&TableRow> =
            tables.iter().filter(|table| takes(table, &row.name) || table.fields.iter().any(|field| field.mask == row.name)).collect();
        if taking.is_empty() {
            faults.push(row.place.fault(format!("no table takes {}", row.name)));
        }
        if let (Some(value), None) = (&row.value, &row.header) {
            let headers = taking.iter().flat_map(|table| &table.headers);
            let known: Vec<Int> = headers.filter_map(|header| base.known(header, &row.name)).collect();
            match base.library.evaluate(value, "kernel.tbl", &[]) {
                Ok(_) if known.is_empty() => faults.push(row.place.fault(format!("x86-64 does not have {}: name its header", row.name))),
                Ok(own) if known.iter().all(|known| known.value == own.value) => {
                    faults.push(row.place.fault(format!("{} has the same value in x86-64", row.name)));
                }
                _ => {}
            }
        }
    }
    faults
}

impl Sources<'_> {
    /// A constant's value as a table that names the header would see it.
    pub fn known(&self, header: &str, name: &str) -> Option<Int> {
        let overlay = if header == "kernel.tbl" { &self.overlays.kernel } else { &self.overlays.newer };
        let laid_over = overlay.iter().find(|row| row.name == name && (header == "kernel.tbl" || row.header == header));
        match self.library.in_header(header, name, &[]) {
            Some(value) => value.ok(),
            None => laid_over.and_then(|row| self.library.evaluate(&row.value, header, &[]).ok()),
        }
    }
}
