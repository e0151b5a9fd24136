//! Names of the stubs in the procedure linkage table (PLT): `write@plt`.
//!
//! A stub jumps through a slot whose relocation names the function. The slot is decoded from the stub's instructions,
//! so the names do not depend on the linker's layout of the table, nor on whether there is also a `.plt.sec` or
//! `.plt.got`.

use super::alias::Binding;
use super::elf::{ElfFile, Machine, string_at};
use super::table::Builder;
use goblin::container::Ctx;
use goblin::elf::reloc::{self, RelocSection};
use goblin::elf::section_header::{SHT_REL, SHT_RELA};
use goblin::elf::sym::Symtab;
use goblin::elf::{SectionHeader, Sym};
use rustc_hash::{FxHashMap, FxHashSet};

/// Adds the stubs of `.plt`, `.plt.sec` and `.plt.got`.
///
/// Stubs in a damaged part have no names. The file's other symbols are not affected.
pub fn add_stubs(file: &ElfFile, builder: &mut Builder) {
    let relocations = Relocations::of(file);
    let stubs = stubs(file, &relocations);
    if stubs.is_empty() {
        return;
    }
    builder.sort();
    let names = relocations.names(stubs.iter().map(|stub| stub.slot).collect(), builder);
    let stub_names = builder.strings(Vec::new());
    for stub in stubs {
        if let Some(name) = names.get(&stub.slot) {
            builder.add_named(stub.address, stub.size, Binding::Local, &[name, &b"@plt"[..]].concat(), stub_names);
        }
    }
}

/// A stub of the PLT.
struct Stub {
    address: u64,
    size: u64,
    /// The address of the slot that it jumps through.
    slot: u64,
}

fn stubs(file: &ElfFile, relocations: &Relocations<'_>) -> Vec<Stub> {
    let mut stubs = Vec::new();
    for section in [".plt", ".plt.sec", ".plt.got"].iter().filter_map(|name| file.section(name)) {
        let Ok(code) = file.bytes(section) else { continue };
        let size = match section.sh_entsize {
            size @ 8..=32 if size % 4 == 0 => size as usize,
            _ => 16,
        };
        // The first entry of most tables jumps to the dynamic linker's resolver. It differs from the others and has no
        // slot.
        for (index, stub) in code.chunks(size).enumerate() {
            let address = section.sh_addr.wrapping_add((index * size) as u64);
            if let Some(slot) = relocations.slot_of(file.machine(), address, stub) {
                stubs.push(Stub { address, size: stub.len() as u64, slot });
            }
        }
    }
    stubs
}

/// A file's relocations, which fill the slots.
struct Relocations<'a> {
    file: &'a ElfFile,
    /// The slots of `.rela.plt`, in its order. A lazy stub pushes the index of its relocation there.
    in_order: Vec<u64>,
    /// The base of offsets in position-independent i386 code: the address of `.got.plt`, or of `.got`.
    offset_table: u64,
}

/// The number of bytes of a relocation section that are read at a time. Reading begins at the section's end: most
/// relocations are relative ones, which name no function, and linkers put these first.
const PART: u64 = 1 << 18;

impl<'a> Relocations<'a> {
    fn of(file: &'a ElfFile) -> Relocations<'a> {
        let offset_table = file.section(".got.plt").or(file.section(".got")).map_or(0, |section| section.sh_addr);
        let mut in_order = Vec::new();
        if let Some(section) = file.section(".rela.plt").or(file.section(".rel.plt")) {
            let bytes = file.bytes(section).unwrap_or_default();
            in_order.extend(parse(file, section, &bytes).iter().flat_map(RelocSection::iter).map(|relocation| relocation.r_offset));
        }
        Relocations { file, in_order, offset_table }
    }

    fn slot_of(&self, machine: Machine, address: u64, stub: &[u8]) -> Option<u64> {
        let pushed = |unit: usize| self.in_order.get(pushed(stub)? as usize / unit).copied();
        match machine {
            Machine::X86_64 => x86_64_slot(address, stub).or_else(|| pushed(1)),
            // The stub pushes the offset in `.rel.plt`, whose entries have eight bytes.
            Machine::I386 => i386_slot(self.offset_table, stub).or_else(|| pushed(8)),
            Machine::Aarch64 => aarch64_slot(address, stub),
            Machine::Other(_) => None,
        }
    }

    /// Returns the names of the functions whose addresses the relocations put into these slots.
    fn names(&self, mut slots: FxHashSet<u64>, builder: &Builder) -> FxHashMap<u64, Box<[u8]>> {
        let mut names = FxHashMap::default();
        let is_linkage = |section: &SectionHeader| self.file.section_name(section).ends_with(b".plt");
        let mut sections: Vec<&SectionHeader> =
            self.file.sections().iter().filter(|section| [SHT_REL, SHT_RELA].contains(&section.sh_type)).collect();
        sections.sort_by_key(|section| !is_linkage(section));
        for section in sections {
            if slots.is_empty() {
                break;
            }
            self.names_in(section, &mut slots, &mut names, builder);
        }
        names
    }

    /// Adds the names that the relocations of one section have, and removes their slots from `slots`.
    fn names_in(&self, section: &SectionHeader, slots: &mut FxHashSet<u64>, names: &mut FxHashMap<u64, Box<[u8]>>, builder: &Builder) {
        let symbols = Names::of(self.file, section);
        let part = PART - PART % section.sh_entsize.clamp(8, 24);
        let mut end = section.sh_size;
        while end > 0 && !slots.is_empty() {
            // Parts begin at multiples from the section's start, so that none cuts a relocation.
            let start = (end - 1) / part * part;
            let Ok(bytes) = self.file.part(section, start, end - start) else { return };
            for relocation in parse(self.file, section, &bytes).iter().flat_map(RelocSection::iter) {
                if !slots.contains(&relocation.r_offset) {
                    continue;
                }
                let name = match slot_value(self.file.machine(), relocation.r_type) {
                    SlotValue::Function => symbols.get(relocation.r_sym),
                    // The resolver function of an IFUNC has the function's name.
                    SlotValue::Ifunc => relocation.r_addend.and_then(|resolver| builder.name_at(resolver as u64)),
                    SlotValue::Other => None,
                };
                if let Some(name) = name.filter(|name| !name.is_empty()) {
                    slots.remove(&relocation.r_offset);
                    names.insert(relocation.r_offset, name.into());
                }
            }
            end = start;
        }
    }
}

fn parse<'a>(file: &ElfFile, section: &SectionHeader, bytes: &'a [u8]) -> Option<RelocSection<'a>> {
    RelocSection::parse(bytes, 0, bytes.len(), section.sh_type == SHT_RELA, file.context()).ok()
}

/// The names of the symbols that a relocation section refers to.
struct Names {
    context: Ctx,
    symbols: Vec<u8>,
    strings: Vec<u8>,
}

impl Names {
    fn of(file: &ElfFile, relocations: &SectionHeader) -> Names {
        let linked = |section: &SectionHeader| file.sections().get(section.sh_link as usize);
        let symbols = linked(relocations);
        let strings = symbols.and_then(linked);
        let bytes = |section: Option<&SectionHeader>| section.and_then(|section| file.bytes(section).ok()).unwrap_or_default();
        Names { context: file.context(), symbols: bytes(symbols), strings: bytes(strings) }
    }

    fn get(&self, index: usize) -> Option<&[u8]> {
        let count = self.symbols.len() / Sym::size(self.context.container);
        let symbol = Symtab::parse(&self.symbols, 0, count, self.context).ok()?.get(index)?;
        string_at(&self.strings, symbol.st_name as u64)
    }
}

/// The address that a relocation puts into a slot.
enum SlotValue {
    /// A symbol's address.
    Function,
    /// The address that the IFUNC resolver at the addend returns (`IRELATIVE`).
    Ifunc,
    Other,
}

fn slot_value(machine: Machine, number: u32) -> SlotValue {
    match (machine, number) {
        (Machine::X86_64, reloc::R_X86_64_JUMP_SLOT | reloc::R_X86_64_GLOB_DAT)
        | (Machine::I386, reloc::R_386_JMP_SLOT | reloc::R_386_GLOB_DAT)
        | (Machine::Aarch64, reloc::R_AARCH64_JUMP_SLOT | reloc::R_AARCH64_GLOB_DAT) => SlotValue::Function,
        (Machine::X86_64, reloc::R_X86_64_IRELATIVE) | (Machine::Aarch64, reloc::R_AARCH64_IRELATIVE) => SlotValue::Ifunc,
        _ => SlotValue::Other,
    }
}

/// Decodes `jmp *slot(%rip)`, with or without `endbr64` and a `bnd` prefix before it.
fn x86_64_slot(address: u64, stub: &[u8]) -> Option<u64> {
    let (at, displacement) = jump(stub, 0x25)?;
    Some(address.wrapping_add(at as u64).wrapping_add_signed(i64::from(displacement)))
}

/// Decodes `jmp *slot`, or `jmp *slot(%ebx)` with the offset table in `ebx`.
fn i386_slot(offset_table: u64, stub: &[u8]) -> Option<u64> {
    let absolute = jump(stub, 0x25).map(|(_, slot)| u64::from(slot as u32));
    absolute.or_else(|| jump(stub, 0xa3).map(|(_, distance)| offset_table.wrapping_add_signed(i64::from(distance)) & 0xffff_ffff))
}

/// Decodes an indirect jump with this ModRM byte. Returns the offset of the instruction's end in the stub, and its
/// displacement.
fn jump(stub: &[u8], mode: u8) -> Option<(usize, i32)> {
    let mut at = if matches!(stub, [0xf3, 0x0f, 0x1e, 0xfa | 0xfb, ..]) { 4 } else { 0 };
    if stub.get(at) == Some(&0xf2) {
        at += 1;
    }
    let [0xff, found, a, b, c, d] = *stub.get(at..at + 6)? else { return None };
    (found == mode).then(|| (at + 6, i32::from_le_bytes([a, b, c, d])))
}

/// Decodes `push $number` at the stub's start or after its jump.
fn pushed(stub: &[u8]) -> Option<u32> {
    [0, 4, 6].into_iter().find_map(|at| match *stub.get(at..at + 5)? {
        [0x68, a, b, c, d] => Some(u32::from_le_bytes([a, b, c, d])),
        _ => None,
    })
}

/// Decodes `adrp x16, page; ldr x17, [x16, offset]`, with or without a `bti` before it.
fn aarch64_slot(address: u64, stub: &[u8]) -> Option<u64> {
    const BTI_C: u32 = 0xd503_245f;
    let word = |at: usize| Some(u32::from_le_bytes(*stub.get(at..)?.first_chunk()?));
    let at = if word(0)? == BTI_C { 4 } else { 0 };
    let (adrp, load) = (word(at)?, word(at + 4)?);
    if adrp & 0x9f00_001f != 0x9000_0010 || load & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = (((adrp >> 5) & 0x7_ffff) << 2) | ((adrp >> 29) & 3);
    let distance = i64::from((pages << 11) as i32 >> 11) << 12;
    let page = (address.wrapping_add(at as u64) & !0xfff).wrapping_add_signed(distance);
    Some(page.wrapping_add(u64::from((load >> 10) & 0xfff) * 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_decoded_from_the_instructions_of_stubs() {
        let with_branch_tracking = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x10, 0, 0, 0, 0x90];
        assert_eq!(x86_64_slot(0x1000, &with_branch_tracking), Some(0x101b));
        assert_eq!(x86_64_slot(0x1000, &[0xff, 0x25, 0xfa, 0xff, 0xff, 0xff, 0x66, 0x90]), Some(0x1000));
        assert_eq!(i386_slot(0, &[0xff, 0x25, 0x0c, 0xa0, 0x04, 0x88]), Some(0x8804_a00c));
        assert_eq!(i386_slot(0x3ff4, &[0xff, 0xa3, 0x0c, 0, 0, 0]), Some(0x4000));
        assert_eq!(pushed(&[0xff, 0x25, 0, 0, 0, 0, 0x68, 3, 0, 0, 0]), Some(3));
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        // adrp x16, 0x1f000 (0x10 pages on); ldr x17, [x16, #0xf90]
        let stub = words(&[0x9000_0090, 0xf947_ca11, 0x913e_4210, 0xd61f_0220]);
        assert_eq!(aarch64_slot(0x680, &stub), Some(0x1_0f90));
        let behind = words(&[0xd503_245f, 0xf0ff_fff0, 0xf940_0211]);
        assert_eq!(aarch64_slot(0x5000, &behind), Some(0x4000));
        for end in 0..stub.len() {
            let _ = (aarch64_slot(0, &stub[..end]), x86_64_slot(0, &stub[..end]), i386_slot(0, &stub[..end]), pushed(&stub[..end]));
        }
    }
}
