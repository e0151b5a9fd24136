//! The just-in-time compiled functions of one process, from its `perf-PID.map` and `jit-PID.dump`, which are read while
//! they grow.

use super::jitdump::Jitdump;
use super::perf_map::PerfMap;
use super::read_at::{self, ReadAt};
use super::table::SymbolAt;
use std::time::{Duration, Instant};

/// The just-in-time compiled functions of one process.
#[derive(Default)]
pub struct Jit {
    map: Option<Growing<PerfMap>>,
    dump: Option<Growing<Jitdump>>,
    last_read: Option<Instant>,
}

/// A file that grows, and the names that were read from it.
struct Growing<T> {
    file: Box<dyn ReadAt>,
    names: T,
    /// The number of bytes that were read.
    read: u64,
}

/// The time after which the files are read again even if all addresses have names, because a function may be replaced.
pub const READ_INTERVAL: Duration = Duration::from_millis(100);
/// The greatest number of bytes of a map that are read at a time.
const READ_MAX: u64 = 16 << 20;
/// The greatest number of bytes of a map that are read in all.
const MAP_MAX: u64 = 256 << 20;

impl Jit {
    /// Sets the dump that the process has mapped. [`ReadAt::size`] of `file` is the file's present size.
    pub fn set_dump(&mut self, file: Box<dyn ReadAt>) {
        self.dump = Some(Growing { file, names: Jitdump::default(), read: 0 });
        self.last_read = None;
    }

    /// Returns the function that was compiled to this address last. The dump takes precedence over the map: it is the
    /// newer format, and records when code is moved.
    ///
    /// As long as there is no map, `find_map` is called after each `pause`, as the files are read. [`ReadAt::size`] of
    /// its file is the file's present size.
    pub fn at(
        &mut self,
        address: u64,
        (now, pause): (Instant, Duration),
        find_map: impl FnOnce() -> Option<Box<dyn ReadAt>>,
    ) -> Option<SymbolAt<'_>> {
        let is_due = self.last_read.is_none_or(|last| now.duration_since(last) >= pause);
        if is_due && self.map.is_none() {
            self.map = find_map().map(|file| Growing { file, names: PerfMap::default(), read: 0 });
        }
        if is_due || self.function_at(address).is_none() {
            self.read_on();
            self.last_read = Some(now);
        }
        self.function_at(address)
    }

    fn function_at(&self, address: u64) -> Option<SymbolAt<'_>> {
        let dump = self.dump.as_ref().and_then(|dump| dump.names.functions().at(address));
        dump.or_else(|| self.map.as_ref()?.names.functions().at(address))
    }

    /// Reads the bytes that were appended to both files.
    fn read_on(&mut self) {
        if let Some(map) = &mut self.map {
            map.read_on();
        }
        if let Some(dump) = &mut self.dump
            && dump.file.size() > dump.read
        {
            dump.read = dump.file.size();
            // The functions before a damaged record are kept. The records behind it cannot be read.
            let _ = dump.names.read_on(&*dump.file);
        }
    }
}

impl Growing<PerfMap> {
    fn read_on(&mut self) {
        let size = self.file.size();
        if size < self.read {
            (self.names, self.read) = (PerfMap::default(), 0);
        }
        let more = (size - self.read).min(READ_MAX).min(MAP_MAX.saturating_sub(self.read));
        if more > 0
            && let Ok(text) = read_at::range(&*self.file, self.read, more, READ_MAX)
        {
            self.names.append(&text);
            self.read += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};

    /// A file that a test appends to.
    #[derive(Clone, Default)]
    struct GrowingFile(Arc<Mutex<Vec<u8>>>);

    impl ReadAt for GrowingFile {
        fn size(&self) -> u64 {
            self.0.lock().unwrap().len() as u64
        }

        fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
            self.0.lock().unwrap().read_at(offset, into)
        }
    }

    #[test]
    fn a_map_is_read_when_it_appears_grows_and_is_rewritten() {
        let file = GrowingFile::default();
        let mut jit = Jit::default();
        let mut now = Instant::now();
        let find = || Some(Box::new(file.clone()) as Box<dyn ReadAt>);
        let name = |jit: &mut Jit, address, now| {
            jit.at(address, (now, READ_INTERVAL), find).map(|found| String::from_utf8_lossy(found.name).into_owned())
        };
        assert!(jit.at(0x1000, (now, READ_INTERVAL), || None).is_none());
        file.0.lock().unwrap().extend(b"1000 10 first\n10");
        assert_eq!(name(&mut jit, 0x1000, now), None, "find_map was called just before");
        now += READ_INTERVAL;
        assert_eq!(name(&mut jit, 0x1000, now).unwrap(), "first");
        file.0.lock().unwrap().extend(b"00 10 second\n2000 10 third\n");
        assert_eq!(name(&mut jit, 0x1000, now).unwrap(), "first", "the map was read just before");
        assert_eq!(name(&mut jit, 0x2000, now).unwrap(), "third", "an address without a name causes a read");
        assert_eq!(name(&mut jit, 0x1000, now).unwrap(), "second");
        *file.0.lock().unwrap() = b"1000 10 anew\n".to_vec();
        now += READ_INTERVAL;
        assert_eq!((name(&mut jit, 0x1000, now), name(&mut jit, 0x2000, now)), (Some("anew".into()), None));
    }
}
