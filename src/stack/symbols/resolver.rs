//! Looks up symbols and lines of addresses in files. A file's symbols are read once for all processes that map it, and
//! the memory is bounded.

use super::build_id::BuildId;
use super::debuginfod::{Debuginfod, DownloadResult};
use super::elf::{ElfError, ElfFile};
use super::files::{Files, Identity, Origin};
use super::lines::InlinedFrame;
use super::object::{CachedLines, DownloadState, Object, Symbols};
use super::read_at::ReadAt;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::time::Instant;

/// The number of a file that a [`Resolver`] has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId(u32);

/// The result of a symbol lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// A function.
    Symbol {
        /// The name, demangled but not escaped.
        name: &'a [u8],
        /// The distance of the address from the start of the function, in bytes.
        offset: u64,
    },
    /// No symbol holds this address: the caller prints file and svma.
    Unknown,
    /// As `Unknown`, but debuginfod is downloading the file's symbols, so there may be a name later.
    NotYet,
}

/// Settings of a [`Resolver`].
pub struct Options {
    /// The memory in bytes that all symbols and lines together may take. Those of the file in use may exceed it.
    pub memory_max: usize,
    /// Downloads debug files that this machine does not have.
    pub debuginfod: Option<Debuginfod>,
}

impl Default for Options {
    fn default() -> Options {
        Options { memory_max: 256 << 20, debuginfod: None }
    }
}

/// Looks up symbols and lines, and keeps them in memory.
pub struct Resolver<F> {
    files: F,
    options: Options,
    objects: Vec<Object>,
    by_identity: FxHashMap<Identity, ObjectId>,
    by_build_id: FxHashMap<(BuildId, u32), ObjectId>,
    /// The memory of all objects' symbols and lines, in bytes.
    footprint: usize,
    /// The number of uses so far, by which the least recently used object is found.
    uses: u64,
}

impl<F: Files> Resolver<F> {
    /// Returns a resolver that has read nothing yet, and that opens debug files by `files`.
    pub fn new(files: F, options: Options) -> Resolver<F> {
        Resolver {
            files,
            options,
            objects: Vec::new(),
            by_identity: FxHashMap::default(),
            by_build_id: FxHashMap::default(),
            footprint: 0,
            uses: 0,
        }
    }

    /// Returns the opener of files.
    pub fn files(&self) -> &F {
        &self.files
    }

    /// Returns the object of a file that was read before, which then need not be opened.
    pub fn known(&self, identity: Identity) -> Option<ObjectId> {
        self.by_identity.get(&identity).copied()
    }

    /// Reads the symbols of a file, unless it was read before, or a file with the same build-id and owner was.
    ///
    /// # Errors
    /// Fails if it is not an ELF file, or a damaged one.
    pub fn object(&mut self, identity: Identity, origin: Origin, source: Box<dyn ReadAt>) -> Result<ObjectId, ElfError> {
        if let Some(known) = self.known(identity) {
            return Ok(known);
        }
        let file = ElfFile::read(source)?;
        let build_id = file.build_id();
        if let Some(same) = build_id.and_then(|id| self.by_build_id.get(&(id, identity.owner)).copied())
            && (self.is_complete(same) || !file.has_bytes_of(".symtab"))
        {
            self.by_identity.insert(identity, same);
            return Ok(same);
        }
        Ok(self.add(identity, origin, &file, false))
    }

    /// Reads the symbols of an ELF image in memory: the vdso's.
    ///
    /// # Errors
    /// Fails if it is not an ELF image, or a damaged one.
    pub fn image(&mut self, bytes: Vec<u8>) -> Result<ObjectId, ElfError> {
        let inode = u64::from(crc32fast::hash(&bytes));
        // No device has this number, so the identity cannot be that of a file.
        let identity = Identity { device: u64::MAX, inode, size: bytes.len() as u64, modified: (0, 0), owner: u32::MAX };
        if let Some(known) = self.known(identity) {
            return Ok(known);
        }
        let file = ElfFile::read(Box::new(bytes))?;
        Ok(self.add(identity, Origin { pid: 0, path: PathBuf::new() }, &file, true))
    }

    /// Returns the function at an address of a file. For a return address, pass the address before it: a call may be
    /// the last instruction of a function.
    pub fn resolve(&mut self, object: ObjectId, svma: u64) -> Name<'_> {
        self.take_downloads();
        self.use_symbols(object);
        let object = &mut self.objects[object.0 as usize];
        let Some(symbols) = object.symbols.as_mut() else { return Name::Unknown };
        let is_downloading = object.download == DownloadState::Requested;
        let unnamed = if is_downloading && !symbols.complete { Name::NotYet } else { Name::Unknown };
        match symbols.at(svma) {
            Some(found) => {
                self.footprint += found.grown;
                Name::Symbol { name: found.name, offset: found.offset }
            }
            None => unnamed,
        }
    }

    /// Returns the functions at an address by the file's DWARF: the innermost inlined one first, the one that they were
    /// inlined into last. It is empty if there is no DWARF. The first call for a file reads the DWARF, which takes from
    /// milliseconds to seconds.
    pub fn lines(&mut self, object: ObjectId, svma: u64) -> &[InlinedFrame] {
        self.take_downloads();
        self.use_lines(object);
        let object = &mut self.objects[object.0 as usize];
        let Some(lines) = object.lines.as_mut() else { return &[] };
        let found = lines.at(svma);
        self.footprint += found.grown;
        found.frames
    }

    /// Whether debug files are being downloaded.
    pub fn is_waiting(&self) -> bool {
        self.options.debuginfod.as_ref().is_some_and(Debuginfod::is_waiting)
    }

    /// Waits for all downloads, until `until` at most.
    pub fn wait(&mut self, until: Instant) {
        while let Some(result) = self.options.debuginfod.as_mut().and_then(|debuginfod| debuginfod.wait(until)) {
            self.downloaded(result);
        }
    }

    /// Returns the memory of symbols and lines, in bytes.
    pub fn footprint(&self) -> usize {
        self.footprint
    }

    fn add(&mut self, identity: Identity, origin: Origin, file: &ElfFile, is_permanent: bool) -> ObjectId {
        let id = ObjectId(self.objects.len() as u32);
        let symbols = Symbols::read(&mut self.files, file, &origin, None);
        let mut object = Object::new(identity, origin, file.build_id(), is_permanent);
        object.symbols = Some(symbols);
        self.footprint += object.footprint();
        if let Some(build_id) = object.build_id {
            self.by_build_id.insert((build_id, identity.owner), id);
        }
        self.objects.push(object);
        self.by_identity.insert(identity, id);
        if !is_permanent && !self.is_complete(id) {
            self.request_debug_file(id);
        }
        self.evict_except(id);
        id
    }

    fn is_complete(&self, object: ObjectId) -> bool {
        self.objects[object.0 as usize].symbols.as_ref().is_some_and(|symbols| symbols.complete)
    }

    /// Records a use of an object's symbols, and reads them again if they were evicted.
    fn use_symbols(&mut self, id: ObjectId) {
        self.uses += 1;
        let object = &mut self.objects[id.0 as usize];
        object.last_use = self.uses;
        if object.symbols.is_none() {
            object.read_symbols(&mut self.files);
            self.footprint += object.symbols.as_ref().map_or(0, Symbols::footprint);
            self.evict_except(id);
        }
    }

    /// Records a use of an object's lines, and reads them if they are not in memory.
    fn use_lines(&mut self, id: ObjectId) {
        self.uses += 1;
        let object = &mut self.objects[id.0 as usize];
        object.last_use = self.uses;
        self.footprint -= object.lines.as_mut().map_or(0, CachedLines::clear_if_full);
        if object.lines.is_none() {
            let lines = CachedLines::read(&mut self.files, object);
            let is_empty = lines.is_empty();
            self.footprint += lines.footprint();
            object.lines = Some(lines);
            if is_empty {
                self.request_debug_file(id);
            }
            self.evict_except(id);
        }
    }

    /// Requests a file's debug file from debuginfod, once for each file.
    fn request_debug_file(&mut self, id: ObjectId) {
        let object = &mut self.objects[id.0 as usize];
        if let (DownloadState::NotRequested, Some(build_id), Some(debuginfod)) =
            (object.download, object.build_id, &mut self.options.debuginfod)
            && debuginfod.request(build_id)
        {
            object.download = DownloadState::Requested;
        }
    }

    fn take_downloads(&mut self) {
        while let Some(result) = self.options.debuginfod.as_mut().and_then(Debuginfod::poll) {
            self.downloaded(result);
        }
    }

    fn downloaded(&mut self, (build_id, path): DownloadResult) {
        for object in self.objects.iter_mut().filter(|object| object.build_id == Some(build_id)) {
            object.download = DownloadState::Finished;
            if path.is_none() {
                continue;
            }
            self.footprint -= object.footprint();
            object.downloaded.clone_from(&path);
            object.evict();
            object.read_symbols(&mut self.files);
            self.footprint += object.footprint();
        }
    }

    /// Evicts the least recently used objects until the memory is within its bound. The object in use stays.
    fn evict_except(&mut self, used: ObjectId) {
        while self.footprint > self.options.memory_max {
            let others = self.objects.iter_mut().enumerate().filter(|(at, object)| *at != used.0 as usize && object.footprint() > 0);
            let Some((_, oldest)) = others.min_by_key(|(_, object)| object.last_use) else { return };
            self.footprint -= oldest.footprint();
            oldest.evict();
        }
    }
}

#[cfg(test)]
mod tests;
