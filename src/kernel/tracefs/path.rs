//! Paths in tracefs, whether or not tracefs is mounted.

use crate::kernel::mounts;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The path of a file or directory of tracefs. It has the methods of [`Path`] and [`std::fs`] that its users need.
#[derive(Clone, Debug)]
pub struct TracePath {
    mount: TracefsMount,
    path: PathBuf,
}

/// The mount that a path is relative to.
#[derive(Clone, Debug)]
enum TracefsMount {
    /// tracefs is mounted: the path is an ordinary one, from the root directory on.
    Attached,
    /// A detached mount, which is at no place of the file system ([`detached`]).
    Detached(Arc<OwnedFd>),
    /// There is no tracefs, so no file exists.
    Absent,
}

/// Creates a detached mount of tracefs: see [`mounts::detached`]. The kernel has one tracefs for all mounts. Since
/// Linux 6.0, and in the stable series since then, a new mount keeps the mode and owner that earlier mounts have set
/// (commit 47311db8e8f3).
///
/// # Errors
/// Fails as [`mounts::detached`].
pub fn detached() -> io::Result<TracePath> {
    Ok(TracePath { mount: TracefsMount::Detached(Arc::new(mounts::detached("tracefs")?)), path: PathBuf::from(".") })
}

impl TracePath {
    /// Returns a path from the root directory on, for a tracefs that is mounted.
    pub fn mounted(path: impl Into<PathBuf>) -> TracePath {
        TracePath { mount: TracefsMount::Attached, path: path.into() }
    }

    /// Returns a path below which no file exists.
    pub fn absent() -> TracePath {
        TracePath { mount: TracefsMount::Absent, path: PathBuf::from(".") }
    }

    /// Whether the path is one that other programs can use too: tracefs is mounted at a place of the file system.
    pub fn is_mounted(&self) -> bool {
        matches!(self.mount, TracefsMount::Attached)
    }

    /// Returns the path of a file below this directory.
    pub fn join(&self, below: impl AsRef<Path>) -> TracePath {
        TracePath { mount: self.mount.clone(), path: self.path.join(below) }
    }

    /// Returns the path for messages. Without a mount point it begins with `tracefs/`.
    pub fn shown(&self) -> PathBuf {
        match self.mount {
            TracefsMount::Attached => self.path.clone(),
            TracefsMount::Detached(_) | TracefsMount::Absent => {
                Path::new("tracefs").join(self.path.strip_prefix(".").unwrap_or(&self.path))
            }
        }
    }

    /// Returns the directory descriptor and the path for `openat(2)` and similar calls.
    fn at(&self) -> io::Result<(BorrowedFd<'_>, &Path)> {
        match &self.mount {
            TracefsMount::Attached => Ok((CWD, &self.path)),
            TracefsMount::Detached(mount) => Ok((mount.as_fd(), &self.path)),
            TracefsMount::Absent => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Opens the file, close-on-exec.
    ///
    /// # Errors
    /// Fails as `openat(2)`.
    pub fn open(&self, flags: OFlags) -> io::Result<File> {
        let (directory, path) = self.at()?;
        Ok(rustix::fs::openat(directory, path, flags | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    /// Reads the whole file.
    ///
    /// # Errors
    /// Fails if the file cannot be opened or read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        // events/header_page returns nothing from the second read(2) on (show_header() in kernel/trace/trace_events.c).
        let mut bytes = Vec::with_capacity(8 << 10);
        self.open(OFlags::RDONLY)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads the whole file as text.
    ///
    /// # Errors
    /// Fails if the file cannot be opened or read, or is not UTF-8.
    pub fn read_to_string(&self) -> io::Result<String> {
        String::from_utf8(self.read()?).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Whether the file exists and can be found with the present rights (fstatat(2)).
    pub fn exists(&self) -> bool {
        self.kind().is_ok()
    }

    /// Whether the path is that of a directory that can be found with the present rights.
    pub fn is_dir(&self) -> bool {
        self.kind().is_ok_and(FileType::is_dir)
    }

    fn kind(&self) -> io::Result<FileType> {
        let (directory, path) = self.at()?;
        Ok(FileType::from_raw_mode(rustix::fs::statat(directory, path, AtFlags::empty())?.st_mode))
    }

    /// Returns the names of the directories in this directory, in the kernel's order. Names that are not UTF-8 are left
    /// out, because nobody can request them.
    ///
    /// # Errors
    /// Fails if the directory cannot be opened or read.
    pub fn directories(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::new(self.open(OFlags::RDONLY | OFlags::DIRECTORY)?)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let is_dir = match entry.file_type() {
                FileType::Unknown => self.join(name).is_dir(),
                kind => kind.is_dir(),
            };
            if is_dir && name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Creates the directory.
    ///
    /// # Errors
    /// Fails as `mkdirat(2)`.
    pub fn create_dir(&self) -> io::Result<()> {
        let (directory, path) = self.at()?;
        Ok(rustix::fs::mkdirat(directory, path, Mode::RWXU | Mode::RWXG | Mode::RWXO)?)
    }

    /// Removes the directory.
    ///
    /// # Errors
    /// Fails as `unlinkat(2)` with AT_REMOVEDIR.
    pub fn remove_dir(&self) -> io::Result<()> {
        let (directory, path) = self.at()?;
        Ok(rustix::fs::unlinkat(directory, path, AtFlags::REMOVEDIR)?)
    }
}

impl fmt::Display for TracePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown().display().fmt(f)
    }
}
