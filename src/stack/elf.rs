//! The headers of an ELF file: which machine, which segments, which sections. Contents are read through a closure, and only what is asked for.

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::header::{EM_386, EM_AARCH64, EM_X86_64, Header};
use goblin::elf::program_header::{PT_LOAD, ProgramHeader};
use goblin::elf::section_header::{SHF_COMPRESSED, SHT_NOBITS, SectionHeader};
use thiserror::Error;

use crate::stack::registers::Architecture;

/// Reads so many bytes at an offset of the file, or all that there are if the file ends before; `None` if nothing can be read.
pub type ReadAt<'a> = &'a mut dyn FnMut(u64, usize) -> Option<Vec<u8>>;

/// Headers beyond this are not read: 65,535 sections have 4 MB.
const HEADERS_BYTES_MAX: usize = 8 << 20;
/// Nor contents beyond this. Chromium's `.eh_frame` has some 20 MB.
const CONTENT_BYTES_MAX: u64 = 128 << 20;

/// Why a file is no image.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ElfError {
    #[error("no ELF file")]
    NoElf,
    #[error("its bytes are in big-endian order, which no machine has whose stacks are unwound")]
    BigEndian,
    #[error("it is for machine {0}; stacks are unwound on x86-64, i386 and aarch64")]
    Machine(u16),
    #[error("its {0} lie beyond the end of the file, or cannot be read")]
    Headers(&'static str),
    #[error("it has no segment to be loaded")]
    NoSegment,
}

pub struct Elf {
    pub architecture: Architecture,
    /// 8, or 4 for an address in this file.
    pub address_bytes: u8,
    /// svma, or 0.
    pub entry_svma: u64,
    pub segments: Vec<ProgramHeader>,
    sections: Vec<SectionHeader>,
    /// NUL-terminated.
    section_names: Vec<u8>,
}

impl Elf {
    /// # Errors
    /// It is none, or of another machine, or its program headers cannot be read. Section headers may be missing.
    pub fn read(read: ReadAt) -> Result<Self, ElfError> {
        let start = read(0, 64).ok_or(ElfError::NoElf)?;
        if !start.starts_with(b"\x7fELF") || start.len() < 52 {
            return Err(ElfError::NoElf);
        }
        if start[5] != 1 {
            return Err(ElfError::BigEndian);
        }
        let header: Header = goblin::elf::Elf::parse_header(&start).map_err(|_| ElfError::NoElf)?;
        let architecture = match header.e_machine {
            EM_X86_64 => Architecture::X86_64,
            EM_386 => Architecture::X86,
            EM_AARCH64 => Architecture::Aarch64,
            other => return Err(ElfError::Machine(other)),
        };
        let container = header.container().map_err(|_| ElfError::NoElf)?;
        let context = Ctx::new(container, Endian::Little);
        let segments = read_segments(&header, context, read).ok_or(ElfError::Headers("program headers"))?;
        let sections = read_sections(&header, context, read).unwrap_or_default();
        let address_bytes = if container == Container::Big { 8 } else { 4 };
        let mut elf = Self { architecture, address_bytes, entry_svma: header.e_entry, segments, sections, section_names: Vec::new() };
        if let Some(names) = elf.sections.get(usize::from(header.e_shstrndx)) {
            elf.section_names = elf.contents(names, read).unwrap_or_default();
        }
        Ok(elf)
    }

    /// Segments that are mapped.
    pub fn loaded(&self) -> impl Iterator<Item = &ProgramHeader> {
        self.segments.iter().filter(|segment| segment.p_type == PT_LOAD)
    }

    /// A section that has contents as they are, by its name.
    pub fn section(&self, name: &str) -> Option<&SectionHeader> {
        self.sections.iter().find(|section| {
            let has = section.sh_type != SHT_NOBITS && section.sh_flags & u64::from(SHF_COMPRESSED) == 0;
            let names = self.section_names.get(section.sh_name..).unwrap_or_default();
            has && names.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
        })
    }

    pub fn contents(&self, section: &SectionHeader, read: ReadAt) -> Option<Vec<u8>> {
        if section.sh_type == SHT_NOBITS || section.sh_size > CONTENT_BYTES_MAX {
            return None;
        }
        read(section.sh_offset, usize::try_from(section.sh_size).ok()?)
    }

    /// What the file has from an svma on, to the end of its segment at most.
    pub fn contents_from(&self, svma: u64, bytes_max: u64, read: ReadAt) -> Option<Vec<u8>> {
        let segment = self.loaded().find(|segment| svma >= segment.p_vaddr && svma - segment.p_vaddr < segment.p_filesz)?;
        let into = svma - segment.p_vaddr;
        let size = bytes_max.min(segment.p_filesz - into);
        if size > CONTENT_BYTES_MAX {
            return None;
        }
        read(segment.p_offset.checked_add(into)?, usize::try_from(size).ok()?)
    }
}

fn read_segments(header: &Header, context: Ctx, read: ReadAt) -> Option<Vec<ProgramHeader>> {
    let count = usize::from(header.e_phnum);
    let bytes = read(header.e_phoff, count * ProgramHeader::size(context))?;
    ProgramHeader::parse(&bytes, 0, count, context).ok()
}

fn read_sections(header: &Header, context: Ctx, read: ReadAt) -> Option<Vec<SectionHeader>> {
    if header.e_shoff == 0 {
        return None;
    }
    let size = SectionHeader::size(context);
    let mut count = usize::from(header.e_shnum);
    if count == 0 {
        // More than fit into the header: the first section has the number.
        let first = SectionHeader::parse_from(&read(header.e_shoff, size)?, 0, 1, context).ok()?;
        count = usize::try_from(first.first()?.sh_size).ok()?;
    }
    let bytes = count.checked_mul(size).filter(|bytes| (1..=HEADERS_BYTES_MAX).contains(bytes))?;
    SectionHeader::parse_from(&read(header.e_shoff, bytes)?, 0, count, context).ok()
}
