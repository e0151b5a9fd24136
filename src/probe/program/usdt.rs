//! USDT tracepoints (user-space statically defined tracing): the notes that `sys/sdt.h` and its likes leave in a file.

use super::file::{ProgramFile, shown};
use super::operand::{self, Operand};
use super::place::absolute;
use crate::probe::grammar::{Arg, Base, Fetch, FilePlace, Place, Probe, Type, When};
use crate::probe::resolve::Resolved;
use crate::probe::surroundings::Surroundings;
use crate::stack::symbols::ElfFile;
use crate::stack::symbols::listing;
use crate::stack::symbols::notes::notes;
use crate::text::near;
use anyhow::{anyhow, bail};
use std::path::Path;

/// The kind of the notes of USDT tracepoints.
const NT_STAPSDT: u32 = 3;

/// One site of a USDT tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Point {
    provider: String,
    name: String,
    svma: u64,
    /// Where the program looks whether somebody listens; the kernel counts there.
    semaphore_svma: Option<u64>,
    /// As the note has them.
    arguments: String,
}

/// All points of a file, in its order; those that are inlined into several places have as many sites.
fn points(elf: &ElfFile) -> Vec<Point> {
    let Some(bytes) = elf.section(".note.stapsdt").and_then(|section| elf.bytes(section).ok()) else { return Vec::new() };
    let base = elf.section(".stapsdt.base").map(|section| section.sh_addr);
    let of_points = notes(&bytes, elf.byte_order()).filter(|note| note.kind == NT_STAPSDT && note.name == b"stapsdt\0");
    of_points.filter_map(|note| point(note.contents, elf, base)).collect()
}

/// Three addresses and three strings.
fn point(contents: &[u8], elf: &ElfFile, base: Option<u64>) -> Option<Point> {
    let bytes = usize::from(elf.address_bytes());
    let address = |number: usize| match bytes {
        8 => elf.byte_order().u64(contents, number * bytes),
        _ => elf.byte_order().u32(contents, number * bytes).map(u64::from),
    };
    let (svma, noted_base, semaphore) = (address(0)?, address(1)?, address(2)?);
    // A file may be linked to other addresses later (prelink); then the base moved with all else, and the note did not.
    let moved = base.filter(|_| noted_base != 0).map_or(0, |base| base.wrapping_sub(noted_base));
    let mut strings = contents.get(3 * bytes..)?.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    let (provider, name, arguments) = (strings.next()?, strings.next()?, strings.next()?);
    let semaphore_svma = (semaphore != 0).then(|| semaphore.wrapping_add(moved));
    Some(Point { provider, name, svma: svma.wrapping_add(moved), semaphore_svma, arguments })
}

/// A tracepoint as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub provider: String,
    pub name: String,
    /// In how many places of the program it is.
    pub sites: usize,
    /// What it gives at the first of them, as its note has it: bytes and operand (`-4@%edi`), with blanks between.
    pub arguments: String,
}

/// All tracepoints of a program or library, by name.
///
/// # Errors
/// It cannot be read, is no ELF file, or has none.
pub fn list(path: &Path, surroundings: &mut dyn Surroundings) -> anyhow::Result<Vec<Listed>> {
    let file = ProgramFile::open(absolute(path, surroundings)?, surroundings)?;
    let mut listed: Vec<Listed> = Vec::new();
    for point in points(&file.elf) {
        match listed.iter_mut().find(|known| known.provider == point.provider && known.name == point.name) {
            Some(known) => known.sites += 1,
            None => listed.push(Listed { provider: point.provider, name: point.name, sites: 1, arguments: point.arguments }),
        }
    }
    if listed.is_empty() {
        bail!("{} has no USDT tracepoints (no section .note.stapsdt)", shown(&file.path));
    }
    listed.sort_by(|a, b| (&a.provider, &a.name).cmp(&(&b.provider, &b.name)));
    Ok(listed)
}

/// A probe with [`Place::Usdt`]: one for each site.
///
/// # Errors
/// As [`crate::probe::resolve()`].
pub fn resolve(probe: &Probe, surroundings: &mut dyn Surroundings) -> anyhow::Result<Resolved> {
    let Place::Usdt { path, provider, name } = &probe.place else { return Ok(Resolved::unchanged(probe)) };
    let mut file = ProgramFile::open(absolute(path, surroundings)?, surroundings)?;
    let all = points(&file.elf);
    let sites: Vec<&Point> = all.iter().filter(|point| point.provider == *provider && point.name == *name).collect();
    if sites.is_empty() {
        bail!("{}", unknown(&file, &all, &format!("{provider}:{name}")));
    }
    let (mut probes, mut notes) = (Vec::new(), Vec::new());
    for site in sites {
        let mut at = Site::new(&mut file, site, surroundings)?;
        let args = if probe.args.is_empty() { at.readable(&mut notes) } else { at.chosen(&probe.args)? };
        let place = Place::File {
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

fn unknown(file: &ProgramFile, all: &[Point], wanted: &str) -> String {
    let path = shown(&file.path);
    if all.is_empty() {
        return format!("{path} has no USDT tracepoints (no section .note.stapsdt)");
    }
    let mut names: Vec<String> = all.iter().map(|point| format!("{}:{}", point.provider, point.name).escape_debug().to_string()).collect();
    names.sort_unstable();
    names.dedup();
    let near = near::nearest(wanted, names.iter().map(String::as_str), 5);
    match near.is_empty() {
        true => format!("{path} has no USDT tracepoint {wanted}; it has {}", names[..names.len().min(10)].join(", ")),
        false => format!("{path} has no USDT tracepoint {wanted}{}", near::hint(&near)),
    }
}

/// A site that a probe is made for.
struct Site<'a> {
    file: &'a mut ProgramFile,
    surroundings: &'a mut dyn Surroundings,
    point: &'a Point,
    offset: u64,
    operands: Vec<Operand>,
}

impl<'a> Site<'a> {
    fn new(file: &'a mut ProgramFile, point: &'a Point, surroundings: &'a mut dyn Surroundings) -> anyhow::Result<Site<'a>> {
        let offset = file.code_offset(point.svma)?;
        let operands = operand::parse_all(&point.arguments, file.elf.machine());
        Ok(Site { file, surroundings, point, offset, operands })
    }

    fn called(&self) -> String {
        format!("{}:{}", self.point.provider, self.point.name).escape_debug().to_string()
    }

    /// The offset in the file: the kernel finds the counter by the mapping that holds it.
    fn reference_counter(&self) -> anyhow::Result<Option<u64>> {
        let Some(svma) = self.point.semaphore_svma else { return Ok(None) };
        let found = self.file.elf.offset_of_svma(svma).map(|(offset, _)| offset);
        let missing = || anyhow!("the semaphore of {} is at {svma:#x}, for which {} has no bytes", self.called(), shown(&self.file.path));
        found.ok_or_else(missing).map(Some)
    }

    /// Every argument, or why the kernel cannot read it.
    fn all(&mut self) -> Vec<anyhow::Result<Arg>> {
        let kinds: Vec<Type> = self.operands.iter().map(Operand::kind).collect();
        let arg =
            |(number, kind): (usize, Type)| Ok(Arg { name: Some(format!("arg{number}")), value: self.operand(number)?, kind: Some(kind) });
        (1..).zip(kinds).map(arg).collect()
    }

    /// Every argument that the kernel can read; of the others a note.
    fn readable(&mut self, notes: &mut Vec<String>) -> Vec<Arg> {
        let readable = |arg: anyhow::Result<Arg>| arg.map_err(|error| notes.push(format!("{error}; it is left out"))).ok();
        self.all().into_iter().filter_map(readable).collect()
    }

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

    /// An argument as it was asked for, its operands put in.
    fn arg(&mut self, arg: &Arg) -> anyhow::Result<Arg> {
        let Some(number) = number(&arg.value)? else {
            return Ok(Arg { value: self.within(&arg.value)?, ..arg.clone() });
        };
        let mut value = self.operand(number)?;
        let name = arg.name.clone().or_else(|| Some(format!("arg{number}")));
        let of_text = arg.kind.as_ref().is_some_and(|kind| matches!(kind.base, Base::String | Base::UserString));
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
            bail!("{} has {} arguments, so no arg{number}", self.called(), self.operands.len());
        };
        // `@+` counts from where the probe's own page is mapped, as if all of the file were mapped so.
        let bias = self.offset.wrapping_sub(self.point.svma);
        let files = self.file.symbol_files(self.surroundings);
        let mut data = |symbol: &str, offset: i64| Some(data_svma(&files, symbol)?.wrapping_add_signed(offset).wrapping_add(bias));
        let fetch = operand.fetch(&mut data);
        fetch.map_err(|why| anyhow!("arg{number} of {}, {}, cannot be fetched: {why}", self.called(), operand.text.escape_debug()))
    }
}

/// `argN` or `$argN`.
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
        bail!("a USDT tracepoint's arguments are counted from arg1");
    }
    Ok(Some(number))
}

fn data_svma(files: &[&ElfFile], wanted: &str) -> Option<u64> {
    let mut found = None;
    for file in files {
        listing::each(file, &mut |symbol| {
            if symbol.name == wanted.as_bytes() && symbol.kind != listing::Kind::ThreadLocal {
                found = found.or(Some(symbol.svma));
            }
        });
    }
    found
}

#[cfg(test)]
mod tests;
