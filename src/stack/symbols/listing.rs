//! A listing of all symbols of a file, including data, with the versions of exported ones. It serves lookups by name
//! instead of by address.

use super::alias::Binding;
use super::elf::{ElfFile, string_at};
use goblin::elf::section_header::{SHF_EXECINSTR, SHT_DYNSYM, SHT_GNU_VERDEF, SHT_GNU_VERSYM, SHT_SYMTAB};
use goblin::elf::sym::{
    STB_GLOBAL, STB_GNU_UNIQUE, STB_LOCAL, STT_COMMON, STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, STT_TLS, Symtab,
};
use goblin::elf::{SectionHeader, Sym};

/// A symbol that is defined in its file.
#[derive(Clone, Copy, Debug)]
pub struct DefinedSymbol<'a> {
    /// The name without a version; not escaped.
    pub name: &'a [u8],
    /// The version, from `.gnu.version` or the name in `.symtab` (`name@VERSION`); `None` if the symbol has none.
    pub version: Option<Version<'a>>,
    /// The address; of a thread-local variable, the offset in the file's thread-local segment (PT_TLS).
    pub svma: u64,
    /// In bytes; 0 if the symbol has none.
    pub size: u64,
    /// Whether other files can refer to the symbol (`STB_*`). Bindings of unknown kinds count as weak.
    pub binding: Binding,
    /// What the symbol refers to, by its type (`STT_*`) and its section.
    pub kind: SymbolKind,
    /// For a local symbol: the source file (STT_FILE) that precedes it.
    pub source: Option<&'a [u8]>,
}

/// The version of an exported symbol. A library may export several versions of a name for programs that were linked at
/// different times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// The version's name (`GLIBC_2.34`).
    pub name: &'a [u8],
    /// Whether the linker binds new programs to this version.
    pub is_default: bool,
}

/// What a symbol refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    Function,
    /// A resolver function, which returns the address of the function to be called (IFUNC).
    Ifunc,
    /// A label in assembler code.
    Label,
    Data,
    ThreadLocal,
}

impl SymbolKind {
    /// Returns whether the symbol's address is one of code, including that of a resolver function.
    pub fn is_code(self) -> bool {
        matches!(self, SymbolKind::Function | SymbolKind::Ifunc | SymbolKind::Label)
    }
}

/// Calls `visit` with the defined symbols of `.symtab` and `.dynsym`. Damaged parts are skipped.
pub fn each(file: &ElfFile, visit: &mut dyn FnMut(DefinedSymbol<'_>)) {
    let first = |kind: u32| file.sections().iter().find(|section| section.sh_type == kind);
    if let Some(section) = first(SHT_SYMTAB) {
        each_of(file, section, None, visit);
    }
    if let Some(section) = first(SHT_DYNSYM) {
        each_of(file, section, Versions::read(file).as_ref(), visit);
    }
}

fn each_of(file: &ElfFile, section: &SectionHeader, versions: Option<&Versions>, visit: &mut dyn FnMut(DefinedSymbol<'_>)) {
    let Some(strings) = file.sections().get(section.sh_link as usize) else { return };
    let (Ok(bytes), Ok(strings)) = (file.bytes(section), file.bytes(strings)) else { return };
    let count = bytes.len() / Sym::size(file.context().container);
    let Ok(symbols) = Symtab::parse(&bytes, 0, count, file.context()) else { return };
    let mut source = None;
    for (number, symbol) in symbols.iter().enumerate() {
        let Some(written) = string_at(&strings, symbol.st_name as u64).filter(|name| !name.is_empty()) else { continue };
        if symbol.st_type() == STT_FILE {
            source = Some(written);
            continue;
        }
        let Some(kind) = kind(file, &symbol) else { continue };
        let (name, of_name) = split(written);
        let binding = match symbol.st_bind() {
            STB_LOCAL => Binding::Local,
            STB_GLOBAL | STB_GNU_UNIQUE => Binding::Global,
            _ => Binding::Weak,
        };
        let version = of_name.or_else(|| versions?.of(number));
        let source = source.filter(|_| binding == Binding::Local);
        visit(DefinedSymbol { name, version, svma: symbol.st_value, size: symbol.st_size, binding, kind, source });
    }
}

fn kind(file: &ElfFile, symbol: &Sym) -> Option<SymbolKind> {
    const UNDEFINED: usize = 0;
    let section = file.sections().get(symbol.st_shndx);
    let is_executable = section.is_some_and(|section| section.sh_flags & u64::from(SHF_EXECINSTR) != 0);
    match symbol.st_type() {
        _ if symbol.st_shndx == UNDEFINED => None,
        STT_FUNC => Some(SymbolKind::Function),
        STT_GNU_IFUNC => Some(SymbolKind::Ifunc),
        STT_OBJECT | STT_COMMON => Some(SymbolKind::Data),
        STT_TLS => Some(SymbolKind::ThreadLocal),
        STT_NOTYPE if is_executable => Some(SymbolKind::Label),
        STT_NOTYPE => Some(SymbolKind::Data),
        _ => None,
    }
}

/// Splits a name of `.symtab` into name and version: `name@VERSION`, `name@@DEFAULT`.
pub fn split(written: &[u8]) -> (&[u8], Option<Version<'_>>) {
    match memchr::memchr(b'@', written) {
        Some(at) if at > 0 => {
            let (is_default, name) = match &written[at + 1..] {
                [b'@', name @ ..] => (true, name),
                name => (false, name),
            };
            (&written[..at], Some(Version { name, is_default }))
        }
        _ => (written, None),
    }
}

/// The versions of dynamic symbols (`.gnu.version`, `.gnu.version_d`: Linux Standard Base, "Symbol Versioning").
struct Versions {
    /// The version number of each symbol, by the symbol's number.
    numbers: Vec<u16>,
    names: Vec<(u16, Vec<u8>)>,
}

impl Versions {
    fn read(file: &ElfFile) -> Option<Versions> {
        let first = |kind: u32| file.sections().iter().find(|section| section.sh_type == kind);
        let (numbers, definitions) = (first(SHT_GNU_VERSYM)?, first(SHT_GNU_VERDEF)?);
        let strings = file.bytes(file.sections().get(definitions.sh_link as usize)?).ok()?;
        let bytes = file.bytes(definitions).ok()?;
        let order = file.byte_order();
        let word = |at: usize| order.u32(&bytes, at);
        let mut names = Vec::new();
        let mut at = 0usize;
        // Each entry has the distance to the next one, which is never negative, so the loop ends at the section's end.
        while let (Some(number), Some(first_name), Some(next)) = (order.u16(&bytes, at + 4), word(at + 12), word(at + 16)) {
            let name = at.checked_add(first_name as usize).and_then(&word).and_then(|name| string_at(&strings, name.into()));
            names.extend(name.map(|name| (number, name.to_vec())));
            if next == 0 {
                break;
            }
            at = at.checked_add(next as usize)?;
        }
        let numbers = file.bytes(numbers).ok()?;
        let numbers = numbers.chunks(2).filter_map(|number| order.u16(number, 0)).collect();
        Some(Versions { numbers, names })
    }

    fn of(&self, symbol: usize) -> Option<Version<'_>> {
        const HIDDEN: u16 = 0x8000;
        let number = *self.numbers.get(symbol)?;
        let (_, name) = self.names.iter().find(|(of, _)| *of == number & !HIDDEN && *of > 1)?;
        Some(Version { name, is_default: number & HIDDEN == 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_split_from_its_version() {
        assert_eq!(split(b"open"), (&b"open"[..], None));
        assert_eq!(split(b"open@V1"), (&b"open"[..], Some(Version { name: b"V1", is_default: false })));
        assert_eq!(split(b"open@@V2"), (&b"open"[..], Some(Version { name: b"V2", is_default: true })));
        assert_eq!(split(b"@odd"), (&b"@odd"[..], None));
    }

    #[test]
    fn the_main_function_of_this_test_program_is_listed() {
        let file = ElfFile::read(Box::new(std::fs::read(std::env::current_exe().unwrap()).unwrap())).unwrap();
        let mut mains = Vec::new();
        each(&file, &mut |symbol| {
            if symbol.name == b"main" {
                mains.push((symbol.kind, symbol.binding, symbol.size > 0));
            }
        });
        assert_eq!(mains[0], (SymbolKind::Function, Binding::Global, true));
    }
}
