//! The files of names that just-in-time compilers write while a program runs: perf-PID.map and jit-PID.dump.
//!
//! The recorder reads what was appended to them before each round, so that a replay has a name when it shows the code's
//! first frames. Only processes that map code from no file, or a dump, have such files.

use super::files::{Content, Found, Part, SeenFile};
use crate::stack::library::MappedFile;
use crate::stack::naming::Fetch;
use crate::stack::symbols::{ReadAt, read_at};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a map is looked for that does not exist.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The most bytes of one file that are read at a time.
const READ_MAX: u64 = 16 << 20;

/// The most bytes of all files of a recording.
const TOTAL_MAX: u64 = 256 << 20;

/// The most processes whose files are read before one round. If there are more, they take turns.
const PROCESSES_MAX: usize = 64;

/// The kind of such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum JitFile {
    /// perf-PID.map
    Map,
    /// jit-PID.dump
    Dump,
}

/// Reads these files for the recorder.
pub struct JitReader {
    fetch: Box<dyn Fetch + Send>,
    processes: BTreeMap<i32, Process>,
    /// The process whose turn is next.
    next: i32,
    total: u64,
}

/// A process that may have a just-in-time compiler.
#[derive(Default)]
struct Process {
    looked: Option<Instant>,
    files: FxHashMap<JitFile, Growing>,
}

/// A file that grows, and the number of bytes that were read.
struct Growing {
    file: Box<dyn ReadAt>,
    read: u64,
}

impl JitReader {
    /// Creates a reader.
    pub fn new(fetch: Box<dyn Fetch + Send>) -> JitReader {
        JitReader { fetch, processes: BTreeMap::new(), next: 0, total: 0 }
    }

    /// Takes a mapping of code.
    pub fn mapped(&mut self, map: &MappedFile) {
        let is_dump = is_dump(&map.path);
        let is_of_kernel = matches!(&*map.path, b"[vdso]" | b"[vsyscall]" | b"[uprobes]");
        if is_dump || map.file.inode == 0 && !is_of_kernel || map.path.starts_with(b"/memfd:") {
            let process = self.processes.entry(map.pid).or_default();
            if is_dump
                && !process.files.contains_key(&JitFile::Dump)
                && let Some(file) = self.fetch.jitdump(map.pid, &map.path)
            {
                process.files.insert(JitFile::Dump, Growing { file, read: 0 });
            }
        }
    }

    /// Reads what the processes have written since the last call.
    pub fn read(&mut self, now: Instant) -> Vec<SeenFile> {
        let mut found = Vec::new();
        let turns: Vec<i32> = self.processes.range(self.next..).chain(self.processes.range(..self.next)).map(|(pid, _)| *pid).collect();
        for pid in turns.into_iter().take(PROCESSES_MAX) {
            self.next = pid.saturating_add(1);
            let Some(process) = self.processes.get_mut(&pid) else { continue };
            let is_due = process.looked.is_none_or(|last| now.duration_since(last) >= LOOK_INTERVAL);
            if is_due && !process.files.contains_key(&JitFile::Map) {
                process.looked = Some(now);
                process.files.extend(self.fetch.perf_map(pid).map(|file| (JitFile::Map, Growing { file, read: 0 })));
            }
            for (kind, growing) in &mut process.files {
                let room = TOTAL_MAX.saturating_sub(self.total);
                let part = growing.read_on(room);
                self.total += part.as_ref().map_or(0, |part| part.bytes.len() as u64);
                let content = |part: Part| Content { size: growing.read, parts: vec![part] };
                found.extend(part.map(content).map(|content| SeenFile { found: Found::Jit { pid, kind: *kind }, content }));
            }
        }
        found
    }

    /// Reads the last names of a process that ended or executes another program, and forgets it.
    pub fn ended(&mut self, pid: i32, now: Instant) -> Vec<SeenFile> {
        if !self.processes.contains_key(&pid) {
            return Vec::new();
        }
        self.next = pid;
        let found = self.read(now);
        self.processes.remove(&pid);
        found
    }
}

impl Growing {
    /// Returns the bytes that were appended, at most `room`. A file that became shorter is read anew.
    fn read_on(&mut self, room: u64) -> Option<Part> {
        let size = self.file.size();
        if size < self.read {
            self.read = 0;
        }
        let at = self.read;
        let more = (size - at).min(READ_MAX).min(room);
        let bytes = read_at::range(&*self.file, at, more, READ_MAX).ok().filter(|_| more > 0)?;
        self.read += more;
        Some(Part { at, bytes: bytes.to_vec() })
    }
}

/// Returns whether a path is that of a dump. [`crate::stack::library::Library`] recognizes the same ones.
fn is_dump(path: &[u8]) -> bool {
    path.ends_with(b".dump") && memchr::memmem::find(path, b"/jit-").is_some()
}

/// The files of a recording, by process, for a replay.
#[derive(Debug, Default)]
pub struct RecordedJits(FxHashMap<(i32, JitFile), RecordedJit>);

impl RecordedJits {
    /// Adds what was appended to a file. A part from the beginning is of another file, or of one that was written anew.
    pub fn add(&mut self, pid: i32, kind: JitFile, parts: Vec<Part>) {
        for part in parts {
            let jit = self.0.entry((pid, kind)).or_default();
            if part.at == 0 && jit.size() > 0 && kind == JitFile::Dump {
                *jit = RecordedJit::default();
            }
            let mut bytes = jit.lock();
            if part.at == 0 {
                bytes.clear();
            }
            if part.at == bytes.len() as u64 {
                bytes.extend(part.bytes);
            }
        }
    }

    /// Returns a file.
    pub fn get(&self, pid: i32, kind: JitFile) -> Option<Box<dyn ReadAt>> {
        Some(Box::new(self.0.get(&(pid, kind))?.clone()))
    }
}

/// A file as far as the replay has come. Clones share it.
#[derive(Clone, Debug, Default)]
struct RecordedJit(Arc<Mutex<Vec<u8>>>);

impl RecordedJit {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadAt for RecordedJit {
    fn size(&self) -> u64 {
        self.lock().len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.lock().read_at(offset, into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FileId;
    use crate::stack::naming::Fetch;

    /// The map of process 7, to which the test appends.
    #[derive(Clone, Default)]
    struct Map(RecordedJit);

    impl Fetch for Map {
        fn kernel(&mut self) -> io::Result<Vec<u8>> {
            Err(io::Error::other("there is none"))
        }

        fn perf_map(&mut self, pid: i32) -> Option<Box<dyn ReadAt>> {
            (pid == 7).then(|| Box::new(self.0.clone()) as Box<dyn ReadAt>)
        }

        fn jitdump(&mut self, _: i32, _: &[u8]) -> Option<Box<dyn ReadAt>> {
            None
        }
    }

    #[test]
    fn what_is_appended_to_a_map_is_recorded_once_and_read_again() {
        let map = Map::default();
        let mut reader = JitReader::new(Box::new(map.clone()));
        let mapped = |pid: i32, path: &[u8]| MappedFile { pid, addresses: (4096, 8192), file: FileId::default(), path: path.into() };
        reader.mapped(&mapped(7, b"[vdso]"));
        map.0.lock().extend(b"1000 10 one\n");
        let now = Instant::now();
        assert_eq!(reader.read(now), [], "the process maps no code without a file");
        reader.mapped(&mapped(7, b"//anon"));
        let mut recorded = RecordedJits::default();
        let mut replay = |files: Vec<SeenFile>| {
            for SeenFile { found, content } in files {
                let Found::Jit { pid, kind } = found else { panic!("{found:?}") };
                recorded.add(pid, kind, content.parts);
            }
            let file = recorded.get(7, JitFile::Map).unwrap();
            let mut bytes = vec![0; file.size() as usize];
            file.read_at(0, &mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(replay(reader.read(now)), "1000 10 one\n");
        assert_eq!(reader.read(now), []);
        map.0.lock().extend(b"2000 10 two\n");
        assert_eq!(replay(reader.ended(7, now)), "1000 10 one\n2000 10 two\n");
        map.0.lock().extend(b"3000 10 three\n");
        assert_eq!(reader.read(now), [], "the process has ended");
    }
}
