//! `perf-PID.map`: the functions of a just-in-time compiler, one line each, to which the compiler appends.
//!
//! A line is `START SIZE name`, both numbers hexadecimal (linux/tools/perf/Documentation/jit-interface.txt). A later
//! line replaces earlier ones of the same addresses.

use super::table::SymbolAt;
use std::collections::BTreeMap;

/// The greatest size of the names of one process's just-in-time compiled functions, in bytes.
const NAMES_MAX: usize = 64 << 20;
/// The greatest number of these functions.
const FUNCTIONS_MAX: usize = 1 << 20;

/// Functions that were compiled at run time, by address. A new function replaces the overlapping parts of older ones.
#[derive(Debug, Default)]
pub struct JitFunctions {
    by_start: BTreeMap<u64, Function>,
    names: Vec<u8>,
}

/// A function, or the part of it that newer ones have not replaced.
#[derive(Clone, Copy, Debug)]
struct Function {
    /// The address of its first instruction, even if a newer function has replaced its beginning.
    start: u64,
    /// The address behind its last instruction.
    end: u64,
    /// Offset and length of the name in `names`.
    name: (u32, u32),
}

impl JitFunctions {
    /// Adds a function. It is dropped if there are too many.
    pub fn add(&mut self, start: u64, size: u64, name: &[u8]) {
        if size == 0 || self.names.len() + name.len() > NAMES_MAX || self.by_start.len() >= FUNCTIONS_MAX {
            return;
        }
        let place = (self.names.len() as u32, name.len() as u32);
        self.names.extend(name);
        self.put(Function { start, end: start.saturating_add(size), name: place });
    }

    /// Moves a function to another address.
    pub fn relocate(&mut self, from: u64, to: u64, size: u64) {
        if let Some(function) = self.by_start.get(&from).copied() {
            self.by_start.remove(&from);
            self.put(Function { start: to, end: to.saturating_add(size), ..function });
        }
    }

    /// Returns the function that was compiled to this address last.
    pub fn at(&self, address: u64) -> Option<SymbolAt<'_>> {
        let (_, function) = self.by_start.range(..=address).next_back()?;
        let (name, len) = (function.name.0 as usize, function.name.1 as usize);
        (address < function.end).then(|| SymbolAt {
            symbol: function.name.0,
            name: &self.names[name..name + len],
            offset: address - function.start,
        })
    }

    fn put(&mut self, function: Function) {
        let (start, end) = (function.start, function.end);
        let first = self.by_start.range(..=start).next_back().map_or(start, |(first, _)| *first);
        let covered: Vec<u64> = self.by_start.range(first..end).filter(|(_, old)| old.end > start).map(|(first, _)| *first).collect();
        for first in covered {
            let Some(old) = self.by_start.remove(&first) else { continue };
            if old.end > end {
                self.by_start.insert(end, old);
            }
            if first < start {
                self.by_start.insert(first, Function { end: start, ..old });
            }
        }
        self.by_start.insert(start, function);
    }
}

/// A map that is read while it grows.
#[derive(Debug, Default)]
pub struct PerfMap {
    functions: JitFunctions,
    /// The beginning of a line whose end was not written yet.
    partial: Vec<u8>,
}

impl PerfMap {
    /// Parses the text that was appended to the file.
    pub fn append(&mut self, text: &[u8]) {
        const LINE_MAX: usize = 64 << 10;
        let Some(end) = memchr::memrchr(b'\n', text) else {
            self.partial.extend(&text[..text.len().min(LINE_MAX.saturating_sub(self.partial.len()))]);
            return;
        };
        let first_end = memchr::memchr(b'\n', text).unwrap_or(end);
        let mut first = std::mem::take(&mut self.partial);
        first.extend(&text[..first_end]);
        for line in std::iter::once(&first[..]).chain(text[first_end..end].split(|byte| *byte == b'\n')) {
            if let Some((start, size, name)) = parse_line(line) {
                self.functions.add(start, size, name);
            }
        }
        self.partial.extend(&text[end + 1..][..(text.len() - end - 1).min(LINE_MAX)]);
    }

    /// Returns the functions that were read.
    pub fn functions(&self) -> &JitFunctions {
        &self.functions
    }
}

/// Parses a line: start, size, and name, which may contain blanks.
fn parse_line(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let text = str::from_utf8(parts.next()?).ok()?;
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = parts.next()?.trim_ascii();
    (!name.is_empty()).then_some((start, size, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"7f00 10 first\n7f10 0x10 LazyCompile:~f x.js:1\nbad line\n7f08 10 second\nnothing\n8000 8 last";

    fn names(map: &PerfMap) -> Vec<Option<(String, u64)>> {
        let at = |address| map.functions().at(address).map(|found| (String::from_utf8(found.name.to_vec()).unwrap(), found.offset));
        [0x7eff, 0x7f00, 0x7f07, 0x7f08, 0x7f17, 0x7f18, 0x7f1f, 0x7f20, 0x8000].map(at).into()
    }

    #[test]
    fn later_lines_replace_earlier_ones() {
        let mut map = PerfMap::default();
        map.append(TEXT);
        let found = |name: &str, offset| Some((name.to_owned(), offset));
        let js = "LazyCompile:~f x.js:1";
        let mut expected = vec![
            None,
            found("first", 0),
            found("first", 7),
            found("second", 0),
            found("second", 15),
            found(js, 8),
            found(js, 15),
            None,
            None,
        ];
        assert_eq!(names(&map), expected);
        map.append(b"\n");
        expected[8] = found("last", 0);
        assert_eq!(names(&map), expected);
        for cut in 0..TEXT.len() {
            let mut parts = PerfMap::default();
            parts.append(&TEXT[..cut]);
            parts.append(&TEXT[cut..]);
            parts.append(b"\n");
            assert_eq!(names(&parts), expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_moved_function_keeps_its_name() {
        let mut functions = JitFunctions::default();
        functions.add(0x100, 0x10, b"f");
        functions.relocate(0x100, 0x200, 0x10);
        functions.relocate(0x300, 0x400, 0x10);
        assert_eq!((functions.at(0x100), functions.at(0x20f).map(|found| found.offset)), (None, Some(15)));
    }

    proptest! {
        #[test]
        fn random_bytes_cause_no_panic(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8)) {
            let mut map = PerfMap::default();
            parts.iter().for_each(|part| map.append(part));
        }

        /// The result is compared with that of a search from the end of the list of functions.
        #[test]
        fn an_address_belongs_to_the_function_added_last(added in proptest::collection::vec((0u64..64, 1u64..16), 0..24)) {
            let mut functions = JitFunctions::default();
            for (number, (start, size)) in added.iter().enumerate() {
                functions.add(*start, *size, number.to_string().as_bytes());
            }
            for address in 0..80 {
                let last = added.iter().rposition(|(start, size)| (*start..start + size).contains(&address));
                let expected = last.map(|number| (number.to_string().into_bytes(), address - added[number].0));
                prop_assert_eq!(functions.at(address).map(|found| (found.name.to_vec(), found.offset)), expected);
            }
        }
    }
}
