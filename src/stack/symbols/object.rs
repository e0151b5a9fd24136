//! One mapped file: its symbols, and its lines once somebody asks for them.

use super::build_id::BuildId;
use super::code::Code;
use super::debug_file;
use super::demangle::{demangle, is_mangled};
use super::elf::ElfFile;
use super::files::{Files, Identity, Origin, Want};
use super::lines::{InlinedFrame, Lines};
use super::packed::Packing;
use super::table::SymbolTable;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;

/// `.gnu_debugdata` unpacks to no more. (Fedora's largest have some 10 MiB.)
const MINIDEBUG_MAX: u64 = 256 << 20;

/// A file, whether or not its symbols are in memory now.
pub(super) struct Object {
    pub identity: Identity,
    pub origin: Origin,
    pub build_id: Option<BuildId>,
    /// Where debuginfod put its debug file.
    pub fetched: Option<PathBuf>,
    pub question: Question,
    /// What is given up first is what was not used for the longest time.
    pub last_use: u64,
    /// It is no file, so it could not be read again.
    pub stays: bool,
    pub symbols: Option<Symbols>,
    pub lines: Option<KnownLines>,
}

/// Whether debuginfod was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Never,
    Asked,
    Answered,
}

/// A file's symbols in memory.
#[derive(Default)]
pub(super) struct Symbols {
    table: SymbolTable,
    /// Also functions that are not exported have names.
    pub complete: bool,
    demangled: FxHashMap<u32, Option<Box<str>>>,
    demangled_bytes: usize,
}

/// A symbol's name, demangled if it can be.
pub(super) struct Named<'a> {
    pub name: &'a [u8],
    pub offset: u64,
    /// By so many bytes the memory grew.
    pub grown: usize,
}

/// A file's lines, as far as somebody asked.
#[derive(Default)]
pub(super) struct KnownLines {
    /// `None` if there is no DWARF, or none that can be read.
    lines: Option<Lines>,
    by_address: FxHashMap<u64, Box<[InlinedFrame]>>,
    bytes: usize,
}

/// What is said of one address.
pub(super) struct KnownFrames<'a> {
    pub frames: &'a [InlinedFrame],
    /// By so many bytes the memory grew.
    pub grown: usize,
}

/// Asked again, the same addresses' lines are at hand; so many of a file.
const LINES_KEPT: usize = 1 << 14;

impl Symbols {
    /// All there is: the file's own symbols, and where these are not complete those of its debug file or of `.gnu_debugdata`.
    pub fn read(files: &mut dyn Files, file: &ElfFile, origin: &Origin, fetched: Option<&PathBuf>) -> Symbols {
        let mut code = Code::default();
        code.add(file);
        if !code.is_complete()
            && let Some(debug) = debug_file::find(files, file, origin, fetched.map(PathBuf::as_path))
        {
            code.add(&debug.file);
        }
        if !code.is_complete()
            && let Some(inner) = minidebug(file)
        {
            code.add(&inner);
        }
        code.add_stubs(file);
        Symbols { complete: code.is_complete(), table: code.finish(), ..Symbols::default() }
    }

    /// Of a debug file alone: the file itself is gone.
    pub fn of_debug_file(file: &ElfFile) -> Symbols {
        let mut code = Code::default();
        code.add(file);
        Symbols { complete: code.is_complete(), table: code.finish(), ..Symbols::default() }
    }

    pub fn at(&mut self, svma: u64) -> Option<Named<'_>> {
        let found = self.table.at(svma)?;
        if !is_mangled(found.name) {
            return Some(Named { name: found.name, offset: found.offset, grown: 0 });
        }
        let mut grown = 0;
        let demangled = self.demangled.entry(found.symbol).or_insert_with(|| {
            let name = demangle(found.name).map(String::into_boxed_str);
            grown = 40 + name.as_ref().map_or(0, |name| name.len());
            name
        });
        self.demangled_bytes += grown;
        let name = demangled.as_ref().map_or(found.name, |name| name.as_bytes());
        Some(Named { name, offset: found.offset, grown })
    }

    pub fn footprint(&self) -> usize {
        self.table.footprint() + self.demangled_bytes
    }
}

impl KnownLines {
    /// From the file itself if it has DWARF, otherwise from its debug file.
    pub fn read(files: &mut dyn Files, object: &Object) -> KnownLines {
        KnownLines { lines: read_lines(files, object), ..KnownLines::default() }
    }

    /// Forgets what was found if that is much; gives the memory that is free now.
    pub fn forget(&mut self) -> usize {
        if self.by_address.len() < LINES_KEPT {
            return 0;
        }
        self.by_address = FxHashMap::default();
        std::mem::take(&mut self.bytes)
    }

    /// No address has any.
    pub fn is_empty(&self) -> bool {
        self.lines.is_none()
    }

    pub fn at(&mut self, svma: u64) -> KnownFrames<'_> {
        let mut grown = 0;
        let frames = match self.by_address.entry(svma) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let found = self.lines.as_ref().map_or(Vec::new(), |lines| lines.at(svma));
                grown = 32 + found.iter().map(footprint_of).sum::<usize>();
                new.insert(found.into())
            }
        };
        self.bytes += grown;
        KnownFrames { frames, grown }
    }

    pub fn footprint(&self) -> usize {
        self.bytes + self.lines.as_ref().map_or(0, Lines::footprint)
    }
}

fn footprint_of(frame: &InlinedFrame) -> usize {
    let texts = [&frame.function, &frame.file].into_iter().flatten();
    size_of::<InlinedFrame>() + texts.map(|text| text.len()).sum::<usize>()
}

impl Object {
    pub fn new(identity: Identity, origin: Origin, build_id: Option<BuildId>, stays: bool) -> Object {
        Object { identity, origin, build_id, fetched: None, question: Question::Never, last_use: 0, stays, symbols: None, lines: None }
    }

    /// Reads the symbols again; those of the debug file alone where the file itself is gone.
    pub fn read_symbols(&mut self, files: &mut dyn Files) {
        self.symbols = Some(match self.again(files) {
            Some(file) => Symbols::read(files, &file, &self.origin, self.fetched.as_ref()),
            None => self.fetched(files).map_or_else(Symbols::default, |debug| Symbols::of_debug_file(&debug)),
        });
    }

    /// Memory that can be given up, in bytes.
    pub fn footprint(&self) -> usize {
        let symbols = self.symbols.as_ref().filter(|_| !self.stays).map_or(0, Symbols::footprint);
        symbols + self.lines.as_ref().map_or(0, KnownLines::footprint)
    }

    /// Gives up what can be read again.
    pub fn give_up(&mut self) {
        self.lines = None;
        if !self.stays {
            self.symbols = None;
        }
    }

    /// The file, opened again.
    pub fn again(&self, files: &mut dyn Files) -> Option<ElfFile> {
        ElfFile::read(files.find(Want::Again { identity: self.identity, origin: &self.origin })?).ok()
    }

    /// The debug file that debuginfod brought.
    pub fn fetched(&self, files: &mut dyn Files) -> Option<ElfFile> {
        let bytes = files.find(Want::Path { path: self.fetched.as_ref()?, seen_by: None })?;
        ElfFile::read(bytes).ok().filter(|file| file.build_id() == self.build_id)
    }
}

fn read_lines(files: &mut dyn Files, object: &Object) -> Option<Lines> {
    let Some(file) = object.again(files) else {
        return Lines::read(&object.fetched(files)?, None).ok();
    };
    if file.has_bytes_of(".debug_info") {
        let shared = debug_file::find_shared(files, &file, &object.origin.path, Some(object.origin.pid));
        return Lines::read(&file, shared.as_ref()).ok();
    }
    let debug = debug_file::find(files, &file, &object.origin, object.fetched.as_deref())?;
    let shared = debug.find_shared(files);
    Lines::read(&debug.file, shared.as_ref()).ok()
}

/// The symbols that a stripped file has with it, packed (gdb's documentation, "Debugging Information in a Special Section").
pub fn minidebug(file: &ElfFile) -> Option<ElfFile> {
    let packed = file.bytes(file.section(".gnu_debugdata")?).ok()?;
    let bytes = Packing::Xz.unpack(&packed, MINIDEBUG_MAX).ok()?;
    ElfFile::read(Box::new(bytes)).ok()
}
