//! The symbols of an ELF file that name code.

use super::alias::Binding;
use super::elf::{ElfFile, Machine};
use super::linkage;
use super::table::{Builder, Extent, SymbolTable};
use goblin::elf::section_header::{SHF_EXECINSTR, SHT_DYNSYM, SHT_SYMTAB};
use goblin::elf::sym::{STB_GLOBAL, STB_GNU_UNIQUE, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Symtab};
use goblin::elf::{SectionHeader, Sym};

/// The symbols of code that are collected from the symbol tables of a file and its debug file.
#[derive(Default)]
pub struct CodeSymbols {
    builder: Builder,
    complete: bool,
}

impl CodeSymbols {
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

    /// Adds the stubs of the procedure linkage table. Call it after all symbols are added, because these may name the
    /// functions of stubs.
    pub fn add_stubs(&mut self, file: &ElfFile) {
        linkage::add_stubs(file, &mut self.builder);
    }

    /// Whether a `.symtab` was read, so that functions that are not exported also have symbols.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Returns the table of all symbols.
    pub fn finish(self) -> SymbolTable {
        self.builder.finish()
    }

    /// Adds the symbols of one section. Returns false if it has none. A damaged section is skipped.
    ///
    /// A section without local functions (`.dynsym`) does not show where the code behind a label ends, so its labels
    /// are left out.
    fn add_section(&mut self, file: &ElfFile, section: &SectionHeader, with_labels: bool) -> bool {
        let Some(strings) = file.sections().get(section.sh_link as usize) else { return false };
        let (Ok(bytes), Ok(strings)) = (file.bytes(section), file.bytes(strings)) else { return false };
        let count = bytes.len() / Sym::size(file.context().container);
        let Ok(symbols) = Symtab::parse(&bytes, 0, count, file.context()) else { return false };
        let names = self.builder.strings(strings);
        let has_mapping_symbols = matches!(file.machine(), Machine::Aarch64 | Machine::Other(_));
        for symbol in symbols.iter() {
            let section = file.sections().get(symbol.st_shndx);
            let Some(extent) = extent(&symbol, section) else { continue };
            let Ok(name) = u32::try_from(symbol.st_name) else { continue };
            if matches!(extent, Extent::UpTo(_)) && (!with_labels || self.builder.is_internal_label(names, name, has_mapping_symbols)) {
                continue;
            }
            self.builder.add(symbol.st_value, extent, binding(&symbol), names, name);
        }
        count > 1
    }
}

/// Returns the extent of the code that a symbol names, or `None` if it is undefined or does not name code.
fn extent(symbol: &Sym, section: Option<&SectionHeader>) -> Option<Extent> {
    const UNDEFINED: usize = 0;
    const FIRST_RESERVED: usize = 0xff00;
    /// `SHN_XINDEX`: the index is in another section.
    const EXTENDED_INDEX: usize = 0xffff;
    let is_executable = section.is_some_and(|section| section.sh_flags & u64::from(SHF_EXECINSTR) != 0);
    let may_be_code = match symbol.st_shndx {
        UNDEFINED => false,
        EXTENDED_INDEX => true,
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
