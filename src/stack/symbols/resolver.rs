//! Names of addresses in files: read once for all processes that map a file, and bounded in memory.

use super::build_id::BuildId;
use super::debuginfod::{Answer, Debuginfod};
use super::elf::{ElfError, ElfFile};
use super::files::{Files, Identity, Origin};
use super::lines::InlinedFrame;
use super::object::{KnownLines, Object, Question, Symbols};
use super::read_at::ReadAt;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::time::Instant;

/// A file that a [`Resolver`] knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId(u32);

/// What there is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// A function and the distance from its beginning. Demangled if it was mangled; not escaped.
    Symbol { name: &'a [u8], offset: u64 },
    /// No symbol holds this address: show file and svma.
    Unknown,
    /// As `Unknown`, but debuginfod was asked: later there may be a name.
    NotYet,
}

/// How names are looked for.
pub struct Options {
    /// Bytes of memory that all symbols and lines together may take. What is in use right now may be more.
    pub memory_max: usize,
    /// Asked for what no file here can answer.
    pub debuginfod: Option<Debuginfod>,
}

impl Default for Options {
    fn default() -> Options {
        Options { memory_max: 256 << 20, debuginfod: None }
    }
}

/// Names addresses.
pub struct Resolver<F> {
    files: F,
    options: Options,
    objects: Vec<Object>,
    by_identity: FxHashMap<Identity, ObjectId>,
    by_build_id: FxHashMap<(BuildId, u32), ObjectId>,
    /// Memory of all objects' symbols and lines.
    footprint: usize,
    uses: u64,
}

impl<F: Files> Resolver<F> {
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

    /// Who opens files.
    pub fn files(&self) -> &F {
        &self.files
    }

    /// Whether a file is known already; then it need not be opened.
    pub fn known(&self, identity: Identity) -> Option<ObjectId> {
        self.by_identity.get(&identity).copied()
    }

    /// Reads the symbols of a file, unless it or one with the same build-id (of the same owner) is known.
    ///
    /// # Errors
    /// It is no ELF file, or a damaged one.
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

    /// Reads the symbols of what is no file: the vdso's bytes, as they are in memory.
    ///
    /// # Errors
    /// It is no ELF file, or a damaged one.
    pub fn image(&mut self, bytes: Vec<u8>) -> Result<ObjectId, ElfError> {
        let inode = u64::from(crc32fast::hash(&bytes));
        // No device has this number.
        let identity = Identity { device: u64::MAX, inode, size: bytes.len() as u64, modified: (0, 0), owner: u32::MAX };
        if let Some(known) = self.known(identity) {
            return Ok(known);
        }
        let file = ElfFile::read(Box::new(bytes))?;
        Ok(self.add(identity, Origin { pid: 0, path: PathBuf::new() }, &file, true))
    }

    /// The function at an address of a file. For a return address, give the address before it: a call may be the last instruction of a function.
    pub fn resolve(&mut self, object: ObjectId, svma: u64) -> Name<'_> {
        self.take_answers();
        self.use_symbols(object);
        let object = &mut self.objects[object.0 as usize];
        let Some(symbols) = object.symbols.as_mut() else { return Name::Unknown };
        let unnamed = if object.question == Question::Asked && !symbols.complete { Name::NotYet } else { Name::Unknown };
        match symbols.at(svma) {
            Some(found) => {
                self.footprint += found.grown;
                Name::Symbol { name: found.name, offset: found.offset }
            }
            None => unnamed,
        }
    }

    /// The functions at an address, as the compiler's debug data say: the innermost inlined one first, last the one whose code it is. Empty where there
    /// are no such data. Reads them at the first call for a file, which takes from milliseconds to seconds.
    pub fn lines(&mut self, object: ObjectId, svma: u64) -> &[InlinedFrame] {
        self.take_answers();
        self.use_lines(object);
        let object = &mut self.objects[object.0 as usize];
        let Some(lines) = object.lines.as_mut() else { return &[] };
        let found = lines.at(svma);
        self.footprint += found.grown;
        found.frames
    }

    /// debuginfod's answers are still to come.
    pub fn is_waiting(&self) -> bool {
        self.options.debuginfod.as_ref().is_some_and(Debuginfod::is_waiting)
    }

    /// Waits for all answers, but not beyond a moment.
    pub fn wait(&mut self, until: Instant) {
        while let Some(answer) = self.options.debuginfod.as_mut().and_then(|debuginfod| debuginfod.wait(until)) {
            self.answered(answer);
        }
    }

    /// Memory of symbols and lines, in bytes.
    pub fn footprint(&self) -> usize {
        self.footprint
    }

    fn add(&mut self, identity: Identity, origin: Origin, file: &ElfFile, stays: bool) -> ObjectId {
        let id = ObjectId(self.objects.len() as u32);
        let symbols = Symbols::read(&mut self.files, file, &origin, None);
        let mut object = Object::new(identity, origin, file.build_id(), stays);
        object.symbols = Some(symbols);
        self.footprint += object.footprint();
        if let Some(build_id) = object.build_id {
            self.by_build_id.insert((build_id, identity.owner), id);
        }
        self.objects.push(object);
        self.by_identity.insert(identity, id);
        if !stays && !self.is_complete(id) {
            self.ask(id);
        }
        self.give_up_but(id);
        id
    }

    fn is_complete(&self, object: ObjectId) -> bool {
        self.objects[object.0 as usize].symbols.as_ref().is_some_and(|symbols| symbols.complete)
    }

    /// Symbols that were given up are read again.
    fn use_symbols(&mut self, id: ObjectId) {
        self.uses += 1;
        let object = &mut self.objects[id.0 as usize];
        object.last_use = self.uses;
        if object.symbols.is_none() {
            object.read_symbols(&mut self.files);
            self.footprint += object.symbols.as_ref().map_or(0, Symbols::footprint);
            self.give_up_but(id);
        }
    }

    fn use_lines(&mut self, id: ObjectId) {
        self.uses += 1;
        let object = &mut self.objects[id.0 as usize];
        object.last_use = self.uses;
        self.footprint -= object.lines.as_mut().map_or(0, KnownLines::forget);
        if object.lines.is_none() {
            let lines = KnownLines::read(&mut self.files, object);
            let is_empty = lines.is_empty();
            self.footprint += lines.footprint();
            object.lines = Some(lines);
            if is_empty {
                self.ask(id);
            }
            self.give_up_but(id);
        }
    }

    /// Once for each file.
    fn ask(&mut self, id: ObjectId) {
        let object = &mut self.objects[id.0 as usize];
        if let (Question::Never, Some(build_id), Some(debuginfod)) = (object.question, object.build_id, &mut self.options.debuginfod)
            && debuginfod.ask(build_id)
        {
            object.question = Question::Asked;
        }
    }

    fn take_answers(&mut self) {
        while let Some(answer) = self.options.debuginfod.as_mut().and_then(Debuginfod::answer) {
            self.answered(answer);
        }
    }

    fn answered(&mut self, (build_id, path): Answer) {
        for object in self.objects.iter_mut().filter(|object| object.build_id == Some(build_id)) {
            object.question = Question::Answered;
            if path.is_none() {
                continue;
            }
            self.footprint -= object.footprint();
            object.fetched.clone_from(&path);
            object.give_up();
            object.read_symbols(&mut self.files);
            self.footprint += object.footprint();
        }
    }

    /// Keeps within the bound, but what is in use stays.
    fn give_up_but(&mut self, used: ObjectId) {
        while self.footprint > self.options.memory_max {
            let others = self.objects.iter_mut().enumerate().filter(|(at, object)| *at != used.0 as usize && object.footprint() > 0);
            let Some((_, oldest)) = others.min_by_key(|(_, object)| object.last_use) else { return };
            self.footprint -= oldest.footprint();
            oldest.give_up();
        }
    }
}

#[cfg(test)]
mod tests;
