//! One CFI section of an image: finding the entry for an address, and compiling it to [`Rule`]s when it is needed first.
//!
//! A library may have a hundred thousand functions, of which a program is ever seen in a few hundred. So nothing is compiled ahead; the linker's sorted table
//! (`.eh_frame_hdr`) is searched as it lies in the file.

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

pub type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// A function's table is not compiled beyond this many rows. The longest of libLLVM 15's has 544.
const FUNCTION_ROWS_MAX: usize = 1 << 16;
/// What is compiled is forgotten when it exceeds this many rows (12 bytes each): all of libLLVM 15, 98,256 functions, has 862,822.
const ROWS_MAX: usize = 1 << 22;
const FULL_ROWS_MAX: usize = 1 << 12;
/// Entries that say to be longer are not read.
const CIE_BYTES_MAX: u32 = 1 << 12;
const FDE_BYTES_MAX: u32 = 1 << 20;

/// Which of the two formats, which differ in small things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    EhFrame,
    DebugFrame,
}

/// Relative addresses are those from the image's lowest one.
pub struct Table {
    kind: Kind,
    bytes: Vec<u8>,
    bases: BaseAddresses,
    file: FileFacts,
    /// Made when it is needed, where the linker left none.
    index: OnceLock<Index>,
    compiled: Mutex<Compiled>,
}

/// What a table has to know of its file.
#[derive(Clone)]
pub struct FileFacts {
    pub layout: &'static Layout,
    /// 8, or 4.
    pub address_bytes: u8,
    /// svma of relative address 0.
    pub base_svma: u64,
    /// svmas between which all code is.
    pub code: Range<u64>,
}

impl FileFacts {
    /// Whose extensions the tables have: one and the same operation is about windows of registers on SPARC and signed return addresses here.
    fn vendor(&self) -> Vendor {
        if self.layout.link_register.is_some() { Vendor::AArch64 } else { Vendor::Default }
    }
}

#[derive(Default)]
struct Compiled {
    /// By the function's place in the sorted table: 1 + the index of its first row, or 0.
    places: Vec<u32>,
    /// Of each function: one that has the number of the others as its `start`, the others, and one behind its end where nothing is known.
    rows: Vec<Row>,
    full_rows: FxHashMap<u32, Arc<FullRow>>,
}

/// Valid from this relative address to the next row's.
#[derive(Clone, Copy)]
struct Row {
    start: u32,
    rule: Rule,
}

impl Table {
    /// `svma` is the section's, 0 of a `.debug_frame`.
    pub fn new(kind: Kind, bytes: Vec<u8>, svma: u64, index: Option<Index>, file: FileFacts) -> Self {
        let bases = BaseAddresses::default().set_eh_frame(svma);
        Self { kind, bytes, bases, file, index: index.map_or_else(OnceLock::new, OnceLock::from), compiled: Mutex::default() }
    }

    /// How a frame at this relative address is left; `None` if no entry covers it.
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

    /// The whole row for a relative address.
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

    /// The bytes of an expression in the section.
    pub fn expression(&self, expression: gimli::UnwindExpression<usize>) -> Option<gimli::Expression<Reader<'_>>> {
        let bytes = self.bytes.get(expression.offset..expression.offset.checked_add(expression.length)?)?;
        Some(gimli::Expression(EndianSlice::new(bytes, LittleEndian)))
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            Index::walked(match self.kind {
                Kind::EhFrame => self.walk(&self.eh_frame()),
                Kind::DebugFrame => self.walk(&self.debug_frame()),
            })
        })
    }

    /// All entries, up to the first that cannot be read.
    fn walk<'a, S: UnwindSection<Reader<'a>>>(&self, section: &S) -> Vec<(u32, u32)> {
        let mut functions = Vec::new();
        let mut entries = section.entries(&self.bases);
        while let Ok(Some(entry)) = entries.next() {
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            let Ok(fde) = partial.parse(|section, bases, offset| self.cie(section, bases, offset)) else { continue };
            // A linker that drops a function leaves its entry in .debug_frame, for address 0.
            if !self.file.code.contains(&fde.initial_address()) {
                continue;
            }
            if let (Some(start), Ok(offset)) = (self.relative(fde.initial_address()), u32::try_from(fde.offset())) {
                functions.push((start, offset));
            }
        }
        functions
    }

    fn relative(&self, svma: u64) -> Option<u32> {
        svma.checked_sub(self.file.base_svma).and_then(|relative| u32::try_from(relative).ok())
    }

    /// Compiles a function, and returns the index of its first row. One that cannot be read has no others.
    fn compile(&self, place: usize, compiled: &mut Compiled, context: &mut UnwindContext<usize>) -> u32 {
        if compiled.rows.len() > ROWS_MAX {
            compiled.places.fill(0);
            compiled.rows.clear();
        }
        let rows = &mut compiled.rows;
        let first = rows.len();
        rows.push(Row { start: 0, rule: Rule::Unknown });
        let read = match self.kind {
            Kind::EhFrame => self.compile_into(&self.eh_frame(), place, rows, context),
            Kind::DebugFrame => self.compile_into(&self.debug_frame(), place, rows, context),
        };
        if read.is_none() {
            rows.truncate(first + 1);
        }
        rows[first].start = (rows.len() - first - 1) as u32;
        compiled.places[place] = first as u32 + 1;
        first as u32
    }

    /// Appends the rows of a function, and one behind it where nothing is known.
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
            let rule = if fde.is_signal_trampoline() { Rule::Full } else { Rule::of_row(row, return_column, self.file.layout) };
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
        match self.kind {
            Kind::EhFrame => self.read_row_in(&self.eh_frame(), place, relative, context),
            Kind::DebugFrame => self.read_row_in(&self.debug_frame(), place, relative, context),
        }
    }

    fn read_row_in<'a, S>(&self, section: &S, place: usize, relative: u32, context: &mut UnwindContext<usize>) -> Option<FullRow>
    where
        S: UnwindSection<Reader<'a>, Offset: From<usize>>,
    {
        let fde = self.entry(section, place)?;
        let svma = self.file.base_svma.checked_add(u64::from(relative))?;
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

    /// The length that an entry gives itself; the 64-bit format, which nobody writes, has one of 4 GB here.
    fn entry_bytes(&self, offset: usize) -> u32 {
        self.bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(u32::MAX, |bytes| u32::from_le_bytes(*bytes))
    }

    fn eh_frame(&self) -> EhFrame<Reader<'_>> {
        let mut section = EhFrame::new(&self.bytes, LittleEndian);
        section.set_address_size(self.file.address_bytes);
        section.set_vendor(self.file.vendor());
        section
    }

    fn debug_frame(&self) -> DebugFrame<Reader<'_>> {
        let mut section = DebugFrame::new(&self.bytes, LittleEndian);
        section.set_address_size(self.file.address_bytes);
        section.set_vendor(self.file.vendor());
        section
    }
}
