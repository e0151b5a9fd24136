//! Files that others chose, opened so that no file system keeps rtrace: here where theirs answers by itself, otherwise by the process that reads.

use super::ask::{Answer, Ask, BYTES_MAX, Wish};
use super::helper::{self, Helper, NoAnswer, Reply};
use super::serve;
use crate::kernel::mounts;
use crate::kernel::objects::{self, Mapped, ObjectError, ObjectFile, Reach};
use crate::stack::library::Unopened;
use crate::stack::symbols::{Files, Identity, ReadAt, Want};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Opens them. Clones have one process that reads between them.
#[derive(Clone, Debug, Default)]
pub struct Guarded {
    helper: Arc<Mutex<Helper>>,
}

/// An open file, and which it is.
pub type Found = (Identity, Arc<dyn ReadAt + Sync>);

impl Guarded {
    /// Starts the process that reads before it is needed, so that it can be left out of a trace; its number.
    pub fn start_ahead(&self) -> Option<i32> {
        self.lock().start()
    }

    /// The file that is behind a mapping ([`objects::open_mapped`]).
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn mapped(&self, mapped: &Mapped<'_>) -> Result<Found, Unopened> {
        let is_free = !helper::is_there();
        if is_free || mounts::is_local_device(mapped.device, mapped.pid) {
            match objects::open_mapped(mapped, if is_free { Reach::Everywhere } else { Reach::Local }) {
                Ok(file) => return Ok((file.identity(), Arc::new(file))),
                Err(ObjectError::Elsewhere) => {}
                Err(_) => return Err(Unopened::Gone),
            }
        }
        self.elsewhere(Ask::mapped(mapped))
    }

    /// What a process's just-in-time compiler writes: see [`objects::perf_map_path`].
    pub fn perf_map(&self, pid: i32) -> Option<Box<dyn ReadAt>> {
        self.own(pid, &objects::perf_map_path(pid)?)
    }

    /// The same of what it has mapped: see [`objects::jitdump_path`].
    pub fn jitdump(&self, pid: i32, path: &[u8]) -> Option<Box<dyn ReadAt>> {
        self.own(pid, &objects::jitdump_path(path)?)
    }

    /// Files that were wanted, and are on file systems that did not answer.
    pub fn unanswered(&self) -> Vec<Vec<u8>> {
        self.lock().unanswered()
    }

    fn at(&self, path: &Path, seen_by: Option<i32>) -> Option<Found> {
        match objects::open_at(path, seen_by, reach()) {
            Ok(file) => Some((file.identity(), Arc::new(file))),
            Err(ObjectError::Elsewhere) => self.elsewhere(Ask::Path { path: bytes(path), seen_by }).ok(),
            Err(_) => None,
        }
    }

    fn own(&self, pid: i32, path: &Path) -> Option<Box<dyn ReadAt>> {
        match objects::open_own(pid, path, reach()) {
            Ok(file) => return Some(file.growing()),
            Err(ObjectError::Elsewhere) => {}
            Err(_) => return None,
        }
        let ask = Ask::Own { path: bytes(path), pid };
        match self.open(&ask).ok()? {
            Here::Local(file) => Some(file.growing()),
            Here::Elsewhere(_) => Some(Box::new(Remote { helper: self.clone(), ask, identity: None })),
        }
    }

    fn elsewhere(&self, ask: Ask) -> Result<Found, Unopened> {
        match self.open(&ask)? {
            Here::Local(file) => Ok((file.identity(), Arc::new(file))),
            Here::Elsewhere(identity) => Ok((identity, Arc::new(Remote { helper: self.clone(), ask, identity: Some(identity) }))),
        }
    }

    fn open(&self, ask: &Ask) -> Result<Here, Unopened> {
        let mut helper = self.lock();
        if helper.is_in_vain(ask) {
            return serve::open(ask).map(Here::Local).ok_or(Unopened::Gone);
        }
        match helper.ask(ask, Wish::Open) {
            Ok(Reply::File(Answer::Local(identity), file)) => Ok(Here::Local(ObjectFile::opened(File::from(file), identity))),
            Ok(Reply::Answer(Answer::Opened(identity), _)) => Ok(Here::Elsewhere(identity)),
            Ok(_) => Err(Unopened::Gone),
            Err(NoAnswer) => Err(Unopened::Unanswered),
        }
    }

    /// A thread that panicked while it asked may have left an answer unread: then the next is not understood, and another process is asked.
    fn lock(&self) -> MutexGuard<'_, Helper> {
        self.helper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files for Guarded {
    fn find(&mut self, want: Want<'_>) -> Option<Box<dyn ReadAt>> {
        let (_, file) = match want {
            Want::Again { identity, origin } => {
                let mut files = [Some(origin.pid), None].into_iter().filter_map(|view| self.at(&origin.path, view));
                files.find(|(found, _)| *found == identity)?
            }
            Want::Path { path, seen_by } => self.at(path, seen_by)?,
        };
        Some(Box::new(Shared(file)))
    }
}

/// Where a file turned out to be.
enum Here {
    Local(ObjectFile),
    Elsewhere(Identity),
}

/// Where nobody can read for this process, it reads everything itself: tests, and programs that use this as a library.
fn reach() -> Reach {
    if helper::is_there() { Reach::Local } else { Reach::Everywhere }
}

fn bytes(path: &Path) -> Vec<u8> {
    PathBuf::from(path).into_os_string().into_encoded_bytes()
}

struct Shared(Arc<dyn ReadAt + Sync>);

impl ReadAt for Shared {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, into)
    }
}

/// A file that the other process reads.
struct Remote {
    helper: Guarded,
    ask: Ask,
    /// `None` for one that is written on.
    identity: Option<Identity>,
}

impl ReadAt for Remote {
    fn size(&self) -> u64 {
        let Some(identity) = self.identity else {
            let answer = self.helper.lock().ask(&self.ask, Wish::Size);
            return if let Ok(Reply::Answer(Answer::Size(size), _)) = answer { size } else { 0 };
        };
        identity.size
    }

    /// # Errors
    /// `TimedOut` where the file system does not answer.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        for (number, part) in into.chunks_mut(BYTES_MAX).enumerate() {
            let offset = offset.checked_add((number * BYTES_MAX) as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
            let wish = Wish::Read { identity: self.identity, offset, bytes: part.len() };
            match self.helper.lock().ask(&self.ask, wish) {
                Ok(Reply::Answer(Answer::Read, bytes)) if bytes.len() == part.len() => part.copy_from_slice(&bytes),
                Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(NoAnswer) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        Ok(())
    }
}
