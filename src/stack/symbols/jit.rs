//! Code that one process compiled while it ran: its `perf-PID.map` and `jit-PID.dump`, read on as they grow.

use super::jitdump::Jitdump;
use super::perf_map::PerfMap;
use super::read_at::{self, ReadAt};
use super::table::Found;
use std::time::{Duration, Instant};

/// One process's.
#[derive(Default)]
pub struct Jit {
    map: Option<Growing<PerfMap>>,
    dump: Option<Growing<Jitdump>>,
    looked: Option<Instant>,
}

struct Growing<T> {
    file: Box<dyn ReadAt>,
    names: T,
    /// So much was read.
    read: u64,
}

/// Names may change under an address, so the files are looked at so often even if all addresses have names.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// At one look no more is read, in bytes; and of one map no more at all.
const READ_MAX: u64 = 16 << 20;
const MAP_MAX: u64 = 256 << 20;

impl Jit {
    /// A dump that the process has mapped. Its size is what it has grown to.
    pub fn set_dump(&mut self, file: Box<dyn ReadAt>) {
        self.dump = Some(Growing { file, names: Jitdump::default(), read: 0 });
        self.looked = None;
    }

    /// What was compiled to this address last. The dump goes before the map: it is the newer way, and says when code is moved.
    ///
    /// `find_map` is asked now and then as long as there is no map; the size of what it gives is what it has grown to.
    pub fn at(&mut self, address: u64, now: Instant, find_map: impl FnOnce() -> Option<Box<dyn ReadAt>>) -> Option<Found<'_>> {
        let is_late = self.looked.is_none_or(|looked| now.duration_since(looked) >= LOOK_EVERY);
        if is_late && self.map.is_none() {
            self.map = find_map().map(|file| Growing { file, names: PerfMap::default(), read: 0 });
        }
        if is_late || self.known(address).is_none() {
            self.look();
            self.looked = Some(now);
        }
        self.known(address)
    }

    /// Memory, in bytes, roughly.
    pub fn footprint(&self) -> usize {
        let map = self.map.as_ref().map_or(0, |map| map.names.made().footprint());
        map + self.dump.as_ref().map_or(0, |dump| dump.names.made().footprint())
    }

    fn known(&self, address: u64) -> Option<Found<'_>> {
        let dump = self.dump.as_ref().and_then(|dump| dump.names.made().at(address));
        dump.or_else(|| self.map.as_ref()?.names.made().at(address))
    }

    fn look(&mut self) {
        if let Some(map) = &mut self.map {
            map.look();
        }
        if let Some(dump) = &mut self.dump
            && dump.file.size() > dump.read
        {
            dump.read = dump.file.size();
            // What was read before a damaged record stays known; behind it nothing can be read.
            let _ = dump.names.read_on(&*dump.file);
        }
    }
}

impl Growing<PerfMap> {
    fn look(&mut self) {
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

    /// A file that a test writes on.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl ReadAt for Written {
        fn size(&self) -> u64 {
            self.0.lock().unwrap().len() as u64
        }

        fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
            self.0.lock().unwrap().read_at(offset, into)
        }
    }

    #[test]
    fn a_map_that_comes_grows_and_begins_anew() {
        let file = Written::default();
        let mut jit = Jit::default();
        let mut now = Instant::now();
        let find = || Some(Box::new(file.clone()) as Box<dyn ReadAt>);
        let name = |jit: &mut Jit, address, now| jit.at(address, now, find).map(|found| String::from_utf8_lossy(found.name).into_owned());
        assert!(jit.at(0x1000, now, || None).is_none());
        file.0.lock().unwrap().extend(b"1000 10 first\n10");
        assert_eq!(name(&mut jit, 0x1000, now), None, "just looked for it");
        now += LOOK_EVERY;
        assert_eq!(name(&mut jit, 0x1000, now).unwrap(), "first");
        file.0.lock().unwrap().extend(b"00 10 second\n2000 10 third\n");
        assert_eq!(name(&mut jit, 0x1000, now).unwrap(), "first", "just looked into it");
        assert_eq!(name(&mut jit, 0x2000, now).unwrap(), "third", "what has no name makes one look");
        assert_eq!(name(&mut jit, 0x1000, now).unwrap(), "second");
        *file.0.lock().unwrap() = b"1000 10 anew\n".to_vec();
        now += LOOK_EVERY;
        assert_eq!((name(&mut jit, 0x1000, now), name(&mut jit, 0x2000, now)), (Some("anew".into()), None));
        assert!(jit.footprint() > 0);
    }
}
