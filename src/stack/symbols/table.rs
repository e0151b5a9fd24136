//! A compact table of the symbols of one file: 12 bytes each, and their names.

use super::alias::{self, Binding};
use super::elf::string_at;
use std::cmp::Reverse;
use std::ops::Range;

/// The symbols of code by address.
///
/// Addresses are stored as 32-bit distances from a base. If a file's code spans more than 4 GiB, there are several
/// bases.
#[derive(Debug, Default)]
pub struct SymbolTable {
    /// For each base: its address, and the number of the first symbol that is relative to it.
    bases: Box<[(u64, u32)]>,
    starts: Box<[u32]>,
    sizes: Box<[u32]>,
    /// The offset in `names` of each symbol's name, and the offset of the end.
    name_starts: Box<[u32]>,
    names: Box<[u8]>,
    /// For each symbol that begins within another: its number and that of the enclosing symbol, sorted by the former.
    outer: Box<[(u32, u32)]>,
}

/// The symbol that holds an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolAt<'a> {
    /// The symbol's number in the table.
    pub symbol: u32,
    /// The name in the file, without a version; not escaped.
    pub name: &'a [u8],
    /// The offset of the address from the symbol's start, in bytes.
    pub offset: u64,
}

impl SymbolTable {
    /// Returns the innermost symbol that holds an address.
    pub fn at(&self, address: u64) -> Option<SymbolAt<'_>> {
        let base = self.bases.partition_point(|(base, _)| *base <= address).checked_sub(1)?;
        let symbols = self.symbols_of(base);
        let distance = u32::try_from(address - self.bases[base].0).unwrap_or(u32::MAX);
        let mut symbol = symbols.start + self.starts[symbols].partition_point(|start| *start <= distance) - 1;
        // A damaged file may nest symbols arbitrarily deep. Real files nest them once or twice.
        for _ in 0..64 {
            let offset = address - self.start(symbol);
            if offset < u64::from(self.sizes[symbol]) {
                return Some(SymbolAt { symbol: symbol as u32, name: self.name(symbol), offset });
            }
            let outer = self.outer.binary_search_by_key(&(symbol as u32), |(inner, _)| *inner).ok()?;
            symbol = self.outer[outer].1 as usize;
        }
        None
    }

    /// Returns the number of symbols.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether the table has no symbols.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns the memory in bytes.
    pub fn footprint(&self) -> usize {
        let numbers = size_of_val(&*self.starts) + size_of_val(&*self.sizes) + size_of_val(&*self.name_starts);
        size_of_val(&*self.bases) + numbers + self.names.len() + size_of_val(&*self.outer)
    }

    /// Returns address, size and name of all symbols, sorted by address.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, &[u8])> {
        (0..self.len()).map(|symbol| (self.start(symbol), u64::from(self.sizes[symbol]), self.name(symbol)))
    }

    fn symbols_of(&self, base: usize) -> Range<usize> {
        let end = self.bases.get(base + 1).map_or(self.starts.len(), |(_, first)| *first as usize);
        self.bases[base].1 as usize..end
    }

    fn start(&self, symbol: usize) -> u64 {
        let base = self.bases.partition_point(|(_, first)| *first as usize <= symbol) - 1;
        self.bases[base].0 + u64::from(self.starts[symbol])
    }

    fn name(&self, symbol: usize) -> &[u8] {
        &self.names[self.name_starts[symbol] as usize..self.name_starts[symbol + 1] as usize]
    }
}

/// The extent of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A size in bytes, at least 1. It is cut at 4 GiB.
    Size(u64),
    /// A label without a size in assembler code (`_init`, `frame_dummy`). It extends to the next symbol, but not beyond
    /// this address, which is the end of its section. A label within a sized symbol is the target of a jump, and names
    /// nothing.
    UpTo(u64),
}

/// Collects symbols of several sections, in any order, with all their aliases.
#[derive(Default)]
pub struct Builder {
    strings: Vec<Vec<u8>>,
    collected: Vec<CollectedSymbol>,
    /// The size of all collected names in bytes.
    names: usize,
}

/// The number of a string table in a [`Builder`].
#[derive(Clone, Copy, Debug)]
pub struct Strings(u32);

/// A symbol that was added to a [`Builder`].
struct CollectedSymbol {
    start: u64,
    /// 0 for a label.
    size: u32,
    binding: Binding,
    strings: Strings,
    /// Offset and length of the name in the string table.
    name: (u32, u32),
    /// For a label: the end of its section.
    up_to: u64,
}

/// The greatest number of symbols of one file. (libLLVM has 34,000 exported ones, 150,000 in all; Chromium's debug file
/// has 700,000.)
const SYMBOLS_MAX: usize = 8 << 20;
/// The greatest size of all names of one file, in bytes.
const NAMES_MAX: usize = 512 << 20;
/// The greatest length of a name. Symbols with longer ones are left out.
const NAME_MAX: usize = 32 << 10;

impl Builder {
    /// Adds a string table: zero-terminated strings, from which names are read.
    pub fn strings(&mut self, bytes: Vec<u8>) -> Strings {
        self.strings.push(bytes);
        Strings(self.strings.len() as u32 - 1)
    }

    /// Adds a symbol whose name begins at an offset of a string table. The symbol is left out if there is no string.
    pub fn add(&mut self, start: u64, extent: Extent, binding: Binding, strings: Strings, name: u32) {
        let (size, up_to) = match extent {
            Extent::Size(size) => (u32::try_from(size.min(u64::MAX - start)).unwrap_or(u32::MAX), 0),
            Extent::UpTo(end) => (0, end),
        };
        let length = self.string(strings, name).map_or(0, <[u8]>::len);
        if length == 0 || self.collected.len() >= SYMBOLS_MAX || self.names + length > NAMES_MAX {
            return;
        }
        self.names += length;
        self.collected.push(CollectedSymbol { start, size, binding, strings, name: (name, length as u32), up_to });
    }

    /// Whether a name is not a label that anybody wrote: a local label of the compiler (`.L12`), or a mapping symbol,
    /// which marks where code and data begin (`$x`, `$d.1`; only if `mapping` is set).
    pub fn is_internal_label(&self, strings: Strings, name: u32, mapping: bool) -> bool {
        let strings = self.strings.get(strings.0 as usize).and_then(|strings| strings.get(name as usize..)).unwrap_or_default();
        match strings {
            [b'.', b'L', ..] => true,
            [b'$', _, 0 | b'.', ..] => mapping,
            _ => false,
        }
    }

    /// Adds a symbol with a name that no section has. The name is appended to the string table `table`.
    pub fn add_named(&mut self, start: u64, size: u64, binding: Binding, name: &[u8], table: Strings) {
        let Some(strings) = self.strings.get_mut(table.0 as usize) else { return };
        let Ok(offset) = u32::try_from(strings.len()) else { return };
        strings.extend(name);
        strings.push(0);
        self.add(start, Extent::Size(size), binding, table, offset);
    }

    /// Sorts the symbols that were added so far, for [`Builder::name_at`].
    pub fn sort(&mut self) {
        self.collected.sort_unstable_by_key(|symbol| (symbol.start, Reverse(symbol.size)));
    }

    /// Returns the preferred name of the symbols that begin at an address. [`Builder::sort`] must have been called
    /// since the last symbol was added.
    pub fn name_at(&self, start: u64) -> Option<&[u8]> {
        let first = self.collected.partition_point(|symbol| symbol.start < start);
        let there =
            self.collected[first..].iter().take_while(|symbol| symbol.start == start).map(|symbol| (self.name(symbol), symbol.binding));
        there.min_by(|a, b| alias::compare(*a, *b)).map(|(name, _)| name)
    }

    /// Builds the table, with one name for each address and size.
    pub fn finish(mut self) -> SymbolTable {
        self.sort();
        let collected = std::mem::take(&mut self.collected);
        let mut writer = TableWriter::default();
        // The greatest end of the symbols so far, by which labels within sized symbols are left out.
        let mut covered = 0;
        let mut rest = &collected[..];
        while let Some(first) = rest.first() {
            let aliases = rest.iter().take_while(|symbol| symbol.start == first.start && symbol.size == first.size).count();
            let (same, behind) = rest.split_at(aliases);
            rest = behind;
            let size = match first.size {
                0 if first.start < covered => continue,
                0 => label_size(same, behind.first().map(|next| next.start)),
                size => size,
            };
            let Some(best) = same.iter().min_by(|a, b| alias::compare((self.name(a), a.binding), (self.name(b), b.binding))) else {
                continue;
            };
            covered = covered.max(first.start.saturating_add(u64::from(size)));
            if !writer.push(first.start, size, self.name(best)) {
                break;
            }
        }
        writer.finish()
    }

    fn name(&self, symbol: &CollectedSymbol) -> &[u8] {
        let (start, length) = (symbol.name.0 as usize, symbol.name.1 as usize);
        let strings = self.strings.get(symbol.strings.0 as usize);
        strings.and_then(|strings| strings.get(start..)?.get(..length)).unwrap_or_default()
    }

    /// Returns the string at an offset, without a symbol version (`memcpy@@GLIBC_2.14`), which is no part of the
    /// function's name. `write@plt` is kept.
    fn string(&self, strings: Strings, start: u32) -> Option<&[u8]> {
        let rest = self.strings.get(strings.0 as usize)?.get(start as usize..)?;
        let name = string_at(&rest[..rest.len().min(NAME_MAX)], 0)?;
        match memchr::memchr(b'@', name) {
            Some(at) if at > 0 && !name.ends_with(b"@plt") => Some(&name[..at]),
            _ => Some(name),
        }
    }
}

fn label_size(labels: &[CollectedSymbol], next: Option<u64>) -> u32 {
    let section_end = labels.iter().map(|label| label.up_to).max().unwrap_or(0);
    let end = next.map_or(section_end, |next| next.min(section_end));
    u32::try_from(end.saturating_sub(labels[0].start)).unwrap_or(u32::MAX)
}

/// Writes a table. Symbols are added in the order of their addresses.
#[derive(Default)]
struct TableWriter {
    bases: Vec<(u64, u32)>,
    starts: Vec<u32>,
    sizes: Vec<u32>,
    name_starts: Vec<u32>,
    names: Vec<u8>,
    outer: Vec<(u32, u32)>,
    /// The symbols that enclose the last one, with the end address of each.
    open: Vec<(u32, u64)>,
}

impl TableWriter {
    /// Adds a symbol. Returns false if the table is full (4 GiB of names).
    fn push(&mut self, start: u64, size: u32, name: &[u8]) -> bool {
        let (Ok(symbol), Ok(name_start)) = (u32::try_from(self.starts.len()), u32::try_from(self.names.len())) else { return false };
        if u32::try_from(self.names.len() + name.len()).is_err() {
            return false;
        }
        let distance = self.bases.last().and_then(|(base, _)| u32::try_from(start - base).ok());
        if distance.is_none() {
            self.bases.push((start, symbol));
        }
        while self.open.pop_if(|(_, end)| *end <= start).is_some() {}
        if let Some((outer, _)) = self.open.last() {
            self.outer.push((symbol, *outer));
        }
        self.open.push((symbol, start.saturating_add(u64::from(size))));
        self.starts.push(distance.unwrap_or(0));
        self.sizes.push(size);
        self.name_starts.push(name_start);
        self.names.extend(name);
        true
    }

    fn finish(mut self) -> SymbolTable {
        self.name_starts.push(self.names.len() as u32);
        SymbolTable {
            bases: self.bases.into(),
            starts: self.starts.into(),
            sizes: self.sizes.into(),
            name_starts: self.name_starts.into(),
            names: self.names.into(),
            outer: self.outer.into(),
        }
    }
}

#[cfg(test)]
mod tests;
