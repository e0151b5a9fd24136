//! ELF files for tests: code that is all zeros, and the tables to unwind it.

use gimli::write::{
    Address, CallFrameInstruction, CommonInformationEntry, DebugFrame, EhFrame, EndianVec, FrameDescriptionEntry, FrameTable,
};
use gimli::{Encoding, Format, LittleEndian, Register, UnwindSection};

use crate::stack::registers::Architecture;

/// svma and file offset of the code.
pub const CODE: u64 = 0x1_0000;
/// The size of the code.
pub const CODE_BYTES: u64 = 0x1_0000;
/// svma and file offset of the CFI section.
const TABLES: u64 = 0x1000;
/// svma and file offset of the sorted table.
const SORTED: u64 = 0x8000;

/// A function: its svma, its size and its call frame instructions.
pub struct Function {
    /// The svma at which its FDE begins.
    pub start: u64,
    /// The number of bytes that the FDE covers.
    pub bytes: u32,
    /// Whether the CIE has the augmentation of a signal trampoline (`S`).
    pub is_signal: bool,
    /// The call frame instructions, each with the offset in the code from which on it applies.
    pub instructions: Vec<(u32, CallFrameInstruction)>,
}

/// Creates a function whose instructions all apply from its start on.
pub fn function(start: u64, instructions: impl IntoIterator<Item = CallFrameInstruction>) -> Function {
    Function { start, bytes: 0x100, is_signal: false, instructions: instructions.into_iter().map(|instruction| (0, instruction)).collect() }
}

/// The section that has the tables, and how a reader finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As in the vdso: `.eh_frame` and its sorted table, without section headers.
    Sorted,
    /// `.eh_frame` with a section header and without a sorted table.
    EhFrame,
    /// `.debug_frame` with a section header.
    DebugFrame,
}

/// Returns the bytes of an ELF file with these functions.
pub fn elf(architecture: Architecture, form: Form, functions: &[Function]) -> Vec<u8> {
    let (bytes, sorted) = tables(architecture, form, functions);
    let wide = architecture != Architecture::X86;
    let mut file = Writer { bytes: Vec::new(), wide };
    file.raw(&[0x7f, b'E', b'L', b'F', 1 + u8::from(wide), 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let machine = match architecture {
        Architecture::X86_64 => 62,
        Architecture::X86 => 3,
        Architecture::Aarch64 => 183_u16,
    };
    file.raw(&3_u16.to_le_bytes());
    file.raw(&machine.to_le_bytes());
    file.raw(&1_u32.to_le_bytes());
    file.word(0); // entry
    let header_bytes = if wide { 64 } else { 52 };
    let sections = if form == Form::Sorted { 0_u16 } else { 3 };
    let sections_offset = 0x400_u64;
    file.word(header_bytes);
    file.word(if sections == 0 { 0 } else { sections_offset });
    file.raw(&0_u32.to_le_bytes());
    let (segment_bytes, section_bytes) = if wide { (56_u16, 64_u16) } else { (32, 40) };
    let segments = if form == Form::Sorted { 2_u16 } else { 1 };
    for value in [header_bytes as u16, segment_bytes, segments, section_bytes, sections, sections.saturating_sub(1)] {
        file.raw(&value.to_le_bytes());
    }
    file.segment(1, 5, 0, CODE + CODE_BYTES);
    if form == Form::Sorted {
        file.segment(0x6474_e550, 4, SORTED, sorted.len() as u64);
    }
    if form != Form::Sorted {
        let name = if form == Form::EhFrame { ".eh_frame" } else { ".debug_frame" };
        let names = format!("\0{name}\0");
        file.at(sections_offset);
        file.section(0, 0, 0, 0, 0);
        file.section(1, 1, if form == Form::EhFrame { TABLES } else { 0 }, TABLES, bytes.len() as u64);
        file.section(0, 3, 0, 0x600, names.len() as u64);
        file.at(0x600);
        file.raw(names.as_bytes());
    }
    file.at(TABLES);
    file.raw(&bytes);
    file.at(SORTED);
    file.raw(&sorted);
    file.at(CODE + CODE_BYTES);
    file.bytes
}

fn tables(architecture: Architecture, form: Form, functions: &[Function]) -> (Vec<u8>, Vec<u8>) {
    let layout = architecture.layout();
    let wide = architecture != Architecture::X86;
    let return_column = Register(layout.link_register.unwrap_or(layout.program_counter).into());
    let encoding = Encoding { format: Format::Dwarf32, version: 1, address_size: if wide { 8 } else { 4 } };
    let mut table = FrameTable::default();
    for function in functions {
        let mut cie = CommonInformationEntry::new(encoding, 1, -i32::from(layout.word_bytes) as i8, return_column);
        cie.signal_trampoline = function.is_signal;
        let mut fde = FrameDescriptionEntry::new(Address::Constant(function.start), function.bytes);
        for (offset, instruction) in &function.instructions {
            fde.add_instruction(*offset, instruction.clone());
        }
        let cie = table.add_cie(cie);
        table.add_fde(cie, fde);
    }
    if form == Form::DebugFrame {
        let mut section = DebugFrame::from(EndianVec::new(LittleEndian));
        table.write_debug_frame(&mut section).unwrap();
        return (section.0.into_vec(), Vec::new());
    }
    let mut section = EhFrame::from(EndianVec::new(LittleEndian));
    table.write_eh_frame(&mut section).unwrap();
    let mut bytes = section.0.into_vec();
    bytes.extend([0; 4]);
    let sorted = sorted_table(&bytes, encoding.address_size);
    (bytes, sorted)
}

/// Returns the `.eh_frame_hdr` that a linker writes for an `.eh_frame`.
fn sorted_table(eh_frame: &[u8], address_bytes: u8) -> Vec<u8> {
    let mut section = gimli::EhFrame::new(eh_frame, LittleEndian);
    section.set_address_size(address_bytes);
    let bases = gimli::BaseAddresses::default().set_eh_frame(TABLES);
    let mut pairs = Vec::new();
    let mut entries = section.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        if let gimli::CieOrFde::Fde(partial) = entry {
            let fde = partial.parse(gimli::EhFrame::cie_from_offset).unwrap();
            pairs.push((fde.initial_address(), TABLES + fde.offset() as u64));
        }
    }
    pairs.sort_unstable();
    // Version; pcrel|sdata4, udata4, datarel|sdata4.
    let mut table = vec![1, 0x1b, 0x03, 0x3b];
    table.extend((TABLES as i32 - (SORTED as i32 + 4)).to_le_bytes());
    table.extend((pairs.len() as u32).to_le_bytes());
    for (start, entry) in pairs {
        table.extend((start as i32 - SORTED as i32).to_le_bytes());
        table.extend((entry as i32 - SORTED as i32).to_le_bytes());
    }
    table
}

/// The bytes of an ELF file that is being written.
struct Writer {
    bytes: Vec<u8>,
    wide: bool,
}

impl Writer {
    fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    fn word(&mut self, value: u64) {
        if self.wide { self.raw(&value.to_le_bytes()) } else { self.raw(&(value as u32).to_le_bytes()) }
    }

    fn at(&mut self, offset: u64) {
        assert!(self.bytes.len() as u64 <= offset, "the parts before {offset:#x} are longer");
        self.bytes.resize(offset as usize, 0);
    }

    /// Writes the header of a segment whose svma is its file offset.
    fn segment(&mut self, kind: u32, flags: u32, offset: u64, bytes: u64) {
        self.raw(&kind.to_le_bytes());
        if self.wide {
            self.raw(&flags.to_le_bytes());
        }
        for value in [offset, offset, offset, bytes, bytes] {
            self.word(value);
        }
        if !self.wide {
            self.raw(&flags.to_le_bytes());
        }
        self.word(0x1000);
    }

    fn section(&mut self, name: u32, kind: u32, svma: u64, offset: u64, bytes: u64) {
        self.raw(&name.to_le_bytes());
        self.raw(&kind.to_le_bytes());
        for value in [0, svma, offset, bytes] {
            self.word(value);
        }
        self.raw(&[0; 8]);
        self.word(1);
        self.word(0);
    }
}
