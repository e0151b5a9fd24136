//! The symbols of one mapped file, and its source lines, which are read at the first request.

use super::build_id::BuildId;
use super::code::CodeSymbols;
use super::compression::Compression;
use super::debug_file;
use super::demangle::{demangle, is_mangled};
use super::elf::ElfFile;
use super::files::{Files, Identity, Origin, Want};
use super::lines::{InlinedFrame, Lines};
use super::table::SymbolTable;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;

/// The greatest size of a decompressed `.gnu_debugdata`. (Fedora's largest have some 10 MiB.)
const MINIDEBUG_MAX: u64 = 256 << 20;

/// A file, whether or not its symbols are in memory now.
pub(super) struct Object {
    /// The identity of the file that was read first. Further files with the same build-id and owner share the object.
    pub identity: Identity,
    /// The mapping by which the file was found, and by which it is opened again.
    pub origin: Origin,
    /// The build-id in the file's note; `None` if the file has none, so that nothing is downloaded for it.
    pub build_id: Option<BuildId>,
    /// The path of the debug file that debuginfod downloaded.
    pub downloaded: Option<PathBuf>,
    /// Whether a debug file was requested from debuginfod, which happens at most once for each object.
    pub download: DownloadState,
    /// The number of the last use. The object that was least recently used is evicted first.
    pub last_use: u64,
    /// Whether it is no file (the vdso), so that evicted symbols could not be read again.
    pub is_permanent: bool,
    /// The symbols; `None` after they were evicted, until the next lookup.
    pub symbols: Option<Symbols>,
    /// The source lines; `None` before the first lookup of a line, and after they were evicted.
    pub lines: Option<CachedLines>,
}

/// The state of the download of a debug file by debuginfod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DownloadState {
    NotRequested,
    Requested,
    /// The client has ended, with or without a file.
    Finished,
}

/// A file's symbols in memory.
#[derive(Default)]
pub(super) struct Symbols {
    table: SymbolTable,
    /// Whether functions that are not exported also have symbols.
    pub complete: bool,
    demangled: FxHashMap<u32, Option<Box<str>>>,
    demangled_bytes: usize,
}

/// The name of the symbol at an address, demangled if possible.
pub(super) struct SymbolName<'a> {
    /// The name, not escaped.
    pub name: &'a [u8],
    /// In bytes from the symbol's start.
    pub offset: u64,
    /// The number of bytes that the lookup added to the cache.
    pub grown: usize,
}

/// A file's DWARF, and the lines of the addresses that were looked up.
#[derive(Default)]
pub(super) struct CachedLines {
    /// `None` if there is no DWARF, or none that can be read.
    lines: Option<Lines>,
    by_address: FxHashMap<u64, Box<[InlinedFrame]>>,
    bytes: usize,
}

/// The inlined frames at one address.
pub(super) struct CachedFrames<'a> {
    /// The functions at the address, the innermost first; empty if no DWARF covers the address.
    pub frames: &'a [InlinedFrame],
    /// The number of bytes that the lookup added to the cache.
    pub grown: usize,
}

/// The greatest number of addresses of a file whose lines are cached.
const CACHED_LINES_MAX: usize = 1 << 14;

impl Symbols {
    /// Reads all symbols: the file's own, and if these are not complete, those of its debug file or of
    /// `.gnu_debugdata`.
    pub fn read(files: &mut dyn Files, file: &ElfFile, origin: &Origin, downloaded: Option<&PathBuf>) -> Symbols {
        let mut code = CodeSymbols::default();
        code.add(file);
        if !code.is_complete()
            && let Some(debug) = debug_file::find(files, file, origin, downloaded.map(PathBuf::as_path))
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

    /// Reads the symbols of a debug file alone, because the file itself no longer exists.
    pub fn of_debug_file(file: &ElfFile) -> Symbols {
        let mut code = CodeSymbols::default();
        code.add(file);
        Symbols { complete: code.is_complete(), table: code.finish(), ..Symbols::default() }
    }

    /// Returns the name of the symbol at an address.
    pub fn at(&mut self, svma: u64) -> Option<SymbolName<'_>> {
        let found = self.table.at(svma)?;
        if !is_mangled(found.name) {
            return Some(SymbolName { name: found.name, offset: found.offset, grown: 0 });
        }
        let mut grown = 0;
        let demangled = self.demangled.entry(found.symbol).or_insert_with(|| {
            let name = demangle(found.name).map(String::into_boxed_str);
            grown = 40 + name.as_ref().map_or(0, |name| name.len());
            name
        });
        self.demangled_bytes += grown;
        let name = demangled.as_ref().map_or(found.name, |name| name.as_bytes());
        Some(SymbolName { name, offset: found.offset, grown })
    }

    /// Returns the memory in bytes.
    pub fn footprint(&self) -> usize {
        self.table.footprint() + self.demangled_bytes
    }
}

impl CachedLines {
    /// Reads the DWARF of the file itself, or of its debug file.
    pub fn read(files: &mut dyn Files, object: &Object) -> CachedLines {
        CachedLines { lines: read_lines(files, object), ..CachedLines::default() }
    }

    /// Clears the cache if it is full. Returns the number of bytes that this frees.
    pub fn clear_if_full(&mut self) -> usize {
        if self.by_address.len() < CACHED_LINES_MAX {
            return 0;
        }
        self.by_address = FxHashMap::default();
        std::mem::take(&mut self.bytes)
    }

    /// Whether there is no DWARF, so that no address has a line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_none()
    }

    /// Returns the inlined frames at an address.
    pub fn at(&mut self, svma: u64) -> CachedFrames<'_> {
        let mut grown = 0;
        let frames = match self.by_address.entry(svma) {
            Entry::Occupied(cached) => cached.into_mut(),
            Entry::Vacant(new) => {
                let found = self.lines.as_ref().map_or(Vec::new(), |lines| lines.at(svma));
                grown = 32 + found.iter().map(footprint_of).sum::<usize>();
                new.insert(found.into())
            }
        };
        self.bytes += grown;
        CachedFrames { frames, grown }
    }

    /// Returns the memory in bytes.
    pub fn footprint(&self) -> usize {
        self.bytes + self.lines.as_ref().map_or(0, Lines::footprint)
    }
}

fn footprint_of(frame: &InlinedFrame) -> usize {
    let texts = [&frame.function, &frame.file].into_iter().flatten();
    size_of::<InlinedFrame>() + texts.map(|text| text.len()).sum::<usize>()
}

impl Object {
    /// Creates an object without symbols and lines.
    pub fn new(identity: Identity, origin: Origin, build_id: Option<BuildId>, is_permanent: bool) -> Object {
        Object {
            identity,
            origin,
            build_id,
            downloaded: None,
            download: DownloadState::NotRequested,
            last_use: 0,
            is_permanent,
            symbols: None,
            lines: None,
        }
    }

    /// Reads the symbols again. If the file itself no longer exists, these are the debug file's.
    pub fn read_symbols(&mut self, files: &mut dyn Files) {
        self.symbols = Some(match self.reopen(files) {
            Some(file) => Symbols::read(files, &file, &self.origin, self.downloaded.as_ref()),
            None => self.downloaded(files).map_or_else(Symbols::default, |debug| Symbols::of_debug_file(&debug)),
        });
    }

    /// Returns the memory that [`Self::evict`] frees, in bytes.
    pub fn footprint(&self) -> usize {
        let symbols = self.symbols.as_ref().filter(|_| !self.is_permanent).map_or(0, Symbols::footprint);
        symbols + self.lines.as_ref().map_or(0, CachedLines::footprint)
    }

    /// Drops the data that can be read again.
    pub fn evict(&mut self) {
        self.lines = None;
        if !self.is_permanent {
            self.symbols = None;
        }
    }

    /// Opens the file again.
    pub fn reopen(&self, files: &mut dyn Files) -> Option<ElfFile> {
        ElfFile::read(files.find(Want::Again { identity: self.identity, origin: &self.origin })?).ok()
    }

    /// Opens the debug file that debuginfod downloaded.
    pub fn downloaded(&self, files: &mut dyn Files) -> Option<ElfFile> {
        let bytes = files.find(Want::Path { path: self.downloaded.as_ref()?, seen_by: None })?;
        ElfFile::read(bytes).ok().filter(|file| file.build_id() == self.build_id)
    }
}

fn read_lines(files: &mut dyn Files, object: &Object) -> Option<Lines> {
    let Some(file) = object.reopen(files) else {
        return Lines::read(&object.downloaded(files)?, None).ok();
    };
    if file.has_bytes_of(".debug_info") {
        let shared = debug_file::find_shared(files, &file, &object.origin.path, Some(object.origin.pid));
        return Lines::read(&file, shared.as_ref()).ok();
    }
    let debug = debug_file::find(files, &file, &object.origin, object.downloaded.as_deref())?;
    let shared = debug.find_shared(files);
    Lines::read(&debug.file, shared.as_ref()).ok()
}

/// Reads the compressed ELF file with symbols that a stripped file contains (gdb's documentation, "Debugging
/// Information in a Special Section").
pub fn minidebug(file: &ElfFile) -> Option<ElfFile> {
    let compressed = file.bytes(file.section(".gnu_debugdata")?).ok()?;
    let bytes = Compression::Xz.decompress(&compressed, MINIDEBUG_MAX).ok()?;
    ElfFile::read(Box::new(bytes)).ok()
}
