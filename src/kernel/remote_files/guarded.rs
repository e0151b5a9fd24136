//! Opens the files of traced processes so that no file system blocks rtrace: files on local file systems in this
//! process, others through the reader.

use super::protocol::{BYTES_MAX, FileRef, Operation, Response};
use super::reader::{self, NoResponse, Reader, Reply};
use super::serve;
use crate::kernel::mounts;
use crate::kernel::objects::{self, Mapped, ObjectError, ObjectFile, Reach};
use crate::stack::library::Unopened;
use crate::stack::symbols::{Files, Identity, ReadAt, Want};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Opens files on local and remote file systems. Clones share one reader.
#[derive(Clone, Debug, Default)]
pub struct Guarded {
    reader: Arc<Mutex<Reader>>,
}

/// An open file and its identity.
pub type OpenFile = (Identity, Arc<dyn ReadAt + Sync>);

impl Guarded {
    /// Starts the reader before it is needed, so that the trace can exclude it. Returns its pid.
    pub fn start_ahead(&self) -> Option<i32> {
        self.lock().start()
    }

    /// Opens the file of a mapping ([`objects::open_mapped`]).
    ///
    /// # Errors
    /// Fails if the file no longer exists, was replaced or may not be read, or its file system does not answer.
    pub fn mapped(&self, mapped: &Mapped<'_>) -> Result<OpenFile, Unopened> {
        let is_without_reader = !reader::is_available();
        if is_without_reader || mounts::is_local_device(mapped.device, mapped.pid) {
            match objects::open_mapped(mapped, if is_without_reader { Reach::Everywhere } else { Reach::Local }) {
                Ok(file) => return Ok((file.identity(), Arc::new(file))),
                Err(ObjectError::MaybeRemote) => {}
                Err(_) => return Err(Unopened::Gone),
            }
        }
        self.through_reader(FileRef::mapped(mapped))
    }

    /// Opens the file of names that a process's just-in-time compiler writes: see [`objects::perf_map_path`].
    pub fn perf_map(&self, pid: i32) -> Option<Box<dyn ReadAt>> {
        self.own(pid, &objects::perf_map_path(pid)?)
    }

    /// Opens the dump that a process's just-in-time compiler writes: see [`objects::jitdump_path`].
    pub fn jitdump(&self, pid: i32, path: &[u8]) -> Option<Box<dyn ReadAt>> {
        self.own(pid, &objects::jitdump_path(path)?)
    }

    /// Returns the requested files whose file systems did not answer.
    pub fn unanswered(&self) -> Vec<Vec<u8>> {
        self.lock().unanswered()
    }

    /// Opens the file at a path in a process's mount namespace, or in rtrace's own.
    pub fn at(&self, path: &Path, seen_by: Option<i32>) -> Option<OpenFile> {
        match objects::open_at(path, seen_by, reach()) {
            Ok(file) => Some((file.identity(), Arc::new(file))),
            Err(ObjectError::MaybeRemote) => self.through_reader(FileRef::Path { path: bytes(path), seen_by }).ok(),
            Err(_) => None,
        }
    }

    fn own(&self, pid: i32, path: &Path) -> Option<Box<dyn ReadAt>> {
        match objects::open_own(pid, path, reach()) {
            Ok(file) => return Some(file.growing()),
            Err(ObjectError::MaybeRemote) => {}
            Err(_) => return None,
        }
        let file = FileRef::Own { path: bytes(path), pid };
        match self.open(&file).ok()? {
            Access::Local(file) => Some(file.growing()),
            Access::ThroughReader(_) => Some(Box::new(Remote { files: self.clone(), file, identity: None })),
        }
    }

    fn through_reader(&self, file: FileRef) -> Result<OpenFile, Unopened> {
        match self.open(&file)? {
            Access::Local(file) => Ok((file.identity(), Arc::new(file))),
            Access::ThroughReader(identity) => Ok((identity, Arc::new(Remote { files: self.clone(), file, identity: Some(identity) }))),
        }
    }

    fn open(&self, file: &FileRef) -> Result<Access, Unopened> {
        let mut reader = self.lock();
        if reader.cannot_start(file) {
            return serve::open(file).map(Access::Local).ok_or(Unopened::Gone);
        }
        match reader.request(file, Operation::Open) {
            Ok(Reply::File(Response::Local(identity), file)) => Ok(Access::Local(ObjectFile::opened(File::from(file), identity))),
            Ok(Reply::Bytes(Response::Opened(identity), _)) => Ok(Access::ThroughReader(identity)),
            Ok(_) => Err(Unopened::Gone),
            Err(NoResponse) => Err(Unopened::Unanswered),
        }
    }

    /// Locks the reader. A thread that panicked during a request may have left a response unread. Then the next
    /// response does not fit the request, and another reader is started.
    fn lock(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
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
        Some(Box::new(SharedFile(file)))
    }
}

/// A file that is open in this process or in the reader.
enum Access {
    Local(ObjectFile),
    ThroughReader(Identity),
}

/// Returns the file systems that this process accesses itself. Without a reader, in tests and in programs that use this
/// crate as a library, these are all.
fn reach() -> Reach {
    if reader::is_available() { Reach::Local } else { Reach::Everywhere }
}

fn bytes(path: &Path) -> Vec<u8> {
    PathBuf::from(path).into_os_string().into_encoded_bytes()
}

/// An open file as a `Box<dyn ReadAt>`.
struct SharedFile(Arc<dyn ReadAt + Sync>);

impl ReadAt for SharedFile {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, into)
    }
}

/// A file that the reader has open.
struct Remote {
    files: Guarded,
    file: FileRef,
    /// `None` for a file that a process appends to.
    identity: Option<Identity>,
}

impl ReadAt for Remote {
    fn size(&self) -> u64 {
        let Some(identity) = self.identity else {
            let reply = self.files.lock().request(&self.file, Operation::Size);
            return if let Ok(Reply::Bytes(Response::Size(size), _)) = reply { size } else { 0 };
        };
        identity.size
    }

    /// # Errors
    /// Fails with `TimedOut` if the file system does not answer.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        for (number, part) in into.chunks_mut(BYTES_MAX).enumerate() {
            let offset = offset.checked_add((number * BYTES_MAX) as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
            let operation = Operation::Read { identity: self.identity, offset, bytes: part.len() };
            match self.files.lock().request(&self.file, operation) {
                Ok(Reply::Bytes(Response::Read, bytes)) if bytes.len() == part.len() => part.copy_from_slice(&bytes),
                Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(NoResponse) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        Ok(())
    }
}
