//! An ELF file's headers and sections. Sections are read one by one, up to a greatest size.

use super::build_id::BuildId;
use super::compression::Compression;
use super::order::ByteOrder;
use super::read_at::{self, ReadAt};
use goblin::container::{Container, Ctx};
use goblin::elf::header::{EM_386, EM_AARCH64, EM_X86_64};
use goblin::elf::program_header::{PT_LOAD, PT_NOTE};
use goblin::elf::section_header::{SHF_COMPRESSED, SHT_NOBITS, SHT_NOTE};
use goblin::elf::{Elf, Header, ProgramHeader, SectionHeader};
use std::cell::Cell;
use std::io;
use thiserror::Error;

/// The greatest size of a section, also of a decompressed one. (Chromium's .debug_info has some 1,500 MiB, its .strtab
/// 250.)
const SECTION_MAX: u64 = 512 << 20;
/// The greatest number of bytes that are read and decompressed of one file. The file's size is no bound, because
/// sections may overlap.
const READ_MAX: u64 = 2 << 30;
/// The greatest size of all section headers, or of all program headers.
const HEADERS_MAX: u64 = 16 << 20;

/// The reason why a file cannot be read as ELF.
#[derive(Debug, Error)]
pub enum ElfError {
    #[error("not an ELF file")]
    NotElf,
    #[error("its {0} are damaged")]
    Damaged(&'static str),
    #[error("its {what} cannot be read: {error}")]
    Unreadable { what: &'static str, error: io::Error },
}

/// The machine of a file. rtrace decodes the code of the named ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    X86_64,
    I386,
    Aarch64,
    Other(u16),
}

/// An ELF file whose headers were read.
pub struct ElfFile {
    source: Box<dyn ReadAt>,
    context: Ctx,
    machine: Machine,
    entry_svma: u64,
    segments: Vec<ProgramHeader>,
    sections: Vec<SectionHeader>,
    /// The names of sections, each terminated by a zero.
    names: Vec<u8>,
    /// The part of [`READ_MAX`] that is left.
    allowance: Cell<u64>,
}

impl ElfFile {
    /// Reads the headers.
    ///
    /// # Errors
    /// Fails if it is not an ELF file, or its headers are damaged.
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

    /// Returns the architecture that the file's code is for (`e_machine`).
    pub fn machine(&self) -> Machine {
        self.machine
    }

    pub(super) fn source(&self) -> &dyn ReadAt {
        &*self.source
    }

    pub(super) fn context(&self) -> Ctx {
        self.context
    }

    /// Returns the byte order of the numbers in the file.
    pub fn byte_order(&self) -> ByteOrder {
        if self.context.le == goblin::container::Endian::Big { ByteOrder::Big } else { ByteOrder::Little }
    }

    /// Returns the size of an address in this file: 8, or 4.
    pub fn address_bytes(&self) -> u8 {
        if self.context.container == Container::Big { 8 } else { 4 }
    }

    /// Returns the entry point, 0 if the file has none.
    pub fn entry_svma(&self) -> u64 {
        self.entry_svma
    }

    /// Returns the program headers in the file's order.
    pub fn segments(&self) -> &[ProgramHeader] {
        &self.segments
    }

    /// Returns the segments that are mapped (PT_LOAD).
    pub fn loaded(&self) -> impl Iterator<Item = &ProgramHeader> {
        self.segments.iter().filter(|segment| segment.p_type == PT_LOAD)
    }

    /// Reads the bytes from an address on: `most`, or fewer if the segment ends before.
    ///
    /// # Errors
    /// Fails if no segment is loaded at the address, or its bytes are too many or cannot be read.
    pub fn bytes_at(&self, svma: u64, most: u64) -> io::Result<Vec<u8>> {
        let into = |segment: &ProgramHeader| svma.checked_sub(segment.p_vaddr).filter(|into| *into < segment.p_filesz);
        let (segment, into) = self.loaded().find_map(|segment| Some((segment, into(segment)?))).ok_or(io::ErrorKind::UnexpectedEof)?;
        let start = segment.p_offset.checked_add(into).ok_or(io::ErrorKind::UnexpectedEof)?;
        let size = most.min(segment.p_filesz - into).min(self.source.size().saturating_sub(start));
        let bytes = read_at::range(&*self.source, start, size, SECTION_MAX.min(self.allowance.get()))?;
        self.allowance.set(self.allowance.get() - size);
        Ok(bytes)
    }

    /// Returns the section headers in their order. The first one is the null section.
    pub fn sections(&self) -> &[SectionHeader] {
        &self.sections
    }

    /// Returns a section's name without the terminating zero. It is empty if the section has none.
    pub fn section_name(&self, section: &SectionHeader) -> &[u8] {
        string_at(&self.names, section.sh_name as u64).unwrap_or_default()
    }

    /// Returns the first section of a name.
    pub fn section(&self, name: &str) -> Option<&SectionHeader> {
        self.sections.iter().find(|section| self.section_name(section) == name.as_bytes())
    }

    /// Whether the file has the bytes of a section. Debug files have many section headers without bytes (SHT_NOBITS).
    pub fn has_bytes_of(&self, name: &str) -> bool {
        self.section(name).is_some_and(|section| section.sh_type != SHT_NOBITS && section.sh_size > 0)
    }

    /// Reads a section's bytes, without decompression. It is empty for a SHT_NOBITS section.
    ///
    /// # Errors
    /// Fails if the section is not within the file, is too long, or cannot be read.
    pub fn bytes(&self, section: &SectionHeader) -> io::Result<Vec<u8>> {
        if section.sh_type == SHT_NOBITS {
            return Ok(Vec::new());
        }
        self.part(section, 0, section.sh_size)
    }

    /// Reads a part of a section's bytes, from an offset in the section on.
    ///
    /// # Errors
    /// Fails if the part is not within the section and the file, is too long, or cannot be read.
    pub fn part(&self, section: &SectionHeader, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        let is_within = offset.checked_add(size).is_some_and(|end| end <= section.sh_size) && section.sh_type != SHT_NOBITS;
        let start = section.sh_offset.checked_add(offset).filter(|_| is_within).ok_or(io::ErrorKind::UnexpectedEof)?;
        let bytes = read_at::range(&*self.source, start, size, SECTION_MAX.min(self.allowance.get()))?;
        self.allowance.set(self.allowance.get() - size);
        Ok(bytes)
    }

    /// Reads a section's contents, and decompresses them if needed. It is empty if there is no such section.
    ///
    /// # Errors
    /// Fails as [`ElfFile::bytes`], and if the section is compressed by an unknown algorithm, or is damaged.
    pub fn contents(&self, name: &str) -> io::Result<Vec<u8>> {
        let Some(section) = self.section(name) else { return Ok(Vec::new()) };
        let bytes = self.bytes(section)?;
        if section.sh_flags & u64::from(SHF_COMPRESSED) == 0 {
            return Ok(bytes);
        }
        let header_size = if self.context.container == Container::Big { 24 } else { 12 };
        let header = bytes.get(..header_size).and_then(|header| self.byte_order().u32(header, 0));
        let algorithm = header.and_then(Compression::of_header).ok_or(io::ErrorKind::InvalidData)?;
        let contents = algorithm.decompress(&bytes[header_size..], SECTION_MAX.min(self.allowance.get()))?;
        self.allowance.set(self.allowance.get() - contents.len() as u64);
        Ok(contents)
    }

    /// Reads the build-id from the note sections, or from the note segments if the section headers are stripped.
    pub fn build_id(&self) -> Option<BuildId> {
        let sections = self.sections.iter().filter(|section| section.sh_type == SHT_NOTE).map(|s| (s.sh_offset, s.sh_size));
        let segments = self.segments.iter().filter(|segment| segment.p_type == PT_NOTE).map(|s| (s.p_offset, s.p_filesz));
        let notes = sections.chain(segments).filter_map(|(offset, size)| read_at::range(&*self.source, offset, size, 1 << 16).ok());
        notes.into_iter().find_map(|notes| BuildId::in_notes(&notes, self.byte_order()))
    }

    /// Returns the svma of an offset in the file, by the segment that loads this offset as code, else by any segment
    /// that loads it.
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

    /// Returns the offset in the file of an svma, and whether it is loaded as code. Returns `None` if no segment has
    /// bytes of the file there.
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

/// Returns the zero-terminated string at an offset, without the zero.
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

/// Reads the section headers. If their number is too large for the file header, it is in the first section header.
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
