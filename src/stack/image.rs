//! The parts of an ELF file that unwinding needs, shared by all processes that map the file.
//!
//! Symbols, lines and the opening of files are in other modules.

use std::fmt;
use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gimli::{BaseAddresses, EhFrameHdr, LittleEndian, Pointer, UnwindContext};
use goblin::elf::program_header::{PF_X, PT_GNU_EH_FRAME, ProgramHeader};
use thiserror::Error;

use crate::event::frame::ImageId;
use crate::stack::full_row::FullRow;
use crate::stack::index::Index;
use crate::stack::registers::Architecture;
use crate::stack::rule::Rule;
use crate::stack::symbols::build_id::BuildId;
use crate::stack::symbols::elf::{ElfError, ElfFile, Machine};
use crate::stack::symbols::order::ByteOrder;
use crate::stack::symbols::read_at::ReadAt;
use crate::stack::table::{Addressing, CfiFormat, CfiTable};

/// `DW_EH_PE_datarel | DW_EH_PE_sdata4`, the encoding in which all linkers write the sorted table.
const SORTED_ENCODING: u8 = 0x3b;

/// The reason why rtrace cannot use the unwind tables of a file.
#[derive(Debug, Error)]
pub enum ImageError {
    #[error(transparent)]
    Elf(#[from] ElfError),
    #[error("it is big-endian; stacks are unwound on little-endian machines only")]
    BigEndian,
    #[error("it is for machine {0}; stacks are unwound on x86-64, i386 and aarch64")]
    Machine(u16),
    #[error("it has no loadable segment")]
    NoSegment,
}

impl ImageError {
    /// Whether the file exists, but its file system did not answer in time.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        matches!(self, ImageError::Elf(ElfError::Unreadable { error, .. }) if error.kind() == io::ErrorKind::TimedOut)
    }
}

/// The segments and unwind tables of one ELF file.
pub struct Image {
    id: ImageId,
    architecture: Architecture,
    /// svma of relative address 0: the lowest svma of a loaded segment.
    base_svma: u64,
    /// svma at which the program or its loader begins.
    entry_svma: u64,
    build_id: Option<BuildId>,
    segments: Vec<Segment>,
    /// In the order in which they are searched.
    tables: Vec<CfiTable>,
    /// Whether the file could not be read, so that nothing is known of its contents.
    is_unread: bool,
}

/// A loaded segment (PT_LOAD).
struct Segment {
    file_offset: u64,
    file_bytes: u64,
    svma: u64,
    is_executable: bool,
}

impl Image {
    /// Reads headers and unwind sections of an ELF file, or of an ELF image in memory (the vdso).
    ///
    /// # Errors
    /// Fails if it is not an ELF file, is for another machine, or is damaged. A file without unwind sections is no
    /// error: its functions may have frame pointers.
    pub fn read(source: Box<dyn ReadAt>) -> Result<Self, ImageError> {
        let elf = ElfFile::read(source)?;
        let architecture = match elf.machine() {
            Machine::X86_64 => Architecture::X86_64,
            Machine::I386 => Architecture::X86,
            Machine::Aarch64 => Architecture::Aarch64,
            Machine::Other(number) => return Err(ImageError::Machine(number)),
        };
        if elf.byte_order() == ByteOrder::Big {
            return Err(ImageError::BigEndian);
        }
        let base_svma = elf.loaded().map(|segment| segment.p_vaddr).min().ok_or(ImageError::NoSegment)?;
        let segments = elf
            .loaded()
            .map(|segment| Segment {
                file_offset: segment.p_offset,
                file_bytes: segment.p_filesz,
                svma: segment.p_vaddr,
                is_executable: segment.p_flags & PF_X != 0,
            })
            .collect();
        let executable = || elf.loaded().filter(|segment| segment.p_flags & PF_X != 0);
        let code_start = executable().map(|segment| segment.p_vaddr).min().unwrap_or(0);
        let code_end = executable().map(|segment| segment.p_vaddr.saturating_add(segment.p_memsz)).max().unwrap_or(0);
        let addressing =
            Addressing { layout: architecture.layout(), address_bytes: elf.address_bytes(), base_svma, code: code_start..code_end };
        let tables = [eh_frame(&elf, &addressing), debug_frame(&elf, &addressing)].into_iter().flatten().collect();
        let (entry_svma, build_id) = (elf.entry_svma(), elf.build_id());
        Ok(Self { id: next_id(), architecture, base_svma, entry_svma, build_id, segments, tables, is_unread: false })
    }

    /// Creates the image of a file that could not be read, of a program for this architecture. Its svmas are offsets in
    /// the file, and it has no unwind tables.
    #[must_use]
    pub fn unread(architecture: Architecture) -> Self {
        let whole = Segment { file_offset: 0, file_bytes: u64::MAX, svma: 0, is_executable: true };
        Self {
            id: next_id(),
            architecture,
            base_svma: 0,
            entry_svma: 0,
            build_id: None,
            segments: vec![whole],
            tables: Vec::new(),
            is_unread: true,
        }
    }

    /// Returns the number of the image in this run of rtrace, which frames refer to.
    #[must_use]
    pub const fn id(&self) -> ImageId {
        self.id
    }

    /// Returns the architecture that the file's code is for.
    #[must_use]
    pub const fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Whether the file has unwind tables.
    #[cfg(test)]
    #[must_use]
    pub const fn has_rules(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Whether the file could not be read, so that it is unknown whether it has unwind tables.
    #[must_use]
    pub const fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// Returns the svma of code at an offset of the file. The bias of a mapping is the avma there less this svma.
    #[must_use]
    pub fn svma_of_offset(&self, file_offset: u64) -> Option<u64> {
        let holds = |segment: &&Segment| {
            // Mappings begin and end at page boundaries, so a segment's first and last page also map the neighbouring
            // bytes of the file.
            let start = segment.file_offset & !(PAGE_BYTES - 1);
            let end = segment.file_offset.saturating_add(segment.file_bytes);
            file_offset >= start && end.checked_next_multiple_of(PAGE_BYTES).is_none_or(|end| file_offset < end)
        };
        let executable = self.segments.iter().filter(|segment| segment.is_executable).find(holds);
        let segment = executable.or_else(|| self.segments.iter().find(holds))?;
        segment.svma.checked_add_signed(file_offset.wrapping_sub(segment.file_offset).cast_signed())
    }

    /// Returns the offset in the file of the byte that is loaded at an svma.
    #[must_use]
    pub fn offset_of_svma(&self, svma: u64) -> Option<u64> {
        // A segment's first and last page also map the neighbouring bytes of the file.
        let holds = |segment: &&Segment| {
            let start = segment.svma & !(PAGE_BYTES - 1);
            let end = segment.svma.saturating_add(segment.file_bytes);
            svma >= start && end.checked_next_multiple_of(PAGE_BYTES).is_none_or(|end| svma < end)
        };
        let exact = |segment: &&Segment| svma.checked_sub(segment.svma).is_some_and(|at| at < segment.file_bytes);
        let segment = self.segments.iter().find(exact).or_else(|| self.segments.iter().find(holds))?;
        segment.file_offset.checked_add_signed(svma.wrapping_sub(segment.svma).cast_signed())
    }

    /// The build ID: a number that the linker wrote into the file to identify the file and its debug file.
    #[must_use]
    pub const fn build_id(&self) -> Option<BuildId> {
        self.build_id
    }

    /// Whether an address is in the code at the ELF entry point, which the kernel starts and which has no caller. Often
    /// no unwind table has an entry for it either.
    #[must_use]
    pub const fn is_entry(&self, svma: u64) -> bool {
        self.entry_svma != 0 && svma >= self.entry_svma && svma - self.entry_svma < ENTRY_BYTES_MAX
    }

    pub(super) const fn base_svma(&self) -> u64 {
        self.base_svma
    }

    /// Returns the rule by which the caller of a frame at a relative address is found.
    pub(super) fn rule(&self, relative: u32, context: &mut UnwindContext<usize>) -> Rule {
        self.tables.iter().find_map(|table| table.rule(relative, context)).unwrap_or(Rule::Unknown)
    }

    /// Returns the complete row for a relative address, and the table that has it.
    pub(super) fn full_row(&self, relative: u32, context: &mut UnwindContext<usize>) -> Option<(&CfiTable, Arc<FullRow>)> {
        self.tables.iter().find_map(|table| Some((table, table.full_row(relative, context)?)))
    }
}

fn next_id() -> ImageId {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    ImageId(NonZeroU32::new(NEXT.fetch_add(1, Ordering::Relaxed)).unwrap_or(NonZeroU32::MAX))
}

const PAGE_BYTES: u64 = 4096;

/// The greatest size of the entry code of C libraries and their loaders, up to its last call.
const ENTRY_BYTES_MAX: u64 = 64;

impl fmt::Debug for Image {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter
            .debug_struct("Image")
            .field("id", &self.id)
            .field("architecture", &self.architecture)
            .field("tables", &self.tables.len())
            .finish_non_exhaustive()
    }
}

/// Reads `.eh_frame`, which is found through the segment that points to its sorted table, or else by its name.
fn eh_frame(elf: &ElfFile, addressing: &Addressing) -> Option<CfiTable> {
    let header = elf.segments().iter().find(|segment| segment.p_type == PT_GNU_EH_FRAME);
    let found = header.and_then(|header| read_header(elf, header, addressing.base_svma));
    let section = elf.section(".eh_frame");
    let (bytes, svma) = match (&found, section) {
        (Some((svma, _)), Some(section)) if section.sh_addr == *svma => (elf.bytes(section), *svma),
        (Some((svma, _)), _) => (elf.bytes_at(*svma, u64::MAX), *svma),
        (None, Some(section)) => (elf.bytes(section), section.sh_addr),
        (None, None) => return None,
    };
    let index = found.and_then(|(_, index)| index);
    Some(CfiTable::new(CfiFormat::EhFrame, bytes.ok().filter(|bytes| !bytes.is_empty())?, svma, index, addressing.clone()))
}

/// Reads the `.eh_frame_hdr`: the svma of `.eh_frame`, and the index of its functions if the sorted table has the usual
/// encoding.
fn read_header(elf: &ElfFile, header: &ProgramHeader, base_svma: u64) -> Option<(u64, Option<Index>)> {
    let svma = header.p_vaddr;
    let bytes = elf.bytes_at(svma, header.p_filesz).ok()?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(svma);
    let parsed = EhFrameHdr::new(&bytes, LittleEndian).parse(&bases, elf.address_bytes()).ok()?;
    let Pointer::Direct(eh_frame_svma) = parsed.eh_frame_ptr() else { return None };
    let index = sorted_table(bytes).map(|bytes| Index::sorted(bytes, svma, eh_frame_svma, base_svma));
    Some((eh_frame_svma, index))
}

/// Returns the pairs of the sorted table in an `.eh_frame_hdr`.
///
/// The section has a version, three encodings, the address of `.eh_frame`, the number of pairs, and the pairs.
fn sorted_table(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    /// `DW_EH_PE_udata4` and `DW_EH_PE_sdata4`: the encodings with four bytes.
    const FOUR_BYTES: [u8; 2] = [0x03, 0x0b];
    let &[_, address, number, table, ..] = bytes.as_slice() else { return None };
    if !FOUR_BYTES.contains(&(address & 0xf)) || !FOUR_BYTES.contains(&number) || table != SORTED_ENCODING {
        return None;
    }
    let count = u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?) as usize;
    bytes.drain(..12);
    bytes.truncate(count.checked_mul(8)?);
    (count > 0 && bytes.len() >= 8).then_some(bytes)
}

/// Reads `.debug_frame`, which a file has in place of `.eh_frame` for code that was built without unwind tables. Go's
/// is compressed.
fn debug_frame(elf: &ElfFile, addressing: &Addressing) -> Option<CfiTable> {
    let bytes = elf.contents(".debug_frame").ok().filter(|bytes| !bytes.is_empty())?;
    Some(CfiTable::new(CfiFormat::DebugFrame, bytes, 0, None, addressing.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::test_elf::{CODE, Form, elf, function};

    fn image(bytes: &[u8]) -> Result<Image, ImageError> {
        Image::read(Box::new(bytes.to_vec()))
    }

    #[test]
    fn unusable_files_are_refused_with_the_reason() {
        let file = elf(Architecture::X86_64, Form::Sorted, &[]);
        let changed = |offset: usize, value: u8| {
            let mut file = file.clone();
            file[offset] = value;
            image(&file).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(changed(0, 0), Err("not an ELF file".into()));
        assert_eq!(changed(18, 243), Err("it is for machine 243; stacks are unwound on x86-64, i386 and aarch64".into()));
        assert_eq!(changed(64, 2), Err("it has no loadable segment".into()));
        assert!(changed(36, 0xff).unwrap_err().starts_with("its program headers cannot be read"));
    }

    #[test]
    fn a_truncated_file_is_refused_or_read_in_part() {
        let file = elf(Architecture::X86_64, Form::EhFrame, &[function(CODE, [])]);
        let whole = image(&file).unwrap();
        assert!(whole.has_rules());
        for length in 0..0x1100 {
            if let Ok(cut) = image(&file[..length]) {
                assert!(length >= 64 + 56, "{length} bytes are an image");
                let rule = cut.rule(u32::try_from(CODE).unwrap(), &mut UnwindContext::new());
                assert!(rule == Rule::Unknown || length > 0x1000, "{length} bytes have a rule");
            }
        }
    }

    #[test]
    fn the_running_test_program_is_a_readable_image() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let own = image(&own).unwrap();
        assert!(own.has_rules());
        assert_eq!(Some(own.architecture()), Architecture::host());
    }

    #[test]
    fn svmas_of_an_unread_file_are_its_offsets() {
        let image = Image::unread(Architecture::Aarch64);
        assert!(image.is_unread() && !image.has_rules() && !image.is_entry(0x1000));
        assert_eq!(
            [0, 0x1000, 0x7fff_ffff_f000].map(|offset| image.svma_of_offset(offset)),
            [Some(0), Some(0x1000), Some(0x7fff_ffff_f000)]
        );
    }

    /// Linkers may put the end of data and the beginning of code into one page of the file.
    #[test]
    fn an_offset_in_a_page_of_two_segments_belongs_to_the_code() {
        let image = Image {
            id: ImageId(NonZeroU32::MIN),
            architecture: Architecture::X86_64,
            base_svma: 0x40_0000,
            entry_svma: 0,
            build_id: None,
            segments: vec![
                Segment { file_offset: 0, file_bytes: 0x1234, svma: 0x40_0000, is_executable: false },
                Segment { file_offset: 0x1240, file_bytes: 0x2000, svma: 0x40_2240, is_executable: true },
            ],
            tables: Vec::new(),
            is_unread: false,
        };
        assert_eq!(image.svma_of_offset(0), Some(0x40_0000));
        assert_eq!(image.svma_of_offset(0x1000), Some(0x40_2000));
        assert_eq!(image.svma_of_offset(0x3000), Some(0x40_4000));
        assert_eq!(image.svma_of_offset(0x4000), None);
        assert_eq!([0x40_0000, 0x40_2010].map(|svma| image.offset_of_svma(svma)), [Some(0), Some(0x1010)]);
        assert_eq!([0x3f_ffff, 0x50_0000].map(|svma| image.offset_of_svma(svma)), [None, None]);
    }
}
