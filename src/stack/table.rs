//! A CFI section of an image. A function's entry is compiled to [`Rule`]s when the first frame in it is unwound.
//!
//! A library may have a hundred thousand functions, of which the stacks of a program show a few hundred. So nothing is
//! compiled in advance, and the linker's sorted table (`.eh_frame_hdr`) is searched in the form that it has in the
//! file.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gimli::{
    BaseAddresses, CommonInformationEntry, DebugFrame, EhFrame, EndianSlice, FrameDescriptionEntry, LittleEndian, UnwindContext,
    UnwindOffset, UnwindSection, Vendor,
};
use rustc_hash::FxHashMap;

use crate::stack::full_row::FullRow;
use crate::stack::index::Index;
use crate::stack::registers::Layout;
use crate::stack::rule::Rule;

/// The bytes of a CFI section, which are read in place. They are little-endian, because other images are refused.
pub type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// The greatest number of compiled rows of one function. The longest function of libLLVM 15 has 544.
const FUNCTION_ROWS_MAX: usize = 1 << 16;
/// All compiled rows (12 bytes each) are discarded when there are more than this. All 98,256 functions of libLLVM 15
/// have 862,822.
const ROWS_MAX: usize = 1 << 22;
const FULL_ROWS_MAX: usize = 1 << 12;
/// The greatest lengths of CIEs and FDEs that are read.
const CIE_BYTES_MAX: u32 = 1 << 12;
const FDE_BYTES_MAX: u32 = 1 << 20;

/// The format of a CFI section. The two differ in details only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CfiFormat {
    EhFrame,
    DebugFrame,
}

/// A CFI section. Relative addresses are svmas less the image's lowest one.
pub struct CfiTable {
    format: CfiFormat,
    bytes: Vec<u8>,
    bases: BaseAddresses,
    addressing: Addressing,
    /// Built at the first use, if the linker wrote no sorted table.
    index: OnceLock<Index>,
    compiled: Mutex<Compiled>,
}

/// The addresses of a file: their size, base and range.
#[derive(Clone)]
pub struct Addressing {
    /// The properties of the architecture that the file is for.
    pub layout: &'static Layout,
    /// The size of an address: 8, or 4.
    pub address_bytes: u8,
    /// svma of relative address 0.
    pub base_svma: u64,
    /// The range of svmas that holds all code.
    pub code: Range<u64>,
}

impl Addressing {
    /// Returns the vendor whose extensions the tables use. One opcode means register windows on SPARC and signed return
    /// addresses on aarch64.
    fn vendor(&self) -> Vendor {
        if self.layout.link_register.is_some() { Vendor::AArch64 } else { Vendor::Default }
    }
}

/// The functions that were compiled so far.
#[derive(Default)]
struct Compiled {
    /// By the function's place in the index: 1 + the index of its first row, or 0 if it is not compiled.
    places: Vec<u32>,
    /// For each function: a row whose `start` is the number of rows that follow, the function's rows, and one at its
    /// end that is [`Rule::Unknown`].
    rows: Vec<Row>,
    /// By relative address.
    full_rows: FxHashMap<u32, Arc<FullRow>>,
}

/// A rule that is valid from a relative address up to the next row's.
#[derive(Clone, Copy)]
struct Row {
    start: u32,
    rule: Rule,
}

impl CfiTable {
    /// Creates a table from a section's bytes. `svma` is the section's address, 0 for a `.debug_frame`.
    pub fn new(format: CfiFormat, bytes: Vec<u8>, svma: u64, index: Option<Index>, addressing: Addressing) -> Self {
        let bases = BaseAddresses::default().set_eh_frame(svma);
        Self { format, bytes, bases, addressing, index: index.map_or_else(OnceLock::new, OnceLock::from), compiled: Mutex::default() }
    }

    /// Returns the rule for a relative address, or `None` if no entry covers it.
    pub fn rule(&self, relative: u32, context: &mut UnwindContext<usize>) -> Option<Rule> {
        let place = self.index().place(relative)?;
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.places.is_empty() {
            compiled.places = vec![0; self.index().len()];
        }
        let first = match compiled.places[place] {
            0 => self.compile(place, &mut compiled, context),
            known => known - 1,
        } as usize;
        let rows = &compiled.rows[first + 1..][..compiled.rows[first].start as usize];
        let row = rows.partition_point(|row| row.start <= relative).checked_sub(1)?;
        Some(rows[row].rule).filter(|rule| *rule != Rule::Unknown)
    }

    /// Returns the complete row for a relative address.
    pub fn full_row(&self, relative: u32, context: &mut UnwindContext<usize>) -> Option<Arc<FullRow>> {
        if let Some(row) = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).full_rows.get(&relative) {
            return Some(row.clone());
        }
        let row = self.read_row(self.index().place(relative)?, relative, context).map(Arc::new)?;
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.full_rows.len() >= FULL_ROWS_MAX {
            compiled.full_rows.clear();
        }
        compiled.full_rows.insert(relative, row.clone());
        Some(row)
    }

    /// Returns the DWARF expression at an offset of the section.
    pub fn expression(&self, expression: gimli::UnwindExpression<usize>) -> Option<gimli::Expression<Reader<'_>>> {
        let bytes = self.bytes.get(expression.offset..expression.offset.checked_add(expression.length)?)?;
        Some(gimli::Expression(EndianSlice::new(bytes, LittleEndian)))
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            Index::walked(match self.format {
                CfiFormat::EhFrame => self.walk(&self.eh_frame()),
                CfiFormat::DebugFrame => self.walk(&self.debug_frame()),
            })
        })
    }

    /// Reads the start and offset of all FDEs, up to the first that cannot be read.
    fn walk<'a, S: UnwindSection<Reader<'a>>>(&self, section: &S) -> Vec<(u32, u32)> {
        let mut functions = Vec::new();
        let mut entries = section.entries(&self.bases);
        while let Ok(Some(entry)) = entries.next() {
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            let Ok(fde) = partial.parse(|section, bases, offset| self.cie(section, bases, offset)) else { continue };
            // A linker that discards a function leaves its entry in .debug_frame, with address 0.
            if !self.addressing.code.contains(&fde.initial_address()) {
                continue;
            }
            if let (Some(start), Ok(offset)) = (self.relative(fde.initial_address()), u32::try_from(fde.offset())) {
                functions.push((start, offset));
            }
        }
        functions
    }

    fn relative(&self, svma: u64) -> Option<u32> {
        svma.checked_sub(self.addressing.base_svma).and_then(|relative| u32::try_from(relative).ok())
    }

    /// Compiles a function and returns the index of its first row. A function whose entry cannot be read has no further
    /// rows.
    fn compile(&self, place: usize, compiled: &mut Compiled, context: &mut UnwindContext<usize>) -> u32 {
        if compiled.rows.len() > ROWS_MAX {
            compiled.places.fill(0);
            compiled.rows.clear();
        }
        let rows = &mut compiled.rows;
        let first = rows.len();
        rows.push(Row { start: 0, rule: Rule::Unknown });
        let read = match self.format {
            CfiFormat::EhFrame => self.compile_into(&self.eh_frame(), place, rows, context),
            CfiFormat::DebugFrame => self.compile_into(&self.debug_frame(), place, rows, context),
        };
        if read.is_none() {
            rows.truncate(first + 1);
        }
        rows[first].start = (rows.len() - first - 1) as u32;
        compiled.places[place] = first as u32 + 1;
        first as u32
    }

    /// Appends the rows of a function, and a row at its end that is [`Rule::Unknown`].
    fn compile_into<'a, S>(&self, section: &S, place: usize, rows: &mut Vec<Row>, context: &mut UnwindContext<usize>) -> Option<()>
    where
        S: UnwindSection<Reader<'a>, Offset: From<usize>>,
    {
        let first = rows.len();
        let fde = self.entry(section, place)?;
        let return_column = fde.cie().return_address_register();
        let mut table = fde.rows(section, &self.bases, context).ok()?;
        while let Some(row) = table.next_row().ok()? {
            let start = self.relative(row.start_address())?;
            let rule = if fde.is_signal_trampoline() { Rule::Full } else { Rule::of_row(row, return_column, self.addressing.layout) };
            match rows[first..].last_mut() {
                Some(last) if last.start == start => last.rule = rule,
                Some(last) if last.rule == rule => {}
                _ => rows.push(Row { start, rule }),
            }
            if rows.len() - first > FUNCTION_ROWS_MAX {
                return None;
            }
        }
        rows.push(Row { start: self.relative(fde.end_address())?, rule: Rule::Unknown });
        Some(())
    }

    fn read_row(&self, place: usize, relative: u32, context: &mut UnwindContext<usize>) -> Option<FullRow> {
        match self.format {
            CfiFormat::EhFrame => self.read_row_in(&self.eh_frame(), place, relative, context),
            CfiFormat::DebugFrame => self.read_row_in(&self.debug_frame(), place, relative, context),
        }
    }

    fn read_row_in<'a, S>(&self, section: &S, place: usize, relative: u32, context: &mut UnwindContext<usize>) -> Option<FullRow>
    where
        S: UnwindSection<Reader<'a>, Offset: From<usize>>,
    {
        let fde = self.entry(section, place)?;
        let svma = self.addressing.base_svma.checked_add(u64::from(relative))?;
        let row = fde.unwind_info_for_address(section, &self.bases, context, svma).ok()?;
        Some(FullRow::of_row(row, fde.cie().return_address_register(), fde.is_signal_trampoline()))
    }

    fn entry<'a, S>(&self, section: &S, place: usize) -> Option<FrameDescriptionEntry<Reader<'a>>>
    where
        S: UnwindSection<Reader<'a>, Offset: From<usize>>,
    {
        let offset = self.index().entry_offset(place).filter(|offset| self.entry_bytes(*offset) <= FDE_BYTES_MAX)?;
        section.fde_from_offset(&self.bases, S::Offset::from(offset), |section, bases, offset| self.cie(section, bases, offset)).ok()
    }

    fn cie<'a, S: UnwindSection<Reader<'a>>>(
        &self,
        section: &S,
        bases: &BaseAddresses,
        offset: S::Offset,
    ) -> gimli::Result<CommonInformationEntry<Reader<'a>>> {
        let at: usize = UnwindOffset::into(offset);
        if self.entry_bytes(at) > CIE_BYTES_MAX {
            return Err(gimli::Error::UnexpectedEof(gimli::ReaderOffsetId(at as u64)));
        }
        section.cie_from_offset(bases, offset)
    }

    /// Returns the length field of an entry. In the 64-bit format, which no compiler writes, it is 0xffffffff.
    fn entry_bytes(&self, offset: usize) -> u32 {
        self.bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(u32::MAX, |bytes| u32::from_le_bytes(*bytes))
    }

    fn eh_frame(&self) -> EhFrame<Reader<'_>> {
        let mut section = EhFrame::new(&self.bytes, LittleEndian);
        section.set_address_size(self.addressing.address_bytes);
        section.set_vendor(self.addressing.vendor());
        section
    }

    fn debug_frame(&self) -> DebugFrame<Reader<'_>> {
        let mut section = DebugFrame::new(&self.bytes, LittleEndian);
        section.set_address_size(self.addressing.address_bytes);
        section.set_vendor(self.addressing.vendor());
        section
    }
}
