//! Which symbols of an ELF file name code.

use super::alias::Binding;
use super::elf::{ElfFile, Machine};
use super::linkage;
use super::table::{Builder, Extent, SymbolTable};
use goblin::elf::section_header::{SHF_EXECINSTR, SHT_DYNSYM, SHT_SYMTAB};
use goblin::elf::sym::{STB_GLOBAL, STB_GNU_UNIQUE, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Symtab};
use goblin::elf::{SectionHeader, Sym};

/// The symbols of a file, put together from its parts.
#[derive(Default)]
pub struct Code {
    builder: Builder,
    complete: bool,
}

impl Code {
    /// Adds `.symtab` and `.dynsym`, of which a file has one at most.
    pub fn add(&mut self, file: &ElfFile) {
        let first = |kind: u32| file.sections().iter().find(|section| section.sh_type == kind);
        if let Some(section) = first(SHT_SYMTAB) {
            self.complete |= self.add_section(file, section, true);
        }
        if let Some(section) = first(SHT_DYNSYM) {
            self.add_section(file, section, false);
        }
    }

    /// Adds the linkage table's stubs. After all other symbols: stubs may be named by them.
    pub fn add_stubs(&mut self, file: &ElfFile) {
        linkage::add_stubs(file, &mut self.builder);
    }

    /// A `.symtab` was read, so also functions that are not exported have names.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    pub fn finish(self) -> SymbolTable {
        self.builder.finish()
    }

    /// False if there is nothing to be read. A damaged part is left out.
    ///
    /// Where local functions are missing, what follows a label is not known to belong to it: labels are then left out.
    fn add_section(&mut self, file: &ElfFile, section: &SectionHeader, with_labels: bool) -> bool {
        let Some(strings) = file.sections().get(section.sh_link as usize) else { return false };
        let (Ok(bytes), Ok(strings)) = (file.bytes(section), file.bytes(strings)) else { return false };
        let count = bytes.len() / Sym::size(file.context().container);
        let Ok(symbols) = Symtab::parse(&bytes, 0, count, file.context()) else { return false };
        let names = self.builder.strings(strings);
        let marks = matches!(file.machine(), Machine::Aarch64 | Machine::Other(_));
        for symbol in symbols.iter() {
            let section = file.sections().get(symbol.st_shndx);
            let Some(extent) = extent(&symbol, section) else { continue };
            let Ok(name) = u32::try_from(symbol.st_name) else { continue };
            if matches!(extent, Extent::UpTo(_)) && (!with_labels || self.builder.is_mark(names, name, marks)) {
                continue;
            }
            self.builder.add(symbol.st_value, extent, binding(&symbol), names, name);
        }
        count > 1
    }
}

/// How far the symbol names code; `None` if it is none, or elsewhere.
fn extent(symbol: &Sym, section: Option<&SectionHeader>) -> Option<Extent> {
    const UNDEFINED: usize = 0;
    const FIRST_RESERVED: usize = 0xff00;
    const INDEX_ELSEWHERE: usize = 0xffff;
    let is_executable = section.is_some_and(|section| section.sh_flags & u64::from(SHF_EXECINSTR) != 0);
    let may_be_code = match symbol.st_shndx {
        UNDEFINED => false,
        INDEX_ELSEWHERE => true,
        FIRST_RESERVED.. => false,
        _ => is_executable,
    };
    let is_code = match symbol.st_type() {
        STT_FUNC | STT_GNU_IFUNC => may_be_code,
        STT_NOTYPE => is_executable,
        _ => false,
    };
    match symbol.st_size {
        _ if !is_code => None,
        0 => section.filter(|_| is_executable).map(|section| Extent::UpTo(section.sh_addr.saturating_add(section.sh_size))),
        size => Some(Extent::Size(size)),
    }
}

fn binding(symbol: &Sym) -> Binding {
    match symbol.st_bind() {
        STB_LOCAL => Binding::Local,
        STB_GLOBAL | STB_GNU_UNIQUE => Binding::Global,
        _ => Binding::Weak,
    }
}

#[cfg(test)]
mod tests;
