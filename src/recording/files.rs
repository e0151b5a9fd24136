//! The files of the traced machine that a replay needs for stacks, as far as unwinding and naming read them.
//!
//! The recorder opens each file that a process maps as code, reads its unwind tables and symbols as a live trace would,
//! and keeps the bytes that were read: a replay then reads the same bytes. Separate debug files that the symbols come
//! from are kept in the same way.

use super::jit::{JitFile, RecordedJits};
use crate::event::FileId;
use crate::stack::image::Image;
use crate::stack::library::{MappedFile, Open, Opened, Unopened};
use crate::stack::naming::object;
use crate::stack::symbols::{Files, Identity, Options, Origin, ReadAt, Resolver, Want};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a mapping maps: a file, or the kernel's vdso, of which 32-bit programs have another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mapped {
    /// A file.
    File(FileId),
    /// The vdso above or below 4 GiB.
    Vdso {
        /// It is above.
        high: bool,
    },
}

/// How a file was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// A process had mapped it.
    Mapping {
        /// What was mapped.
        mapped: Mapped,
        /// The identity of the file with its contents, and a process and the path by which it was found; none for the
        /// vdso.
        file: Option<(Identity, i32, Vec<u8>)>,
    },
    /// A just-in-time compiler of this process writes it. A fact has what was appended since the one before.
    Jit {
        /// The process.
        pid: i32,
        /// Which of its files it is.
        kind: JitFile,
    },
    /// It was looked for at this path, because it may have the symbols of another file.
    Path(Vec<u8>),
}

/// The bytes of a file that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The size of the file in bytes.
    pub size: u64,
    /// The parts that were read, in the order of their offsets.
    pub parts: Vec<Part>,
}

/// Consecutive bytes of a file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The offset in the file.
    pub at: u64,
    /// The bytes there.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {}", self.bytes.len(), self.at)
    }
}

/// A file of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFile {
    /// How it was found.
    pub found: Found,
    /// What was read of it.
    pub content: Content,
}

/// Reads the files that processes map, for the recorder.
pub struct Collector<F> {
    open: Box<dyn Open + Send>,
    /// Whether the debug information for source lines is kept as well.
    has_lines: bool,
    resolver: Resolver<Logging<F>>,
    log: Log,
    by_identity: ByIdentity,
    seen: FxHashSet<Mapped>,
}

/// How the mapped files were found that are read again, for their source lines.
type ByIdentity = Arc<Mutex<FxHashMap<Identity, Found>>>;

/// What was read, by the way the file was found.
type Log = Arc<Mutex<Vec<(Found, u64, Reads)>>>;

/// The bytes that were read, by their offset.
type Reads = Arc<Mutex<BTreeMap<u64, Vec<u8>>>>;

impl<F> fmt::Debug for Collector<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("seen", &self.seen.len()).finish_non_exhaustive()
    }
}

impl<F: Files> Collector<F> {
    /// Creates a collector. `open` opens mapped files, and `files` those with their symbols. `has_lines` says that the
    /// debug information for source lines is read as well.
    pub fn new(open: Box<dyn Open + Send>, files: F, has_lines: bool) -> Collector<F> {
        let log = Log::default();
        let by_identity = ByIdentity::default();
        let logging = Logging { files, log: Arc::clone(&log), by_identity: Arc::clone(&by_identity) };
        Collector { open, has_lines, resolver: Resolver::new(logging, Options::default()), log, by_identity, seen: FxHashSet::default() }
    }

    /// Reads a file that a process has mapped as code, unless it was read before. Returns it, and the files with its
    /// symbols.
    pub fn read(&mut self, file: &MappedFile) -> Vec<SeenFile> {
        let Some(mapped) = Mapped::of(file).filter(|mapped| self.seen.insert(*mapped)) else { return Vec::new() };
        let Ok(opened) = self.open.open(file) else { return Vec::new() };
        let of_file = |(identity, origin): &(Identity, Origin)| (*identity, origin.pid, origin.path.as_os_str().as_bytes().to_vec());
        let found = Found::Mapping { mapped, file: opened.file.as_ref().map(of_file) };
        if let Some((identity, _)) = &opened.file {
            lock(&self.by_identity).insert(*identity, found.clone());
        }
        let bytes = Arc::new(logged(opened.bytes, found, &self.log));
        let opened = Opened { file: opened.file, bytes };
        // What is wrong with the file is found again by the replay.
        let _ = Image::read(Box::new(opened.clone()));
        if let Some(object) = object(&mut self.resolver, &opened) {
            self.resolver.resolve(object, 0);
            if self.has_lines {
                self.resolver.lines(object, 0);
            }
        }
        let mut files: Vec<(Found, u64, BTreeMap<u64, Vec<u8>>)> = Vec::new();
        for (found, size, reads) in std::mem::take(&mut *lock(&self.log)) {
            let reads = std::mem::take(&mut *lock(&reads));
            match files.iter_mut().find(|(other, ..)| *other == found) {
                Some((.., known)) => reads.into_iter().for_each(|(at, bytes)| keep(known, at, &bytes)),
                None => files.push((found, size, reads)),
            }
        }
        let content = |size, reads: BTreeMap<u64, Vec<u8>>| Content {
            size,
            parts: reads.into_iter().map(|(at, bytes)| Part { at, bytes }).collect(),
        };
        files.into_iter().map(|(found, size, reads)| SeenFile { found, content: content(size, reads) }).collect()
    }
}

impl Mapped {
    /// Returns what a mapping maps; `None` for memory that is from no file.
    fn of(file: &MappedFile) -> Option<Mapped> {
        match &*file.path {
            b"[vdso]" => Some(Mapped::Vdso { high: file.addresses.0 > u64::from(u32::MAX) }),
            _ => (file.file.inode != 0).then_some(Mapped::File(file.file)),
        }
    }
}

/// Keeps the bytes at an offset, unless more of them are known.
fn keep(known: &mut BTreeMap<u64, Vec<u8>>, at: u64, bytes: &[u8]) {
    let known = known.entry(at).or_default();
    if known.len() < bytes.len() {
        *known = bytes.to_vec();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wraps a file so that what is read of it is kept in the log.
fn logged(file: Arc<dyn ReadAt + Sync>, found: Found, log: &Log) -> LoggedFile {
    let reads = Reads::default();
    lock(log).push((found, file.size(), Arc::clone(&reads)));
    LoggedFile { file, reads }
}

/// A file whose reads are kept.
struct LoggedFile {
    file: Arc<dyn ReadAt + Sync>,
    reads: Reads,
}

impl ReadAt for LoggedFile {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, into)?;
        keep(&mut lock(&self.reads), offset, into);
        Ok(())
    }
}

/// Opens files, and keeps what is read of them.
struct Logging<F> {
    files: F,
    log: Log,
    by_identity: ByIdentity,
}

impl<F: Files> Files for Logging<F> {
    fn find(&mut self, want: Want<'_>) -> Option<Box<dyn ReadAt>> {
        let file = self.files.find(want)?;
        let found = match want {
            Want::Again { identity, .. } => lock(&self.by_identity).get(&identity).cloned(),
            Want::Path { path, .. } => Some(Found::Path(path.as_os_str().as_bytes().to_vec())),
        };
        let Some(found) = found else { return Some(file) };
        Some(Box::new(logged(Arc::new(Locked(Mutex::new(file))), found, &self.log)))
    }
}

/// A file that several owners read.
struct Locked(Mutex<Box<dyn ReadAt>>);

impl ReadAt for Locked {
    fn size(&self) -> u64 {
        lock(&self.0).size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        lock(&self.0).read_at(offset, into)
    }
}

/// The files of a recording, for a replay. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct RecordedFiles(Arc<Mutex<Known>>);

/// The identity of a mapped file, and where it was found, unless it is the vdso; and its bytes.
type MappedFileOf = (Option<(Identity, Origin)>, Arc<RecordedFile>);

#[derive(Debug, Default)]
struct Known {
    mapped: FxHashMap<Mapped, MappedFileOf>,
    by_identity: FxHashMap<Identity, Arc<RecordedFile>>,
    by_path: FxHashMap<PathBuf, Arc<RecordedFile>>,
    jits: RecordedJits,
}

impl RecordedFiles {
    /// Adds a file. The first one of several that were found in the same way counts.
    pub fn add(&self, SeenFile { found, content }: SeenFile) {
        let mut known = lock(&self.0);
        if let Found::Jit { pid, kind } = found {
            return known.jits.add(pid, kind, content.parts);
        }
        let path = |bytes: Vec<u8>| PathBuf::from(std::ffi::OsString::from_vec(bytes));
        let recorded =
            Arc::new(RecordedFile { size: content.size, parts: content.parts.into_iter().map(|part| (part.at, part.bytes)).collect() });
        match found {
            Found::Mapping { mapped, file } => {
                let file = file.map(|(identity, pid, origin)| (identity, Origin { pid, path: path(origin) }));
                if let Some((identity, _)) = &file {
                    known.by_identity.entry(*identity).or_insert_with(|| Arc::clone(&recorded));
                }
                known.mapped.entry(mapped).or_insert((file, recorded));
            }
            Found::Jit { .. } => {}
            Found::Path(bytes) => _ = known.by_path.entry(path(bytes)).or_insert(recorded),
        }
    }
}

impl RecordedFiles {
    /// Returns a file that a just-in-time compiler of this process wrote, as far as the replay has come.
    pub fn jit(&self, pid: i32, kind: JitFile) -> Option<Box<dyn ReadAt>> {
        lock(&self.0).jits.get(pid, kind)
    }
}

impl Open for RecordedFiles {
    fn open(&mut self, file: &MappedFile) -> Result<Opened, Unopened> {
        let known = lock(&self.0);
        let (file, bytes) = Mapped::of(file).and_then(|mapped| known.mapped.get(&mapped)).ok_or(Unopened::Gone)?;
        Ok(Opened { file: file.clone(), bytes: Arc::clone(bytes) as Arc<dyn ReadAt + Sync> })
    }
}

impl Files for RecordedFiles {
    fn find(&mut self, want: Want<'_>) -> Option<Box<dyn ReadAt>> {
        let known = lock(&self.0);
        let file = match want {
            Want::Again { identity, .. } => known.by_identity.get(&identity),
            Want::Path { path, .. } => known.by_path.get(path),
        };
        file.map(|file| Box::new(Shared(Arc::clone(file))) as Box<dyn ReadAt>)
    }
}

/// The bytes of a file that the recorder read, by their offset.
#[derive(Debug)]
struct RecordedFile {
    size: u64,
    parts: BTreeMap<u64, Vec<u8>>,
}

impl ReadAt for RecordedFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        // Parts may overlap, and an earlier one may be longer.
        let within = |(at, bytes): (&u64, &'_ Vec<u8>)| {
            let begin = usize::try_from(offset - at).ok()?;
            bytes.get(begin..begin.checked_add(into.len())?).map(<[u8]>::to_vec)
        };
        let found = self.parts.range(..=offset).rev().find_map(within);
        into.copy_from_slice(&found.ok_or_else(|| io::Error::other("the recording does not have these bytes"))?);
        Ok(())
    }
}

/// A recorded file as a `Box<dyn ReadAt>`.
struct Shared(Arc<RecordedFile>);

impl ReadAt for Shared {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_within_recorded_parts_are_answered_and_others_are_not() {
        let parts = [(0, b"0123456789".to_vec()), (4, b"45".to_vec()), (20, b"ab".to_vec())];
        let file = RecordedFile { size: 30, parts: parts.into_iter().collect() };
        let read = |at: u64, size: usize| {
            let mut bytes = vec![0; size];
            file.read_at(at, &mut bytes).ok().map(|()| bytes)
        };
        assert_eq!(read(4, 6).as_deref(), Some(&b"456789"[..]), "the part at 4 is too short, the one at 0 is not");
        assert_eq!(read(20, 2).as_deref(), Some(&b"ab"[..]));
        assert_eq!((read(8, 4), read(15, 1), read(u64::MAX, 1)), (None, None, None));
    }
}
