//! USDT tracepoints (user-space statically defined tracing): the notes that `sys/sdt.h` and similar headers put into a
//! file.

use super::file::{ProgramFile, shown};
use super::operand::{self, Operand};
use super::place::absolute;
use crate::probe::grammar::{Arg, BasicType, Fetch, FilePlace, Probe, ProbePoint, Type, When};
use crate::probe::resolve::Resolved;
use crate::probe::surroundings::Surroundings;
use crate::stack::symbols::ElfFile;
use crate::stack::symbols::listing;
use crate::stack::symbols::notes::notes;
use crate::text::near;
use anyhow::{anyhow, bail};
use std::path::Path;

/// The type of the ELF notes of USDT tracepoints.
const NT_STAPSDT: u32 = 3;

/// The note of one site of a USDT tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SiteNote {
    provider: String,
    name: String,
    svma: u64,
    /// The address of the semaphore: a counter of tracers in the program, which the kernel increments and the program
    /// checks.
    semaphore_svma: Option<u64>,
    /// The arguments as the note has them.
    arguments: String,
}

/// Returns the notes of all sites in a file, in the file's order. A tracepoint in an inlined function has several
/// sites.
fn site_notes(elf: &ElfFile) -> Vec<SiteNote> {
    let Some(bytes) = elf.section(".note.stapsdt").and_then(|section| elf.bytes(section).ok()) else { return Vec::new() };
    let base = elf.section(".stapsdt.base").map(|section| section.sh_addr);
    let of_usdt = notes(&bytes, elf.byte_order()).filter(|note| note.kind == NT_STAPSDT && note.name == b"stapsdt\0");
    of_usdt.filter_map(|note| site_note(note.contents, elf, base)).collect()
}

/// Parses a note, which has three addresses and three strings.
fn site_note(contents: &[u8], elf: &ElfFile, base: Option<u64>) -> Option<SiteNote> {
    let bytes = usize::from(elf.address_bytes());
    let address = |number: usize| match bytes {
        8 => elf.byte_order().u64(contents, number * bytes),
        _ => elf.byte_order().u32(contents, number * bytes).map(u64::from),
    };
    let (svma, noted_base, semaphore) = (address(0)?, address(1)?, address(2)?);
    // prelink moves a file to other addresses. That moves the section `.stapsdt.base` too, but leaves the note
    // unchanged, so the difference corrects the addresses in the note.
    let moved = base.filter(|_| noted_base != 0).map_or(0, |base| base.wrapping_sub(noted_base));
    let mut strings = contents.get(3 * bytes..)?.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    let (provider, name, arguments) = (strings.next()?, strings.next()?, strings.next()?);
    let semaphore_svma = (semaphore != 0).then(|| semaphore.wrapping_add(moved));
    Some(SiteNote { provider, name, svma: svma.wrapping_add(moved), semaphore_svma, arguments })
}

/// A USDT tracepoint, for `rtrace list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsdtTracepoint {
    /// The name of the tracepoint's provider: the first part of `PROVIDER:NAME`.
    pub provider: String,
    /// The name that the provider gave the tracepoint: the second part of `PROVIDER:NAME`.
    pub name: String,
    /// The number of its sites in the program.
    pub sites: usize,
    /// The arguments at the first site, as the note has them: sizes in bytes and operands (`-4@%edi`), separated by
    /// blanks.
    pub arguments: String,
}

/// Returns all USDT tracepoints of a program or library, sorted by name.
///
/// # Errors
/// The file cannot be read, is not an ELF file, or has no USDT tracepoints.
pub fn list(path: &Path, surroundings: &mut dyn Surroundings) -> anyhow::Result<Vec<UsdtTracepoint>> {
    let file = ProgramFile::open(absolute(path, surroundings)?, surroundings)?;
    let mut listed: Vec<UsdtTracepoint> = Vec::new();
    for note in site_notes(&file.elf) {
        match listed.iter_mut().find(|known| known.provider == note.provider && known.name == note.name) {
            Some(known) => known.sites += 1,
            None => listed.push(UsdtTracepoint { provider: note.provider, name: note.name, sites: 1, arguments: note.arguments }),
        }
    }
    if listed.is_empty() {
        bail!("{} has no USDT tracepoints (no section .note.stapsdt)", shown(&file.path));
    }
    listed.sort_by(|a, b| (&a.provider, &a.name).cmp(&(&b.provider, &b.name)));
    Ok(listed)
}

/// Resolves a probe with [`ProbePoint::Usdt`] into one probe per site.
///
/// # Errors
/// As [`crate::probe::resolve()`].
pub fn resolve(probe: &Probe, surroundings: &mut dyn Surroundings) -> anyhow::Result<Resolved> {
    let ProbePoint::Usdt { path, provider, name } = &probe.place else { return Ok(Resolved::unchanged(probe)) };
    let mut file = ProgramFile::open(absolute(path, surroundings)?, surroundings)?;
    let all = site_notes(&file.elf);
    let sites: Vec<&SiteNote> = all.iter().filter(|note| note.provider == *provider && note.name == *name).collect();
    if sites.is_empty() {
        bail!("{}", unknown(&file, &all, &format!("{provider}:{name}")));
    }
    let (mut probes, mut notes) = (Vec::new(), Vec::new());
    for site in sites {
        let mut at = Site::new(&mut file, site, surroundings)?;
        let args = if probe.args.is_empty() { at.readable(&mut notes) } else { at.chosen(&probe.args)? };
        let place = ProbePoint::File {
            path: at.file.path.clone(),
            at: FilePlace::Offset(at.offset),
            when: When::Entry,
            reference_counter: at.reference_counter()?,
        };
        probes.push(Probe { place, args, ..probe.clone() });
    }
    notes.dedup();
    Ok(Resolved { probes, notes })
}

fn unknown(file: &ProgramFile, all: &[SiteNote], wanted: &str) -> String {
    let path = shown(&file.path);
    if all.is_empty() {
        return format!("{path} has no USDT tracepoints (no section .note.stapsdt)");
    }
    let mut names: Vec<String> = all.iter().map(|note| format!("{}:{}", note.provider, note.name).escape_debug().to_string()).collect();
    names.sort_unstable();
    names.dedup();
    let near = near::nearest(wanted, names.iter().map(String::as_str), 5);
    match near.is_empty() {
        true => format!("{path} has no USDT tracepoint {wanted}; its tracepoints are {}", names[..names.len().min(10)].join(", ")),
        false => format!("{path} has no USDT tracepoint {wanted}{}", near::hint(&near)),
    }
}

/// A site of a USDT tracepoint for which a probe is created.
struct Site<'a> {
    file: &'a mut ProgramFile,
    surroundings: &'a mut dyn Surroundings,
    note: &'a SiteNote,
    offset: u64,
    operands: Vec<Operand>,
}

impl<'a> Site<'a> {
    fn new(file: &'a mut ProgramFile, note: &'a SiteNote, surroundings: &'a mut dyn Surroundings) -> anyhow::Result<Site<'a>> {
        let offset = file.code_offset(note.svma)?;
        let operands = operand::parse_all(&note.arguments, file.elf.machine());
        Ok(Site { file, surroundings, note, offset, operands })
    }

    fn tracepoint_name(&self) -> String {
        format!("{}:{}", self.note.provider, self.note.name).escape_debug().to_string()
    }

    /// Returns the offset of the semaphore in the file; the kernel finds the counter by the mapping of that offset.
    fn reference_counter(&self) -> anyhow::Result<Option<u64>> {
        let Some(svma) = self.note.semaphore_svma else { return Ok(None) };
        let found = self.file.elf.offset_of_svma(svma).map(|(offset, _)| offset);
        let missing = || {
            anyhow!(
                "the semaphore of {} is at address {svma:#x}, which is not in the file {}",
                self.tracepoint_name(),
                shown(&self.file.path)
            )
        };
        found.ok_or_else(missing).map(Some)
    }

    /// Returns each argument, or why the kernel cannot read it.
    fn all(&mut self) -> Vec<anyhow::Result<Arg>> {
        let kinds: Vec<Type> = self.operands.iter().map(Operand::kind).collect();
        let arg =
            |(number, kind): (usize, Type)| Ok(Arg { name: Some(format!("arg{number}")), value: self.operand(number)?, kind: Some(kind) });
        (1..).zip(kinds).map(arg).collect()
    }

    /// Returns the arguments that the kernel can read, and adds a remark for each of the others.
    fn readable(&mut self, notes: &mut Vec<String>) -> Vec<Arg> {
        let readable = |arg: anyhow::Result<Arg>| arg.map_err(|error| notes.push(format!("{error}; it is left out"))).ok();
        self.all().into_iter().filter_map(readable).collect()
    }

    /// Resolves the arguments that the user wrote.
    fn chosen(&mut self, args: &[Arg]) -> anyhow::Result<Vec<Arg>> {
        let mut chosen = Vec::new();
        for arg in args {
            match &arg.value {
                Fetch::Arguments => chosen.extend(self.all().into_iter().collect::<anyhow::Result<Vec<Arg>>>()?),
                _ => chosen.push(self.arg(arg)?),
            }
        }
        Ok(chosen)
    }

    /// Resolves one argument of the user: replaces `argN` by the operand.
    fn arg(&mut self, arg: &Arg) -> anyhow::Result<Arg> {
        let Some(number) = number(&arg.value)? else {
            return Ok(Arg { value: self.within(&arg.value)?, ..arg.clone() });
        };
        let mut value = self.operand(number)?;
        let name = arg.name.clone().or_else(|| Some(format!("arg{number}")));
        let of_text = arg.kind.as_ref().is_some_and(|kind| matches!(kind.base, BasicType::String | BasicType::UserString));
        if of_text {
            value = Fetch::Memory { user: false, offset: 0, of: Box::new(value) };
        }
        let kind = arg.kind.or_else(|| Some(self.operands[number - 1].kind()));
        Ok(Arg { name, value, kind })
    }

    fn within(&mut self, value: &Fetch) -> anyhow::Result<Fetch> {
        if let Some(number) = number(value)? {
            return self.operand(number);
        }
        match value {
            Fetch::Memory { user, offset, of } => Ok(Fetch::Memory { user: *user, offset: *offset, of: Box::new(self.within(of)?) }),
            other => Ok(other.clone()),
        }
    }

    fn operand(&mut self, number: usize) -> anyhow::Result<Fetch> {
        let Some(operand) = self.operands.get(number - 1) else {
            bail!("{} has {} arguments, so there is no arg{number}", self.tracepoint_name(), self.operands.len());
        };
        // The kernel counts `@+` as if the whole file were mapped in the same way as the probed page.
        let bias = self.offset.wrapping_sub(self.note.svma);
        let files = self.file.symbol_files(self.surroundings);
        let mut data = |symbol: &str, offset: i64| Some(data_svma(&files, symbol)?.wrapping_add_signed(offset).wrapping_add(bias));
        let fetch = operand.fetch(&mut data);
        fetch.map_err(|why| anyhow!("arg{number} of {}, {}, cannot be fetched: {why}", self.tracepoint_name(), operand.text.escape_debug()))
    }
}

/// Returns N of `argN` or `$argN`; `None` for other values.
fn number(value: &Fetch) -> anyhow::Result<Option<usize>> {
    let number = match value {
        Fetch::Argument(number) => *number as usize,
        Fetch::Variable { name, path } => {
            let number = name.strip_prefix("arg").and_then(|number| number.parse().ok());
            let Some(number) = number else { bail!("a USDT tracepoint's arguments are arg1, arg2 and so on, not {}", name.escape_debug()) };
            if !path.is_empty() {
                bail!("a USDT tracepoint's arguments have no types, so {name} has no members; write +OFFSET({name})");
            }
            number
        }
        _ => return Ok(None),
    };
    if number == 0 {
        bail!("the arguments of a USDT tracepoint are counted from 1: arg1");
    }
    Ok(Some(number))
}

fn data_svma(files: &[&ElfFile], wanted: &str) -> Option<u64> {
    let mut found = None;
    for file in files {
        listing::each(file, &mut |symbol| {
            if symbol.name == wanted.as_bytes() && symbol.kind != listing::SymbolKind::ThreadLocal {
                found = found.or(Some(symbol.svma));
            }
        });
    }
    found
}

#[cfg(test)]
mod tests;
