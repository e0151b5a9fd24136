//! The symbols of the kernel, its modules and its BPF programs: /proc/kallsyms (man 5 proc_kallsyms).
//!
//! The file is read at the first lookup, and again when an address has no symbol, because modules and programs are
//! loaded and unloaded.
//!
//! The file has no sizes. A symbol extends to the next one, of code or data, as in the kernel's own messages.

use super::alias::Binding;
use super::table::{Builder, SymbolTable};
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};
use thiserror::Error;

/// The greatest size of a function. It bounds the last symbol of a module, because the next symbol may be far away.
const FUNCTION_MAX: u64 = 1 << 20;

/// The error that the kernel shows all addresses as zero to this user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the kernel hides its addresses (/proc/sys/kernel/kptr_restrict): kernel functions have no names")]
pub struct Hidden;

/// The symbols of kernel code by address.
#[derive(Debug, Default)]
pub struct Kallsyms {
    table: SymbolTable,
    /// The start addresses of code of one owner, with the index in `owners`.
    runs: Vec<(u64, u16)>,
    /// The names of modules (`ext4`), `bpf`, and `__builtin__ftrace`; the first is empty and stands for the kernel
    /// itself.
    owners: Vec<Box<[u8]>>,
}

/// The kernel's symbols, which are read again when an address has none.
#[derive(Default)]
pub struct KernelNames {
    symbols: Option<Kallsyms>,
    read: Option<Instant>,
    problem: Option<String>,
}

/// The least time between two reads. A read takes some 60 ms, which is too long to do it for each address without a
/// name.
const READ_INTERVAL: Duration = Duration::from_secs(10);

impl KernelNames {
    /// Returns the function at an address. `read` reads the text of /proc/kallsyms.
    pub fn at(&mut self, address: u64, now: Instant, read: impl FnOnce() -> io::Result<Vec<u8>>) -> Option<KernelName<'_>> {
        let is_due = self.read.is_none_or(|read| now.duration_since(read) >= READ_INTERVAL);
        if is_due && self.symbols.as_ref().is_none_or(|symbols| symbols.at(address).is_none()) {
            self.read_again(read());
            self.read = Some(now);
        }
        self.symbols.as_ref()?.at(address)
    }

    /// Returns why there are no names; later calls return it no more.
    pub fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    fn read_again(&mut self, text: io::Result<Vec<u8>>) {
        let is_first = self.read.is_none();
        let problem = match text.map(Kallsyms::parse) {
            Ok(Ok(symbols)) => return self.symbols = Some(symbols),
            Ok(Err(hidden)) => hidden.to_string(),
            Err(error) => format!("the kernel's symbols cannot be read ({error}): kernel functions have no names"),
        };
        self.problem = is_first.then_some(problem);
    }
}

/// The kernel's function at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelName<'a> {
    /// The name, not escaped and not demangled.
    pub name: &'a [u8],
    /// The module's name; `None` for the kernel itself, `bpf` for BPF programs.
    pub module: Option<&'a [u8]>,
    /// In bytes from the symbol's start.
    pub offset: u64,
}

/// A symbol of code: its address, and the offset of its name in the text.
struct Symbol {
    start: u64,
    name: u32,
    binding: Binding,
    owner: u16,
}

impl Kallsyms {
    /// Parses the file's text. Malformed lines are skipped.
    ///
    /// # Errors
    /// Fails if all addresses are zero.
    pub fn parse(mut text: Vec<u8>) -> Result<Kallsyms, Hidden> {
        let mut starts = Vec::with_capacity(text.len() / 44);
        let mut code = Vec::with_capacity(text.len() / 44);
        let mut owners: Vec<Box<[u8]>> = vec![Box::default()];
        let mut line_start = 0;
        while let Some(length) = memchr::memchr(b'\n', &text[line_start..]) {
            let line_end = line_start + length;
            if let Some(line) = Line::parse(&text[line_start..line_end]) {
                starts.push(line.start);
                if let (Some(binding), Ok(name)) = (line.code, u32::try_from(line_start + line.name.start)) {
                    let owner = owner_number(&mut owners, line.owner);
                    code.push(Symbol { start: line.start, name, binding, owner });
                }
                let name_end = line_start + line.name.end;
                text[name_end] = 0;
            }
            line_start = line_end + 1;
        }
        if !starts.is_empty() && starts.iter().all(|start| *start == 0) {
            return Err(Hidden);
        }
        starts.sort_unstable();
        starts.dedup();
        code.sort_unstable_by_key(|symbol| symbol.start);
        let runs = runs(&code);
        Ok(Kallsyms { table: table(text, &starts, &code), runs, owners })
    }

    /// Returns the function at an address.
    pub fn at(&self, address: u64) -> Option<KernelName<'_>> {
        let found = self.table.at(address)?;
        let run = self.runs.partition_point(|(start, _)| *start <= address - found.offset).checked_sub(1)?;
        let owner = &*self.owners[usize::from(self.runs[run].1)];
        Some(KernelName { name: found.name, module: (!owner.is_empty()).then_some(owner), offset: found.offset })
    }
}

/// A line of the file: `ffffffff81000000 T name\t[module]`.
pub struct Line<'a> {
    start: u64,
    /// The binding of a symbol of code; `None` for data.
    pub code: Option<Binding>,
    line: &'a [u8],
    /// The range of the name in the line.
    name: Range<usize>,
    /// The module's name; `bpf` for BPF programs, empty for the kernel itself.
    pub owner: &'a [u8],
}

impl<'a> Line<'a> {
    /// Parses a line. Returns `None` if it is malformed.
    pub fn parse(line: &'a [u8]) -> Option<Line<'a>> {
        let mut start = 0u64;
        let mut digits = 0;
        while let Some(digit) = line.get(digits).and_then(|byte| char::from(*byte).to_digit(16)) {
            start = start.checked_mul(16)? | u64::from(digit);
            digits += 1;
        }
        let [b' ', kind, b' ', rest @ ..] = line.get(digits..)? else { return None };
        let code = match kind {
            b'T' => Some(Binding::Global),
            b'W' | b'w' => Some(Binding::Weak),
            b't' => Some(Binding::Local),
            _ => None,
        };
        let (name, owner) = match memchr::memchr(b'\t', rest) {
            Some(tab) => (&rest[..tab], rest[tab + 1..].strip_prefix(b"[")?.strip_suffix(b"]")?),
            None => (rest, &[][..]),
        };
        let begin = digits + 3;
        (digits > 0 && !name.is_empty()).then_some(Line { start, code, line, name: begin..begin + name.len(), owner })
    }

    /// Returns the name, not escaped and not demangled.
    pub fn name(&self) -> &'a [u8] {
        &self.line[self.name.clone()]
    }
}

const OWNERS_MAX: usize = 4096;

/// Returns the index of an owner, and adds the owner if it is new. The search begins at the end, because the symbols of
/// a module are adjacent in the file.
fn owner_number(owners: &mut Vec<Box<[u8]>>, owner: &[u8]) -> u16 {
    if owner.is_empty() {
        return 0;
    }
    let known = owners.iter().rposition(|known| **known == *owner);
    let number = known.unwrap_or_else(|| {
        // A machine has some hundred modules. Symbols of further owners count as the kernel's.
        if owners.len() >= OWNERS_MAX {
            return 0;
        }
        owners.push(owner.into());
        owners.len() - 1
    });
    number as u16
}

fn runs(code: &[Symbol]) -> Vec<(u64, u16)> {
    let mut runs: Vec<(u64, u16)> = Vec::new();
    for symbol in code {
        if runs.last().is_none_or(|(_, owner)| *owner != symbol.owner) {
            runs.push((symbol.start, symbol.owner));
        }
    }
    runs
}

/// Builds the table of functions. `starts` has the addresses of all symbols, also of data, because each of them ends
/// the symbol before.
fn table(text: Vec<u8>, starts: &[u64], code: &[Symbol]) -> SymbolTable {
    let mut builder = Builder::default();
    let names = builder.strings(text);
    let mut next = 0;
    for symbol in code {
        while starts.get(next).is_some_and(|start| *start <= symbol.start) {
            next += 1;
        }
        let size = starts.get(next).map_or(FUNCTION_MAX, |end| (end - symbol.start).min(FUNCTION_MAX));
        builder.add(symbol.start, super::table::Extent::Size(size), symbol.binding, names, symbol.name);
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"0000000000000000 A fixed_percpu_data\n\
        ffffffff81000000 T _text\nffffffff81000000 T startup_64\nffffffff81000040 t local_one\nffffffff81000080 D some_data\n\
        ffffffff81000100 W weak_one\nffffffffc0000000 t helper\t[ext4]\nffffffffc0000010 T ext4_sync\t[ext4]\n\
        ffffffffc0500000 t bpf_prog_6deef7357e7b4530_sd_fw_ingress\t[bpf]\nrubbish\nffffffffc0000020 t unfinished";

    fn name(symbols: &Kallsyms, address: u64) -> Option<String> {
        let found = symbols.at(address)?;
        let module = found.module.map_or(String::new(), |module| format!(" [{}]", String::from_utf8_lossy(module)));
        Some(format!("{}+{:#x}{module}", String::from_utf8_lossy(found.name), found.offset))
    }

    #[test]
    fn functions_of_the_kernel_modules_and_bpf_programs_are_found() {
        let symbols = Kallsyms::parse(TEXT.to_vec()).unwrap();
        let at = |address| name(&symbols, address);
        assert_eq!(at(0xffff_ffff_8100_003f).unwrap(), "startup_64+0x3f");
        assert_eq!(at(0xffff_ffff_8100_0040).unwrap(), "local_one+0x0");
        assert_eq!(at(0xffff_ffff_8100_0080), None, "data is no function");
        assert_eq!(at(0xffff_ffff_8100_0104).unwrap(), "weak_one+0x4");
        assert_eq!(at(0xffff_ffff_8180_0000), None, "far behind the last symbol of the kernel");
        assert_eq!(at(0xffff_ffff_c000_000f).unwrap(), "helper+0xf [ext4]");
        assert_eq!(at(0xffff_ffff_c050_0002).unwrap(), "bpf_prog_6deef7357e7b4530_sd_fw_ingress+0x2 [bpf]");
        assert_eq!(at(0x10), None);
        assert_eq!(symbols.table.len(), 6);
    }

    #[test]
    fn a_file_with_only_zero_addresses_is_an_error() {
        assert_eq!(Kallsyms::parse(b"0000000000000000 T _text\n0000000000000000 t other\n".to_vec()).unwrap_err(), Hidden);
        assert!(Kallsyms::parse(Vec::new()).unwrap().table.is_empty());
    }

    #[test]
    fn the_file_is_read_again_when_a_name_is_missing() {
        let mut names = KernelNames::default();
        let never = || -> io::Result<Vec<u8>> { panic!("not again") };
        let program = 0xffff_ffff_c050_0002;
        let mut now = Instant::now();
        let before = TEXT.split(|byte| *byte == b'\n').filter(|line| !line.ends_with(b"[bpf]")).collect::<Vec<_>>().join(&b'\n');
        assert_eq!(names.at(program, now, || Ok(before)), None);
        assert_eq!(names.at(program, now, never), None, "just read");
        assert_eq!(names.at(0xffff_ffff_8100_0040, now, never).unwrap().name, b"local_one");
        now += READ_INTERVAL;
        assert_eq!(names.at(0xffff_ffff_8100_0040, now, never).unwrap().name, b"local_one");
        assert_eq!(names.at(program, now, || Ok(TEXT.to_vec())).unwrap().module, Some(&b"bpf"[..]));
        assert_eq!(names.take_problem(), None);
    }

    #[test]
    fn a_problem_is_reported_once() {
        let mut names = KernelNames::default();
        let now = Instant::now();
        let hidden = || Ok(b"0000000000000000 T _text\n".to_vec());
        assert_eq!(names.at(1, now, hidden), None);
        assert!(names.take_problem().unwrap().contains("kptr_restrict"));
        assert_eq!(names.at(1, now + READ_INTERVAL, || Err(io::ErrorKind::PermissionDenied.into())), None);
        assert_eq!(names.take_problem(), None);
    }

    #[test]
    fn a_truncated_file_causes_no_panic() {
        for end in 0..TEXT.len() {
            let _ = Kallsyms::parse(TEXT[..end].to_vec());
        }
    }

    proptest! {
        #[test]
        fn random_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), line in "[0-9a-f]{1,17} [tTwWdD] [a-z\t\\[\\]]{0,12}\n") {
            let symbols = Kallsyms::parse([TEXT, &bytes, b"\n", line.as_bytes()].concat()).unwrap();
            let _ = symbols.at(0xffff_ffff_8100_0000);
        }
    }
}
