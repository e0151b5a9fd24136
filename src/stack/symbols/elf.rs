//! An ELF file's headers and sections, as far as names of addresses need them. Sections are read one by one, and bounded.

use super::build_id::BuildId;
use super::order::ByteOrder;
use super::packed::Packing;
use super::read_at::{self, ReadAt};
use goblin::container::{Container, Ctx};
use goblin::elf::header::{EM_386, EM_AARCH64, EM_X86_64};
use goblin::elf::program_header::{PT_LOAD, PT_NOTE};
use goblin::elf::section_header::{SHF_COMPRESSED, SHT_NOBITS, SHT_NOTE};
use goblin::elf::{Elf, Header, ProgramHeader, SectionHeader};
use std::cell::Cell;
use std::io;
use thiserror::Error;

/// A section is at most this long, unpacked too. (Chromium's .debug_info has some 1,500 MiB, its .strtab 250.)
const SECTION_MAX: u64 = 512 << 20;
/// All that is read and unpacked of one file together: sections may lie over one another, so a file of any size could have that many of them.
const READ_MAX: u64 = 2 << 30;
/// All headers of one kind together.
const HEADERS_MAX: u64 = 16 << 20;

/// Why there is nothing to be read from a file.
#[derive(Debug, Error)]
pub enum ElfError {
    #[error("not an ELF file")]
    NotElf,
    #[error("its {0} are damaged")]
    Damaged(&'static str),
    #[error("its {what} cannot be read: {error}")]
    Unreadable { what: &'static str, error: io::Error },
}

/// Machines whose code is looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    X86_64,
    I386,
    Aarch64,
    Other(u16),
}

/// A file with its headers read.
pub struct ElfFile {
    source: Box<dyn ReadAt>,
    context: Ctx,
    machine: Machine,
    entry_svma: u64,
    segments: Vec<ProgramHeader>,
    sections: Vec<SectionHeader>,
    /// The names of sections, each ended by a zero.
    names: Vec<u8>,
    /// What may still be read.
    allowance: Cell<u64>,
}

impl ElfFile {
    /// Reads the headers.
    ///
    /// # Errors
    /// It is no ELF file, or its headers say what cannot be.
    pub fn read(source: Box<dyn ReadAt>) -> Result<ElfFile, ElfError> {
        let header = read_header(&*source)?;
        let container = header.container().map_err(|_| ElfError::NotElf)?;
        let context = Ctx::new(container, header.endianness().map_err(|_| ElfError::NotElf)?);
        let segments = read_segments(&*source, &header, context)?;
        let sections = read_sections(&*source, &header, context)?;
        let machine = match header.e_machine {
            EM_X86_64 => Machine::X86_64,
            EM_386 => Machine::I386,
            EM_AARCH64 => Machine::Aarch64,
            other => Machine::Other(other),
        };
        let mut file = ElfFile {
            source,
            context,
            machine,
            entry_svma: header.e_entry,
            segments,
            sections,
            names: Vec::new(),
            allowance: Cell::new(READ_MAX),
        };
        file.names = file.section_names(&header);
        Ok(file)
    }

    pub fn machine(&self) -> Machine {
        self.machine
    }

    pub(super) fn source(&self) -> &dyn ReadAt {
        &*self.source
    }

    pub(super) fn context(&self) -> Ctx {
        self.context
    }

    pub fn byte_order(&self) -> ByteOrder {
        if self.context.le == goblin::container::Endian::Big { ByteOrder::Big } else { ByteOrder::Little }
    }

    /// 8, or 4: the bytes of an address in this file.
    pub fn address_bytes(&self) -> u8 {
        if self.context.container == Container::Big { 8 } else { 4 }
    }

    /// Where the program or its loader begins; 0 where nothing does.
    pub fn entry_svma(&self) -> u64 {
        self.entry_svma
    }

    pub fn segments(&self) -> &[ProgramHeader] {
        &self.segments
    }

    /// Segments that are mapped.
    pub fn loaded(&self) -> impl Iterator<Item = &ProgramHeader> {
        self.segments.iter().filter(|segment| segment.p_type == PT_LOAD)
    }

    /// What the file has for an address on: so many bytes, or fewer if its segment ends before.
    ///
    /// # Errors
    /// No segment is loaded there, or its bytes are too many or cannot be read.
    pub fn bytes_at(&self, svma: u64, most: u64) -> io::Result<Vec<u8>> {
        let into = |segment: &ProgramHeader| svma.checked_sub(segment.p_vaddr).filter(|into| *into < segment.p_filesz);
        let (segment, into) = self.loaded().find_map(|segment| Some((segment, into(segment)?))).ok_or(io::ErrorKind::UnexpectedEof)?;
        let start = segment.p_offset.checked_add(into).ok_or(io::ErrorKind::UnexpectedEof)?;
        let size = most.min(segment.p_filesz - into).min(self.source.size().saturating_sub(start));
        let bytes = read_at::range(&*self.source, start, size, SECTION_MAX.min(self.allowance.get()))?;
        self.allowance.set(self.allowance.get() - size);
        Ok(bytes)
    }

    /// In section order; the first is the null section.
    pub fn sections(&self) -> &[SectionHeader] {
        &self.sections
    }

    /// Without the ending zero; empty where there is none.
    pub fn section_name(&self, section: &SectionHeader) -> &[u8] {
        string_at(&self.names, section.sh_name as u64).unwrap_or_default()
    }

    /// The first section of this name.
    pub fn section(&self, name: &str) -> Option<&SectionHeader> {
        self.sections.iter().find(|section| self.section_name(section) == name.as_bytes())
    }

    /// A section of this name has its bytes in this file (in debug files many have not, and in stripped files those are missing altogether).
    pub fn has_bytes_of(&self, name: &str) -> bool {
        self.section(name).is_some_and(|section| section.sh_type != SHT_NOBITS && section.sh_size > 0)
    }

    /// A section's bytes as they are in the file; none if it takes no room there.
    ///
    /// # Errors
    /// It is not within the file, too long, or cannot be read.
    pub fn bytes(&self, section: &SectionHeader) -> io::Result<Vec<u8>> {
        if section.sh_type == SHT_NOBITS {
            return Ok(Vec::new());
        }
        self.part(section, 0, section.sh_size)
    }

    /// Some of a section's bytes, from an offset in it on.
    ///
    /// # Errors
    /// They are not within the section and the file, too many, or cannot be read.
    pub fn part(&self, section: &SectionHeader, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        let is_within = offset.checked_add(size).is_some_and(|end| end <= section.sh_size) && section.sh_type != SHT_NOBITS;
        let start = section.sh_offset.checked_add(offset).filter(|_| is_within).ok_or(io::ErrorKind::UnexpectedEof)?;
        let bytes = read_at::range(&*self.source, start, size, SECTION_MAX.min(self.allowance.get()))?;
        self.allowance.set(self.allowance.get() - size);
        Ok(bytes)
    }

    /// A section's contents: unpacked if they are compressed, empty if there is no such section.
    ///
    /// # Errors
    /// As [`ElfFile::bytes`]; or it is compressed in an unknown way, or damaged.
    pub fn contents(&self, name: &str) -> io::Result<Vec<u8>> {
        let Some(section) = self.section(name) else { return Ok(Vec::new()) };
        let bytes = self.bytes(section)?;
        if section.sh_flags & u64::from(SHF_COMPRESSED) == 0 {
            return Ok(bytes);
        }
        let header_size = if self.context.container == Container::Big { 24 } else { 12 };
        let header = bytes.get(..header_size).and_then(|header| self.byte_order().u32(header, 0));
        let packing = header.and_then(Packing::of_header).ok_or(io::ErrorKind::InvalidData)?;
        let unpacked = packing.unpack(&bytes[header_size..], SECTION_MAX.min(self.allowance.get()))?;
        self.allowance.set(self.allowance.get() - unpacked.len() as u64);
        Ok(unpacked)
    }

    /// From its note sections, or its note segments where sections are stripped.
    pub fn build_id(&self) -> Option<BuildId> {
        let sections = self.sections.iter().filter(|section| section.sh_type == SHT_NOTE).map(|s| (s.sh_offset, s.sh_size));
        let segments = self.segments.iter().filter(|segment| segment.p_type == PT_NOTE).map(|s| (s.p_offset, s.p_filesz));
        let notes = sections.chain(segments).filter_map(|(offset, size)| read_at::range(&*self.source, offset, size, 1 << 16).ok());
        notes.into_iter().find_map(|notes| BuildId::in_notes(&notes, self.byte_order()))
    }

    /// The address that the file gives to what is at an offset in it: from the segment that loads this offset as code, or any.
    pub fn svma_of_offset(&self, offset: u64) -> Option<u64> {
        let holds = |segment: &&ProgramHeader| {
            segment.p_type == PT_LOAD && offset.checked_sub(segment.p_offset).is_some_and(|distance| distance < segment.p_filesz)
        };
        let mut holding = self.segments.iter().filter(holds);
        let first = holding.next()?;
        let code = if first.is_executable() { None } else { holding.find(|segment| segment.is_executable()) };
        let segment = code.unwrap_or(first);
        Some(segment.p_vaddr.wrapping_add(offset - segment.p_offset))
    }

    /// Where in the file is what has an address: its offset, and whether it is loaded as code. `None` if no segment has bytes for it.
    pub fn offset_of_svma(&self, svma: u64) -> Option<(u64, bool)> {
        let into = |segment: &ProgramHeader| svma.checked_sub(segment.p_vaddr).filter(|into| *into < segment.p_filesz);
        let (segment, into) = self.loaded().find_map(|segment| Some((segment, into(segment)?)))?;
        Some((segment.p_offset.checked_add(into)?, segment.is_executable()))
    }

    fn section_names(&self, header: &Header) -> Vec<u8> {
        const XINDEX: u16 = 0xffff;
        let index = match header.e_shstrndx {
            XINDEX => self.sections.first().map_or(0, |null| null.sh_link as usize),
            index => usize::from(index),
        };
        let section = self.sections.get(index);
        section.filter(|section| section.sh_size <= HEADERS_MAX).and_then(|section| self.bytes(section).ok()).unwrap_or_default()
    }
}

/// What is from an offset on to the next zero, if there is one.
pub(super) fn string_at(strings: &[u8], offset: u64) -> Option<&[u8]> {
    let rest = strings.get(usize::try_from(offset).ok()?..)?;
    rest.get(..memchr::memchr(0, rest)?)
}

fn read_header(source: &dyn ReadAt) -> Result<Header, ElfError> {
    let mut bytes = [0; 64];
    let there = source.size().min(bytes.len() as u64) as usize;
    let bytes = &mut bytes[..there];
    source.read_at(0, bytes).map_err(|error| ElfError::Unreadable { what: "header", error })?;
    Elf::parse_header(bytes).map_err(|_| ElfError::NotElf)
}

fn read_segments(source: &dyn ReadAt, header: &Header, context: Ctx) -> Result<Vec<ProgramHeader>, ElfError> {
    let count = usize::from(header.e_phnum);
    let size = (count * ProgramHeader::size(context)) as u64;
    if count == 0 {
        return Ok(Vec::new());
    }
    let what = "program headers";
    let bytes = read_at::range(source, header.e_phoff, size, HEADERS_MAX).map_err(|error| ElfError::Unreadable { what, error })?;
    ProgramHeader::parse(&bytes, 0, count, context).map_err(|_| ElfError::Damaged(what))
}

/// The number of sections is in the first of them where it is too large for the header.
fn read_sections(source: &dyn ReadAt, header: &Header, context: Ctx) -> Result<Vec<SectionHeader>, ElfError> {
    if header.e_shoff == 0 {
        return Ok(Vec::new());
    }
    let what = "section headers";
    let unreadable = |error| ElfError::Unreadable { what, error };
    let one = SectionHeader::size(context) as u64;
    let read = |count: u64| {
        let bytes = read_at::range(source, header.e_shoff, count.saturating_mul(one), HEADERS_MAX).map_err(unreadable)?;
        SectionHeader::parse_from(&bytes, 0, count as usize, context).map_err(|_| ElfError::Damaged(what))
    };
    match header.e_shnum {
        0 => match read(1)?.first().map_or(0, |null| null.sh_size) {
            0 => Ok(Vec::new()),
            count => read(count),
        },
        count => read(u64::from(count)),
    }
}
