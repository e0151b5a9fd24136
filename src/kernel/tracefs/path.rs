//! A path of tracefs, whether tracefs is mounted somewhere or not.

use crate::kernel::mounts;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file or directory of tracefs. It has the methods of [`Path`] and [`std::fs`] that its users need.
#[derive(Clone, Debug)]
pub struct TracePath {
    base: Base,
    path: PathBuf,
}

/// What a path begins at.
#[derive(Clone, Debug)]
enum Base {
    /// The usual root: the path leads through a mount.
    Mounted,
    /// The root of a mount that is nowhere in the file system ([`detached`]).
    Detached(Arc<OwnedFd>),
    /// There is no tracefs: nothing exists.
    Absent,
}

/// Makes a mount of tracefs that is attached nowhere: see [`mounts::detached`].
/// The kernel has one tracefs for all mounts. Since Linux 6.0, and in the stable series since then, a new mount keeps the
/// mode and owner that the others gave it (commit 47311db8e8f3).
///
/// # Errors
/// The same.
pub fn detached() -> io::Result<TracePath> {
    Ok(TracePath { base: Base::Detached(Arc::new(mounts::detached("tracefs")?)), path: PathBuf::from(".") })
}

impl TracePath {
    pub fn mounted(path: impl Into<PathBuf>) -> TracePath {
        TracePath { base: Base::Mounted, path: path.into() }
    }

    /// A path at which there is nothing.
    pub fn absent() -> TracePath {
        TracePath { base: Base::Absent, path: PathBuf::from(".") }
    }

    pub fn is_mounted(&self) -> bool {
        matches!(self.base, Base::Mounted)
    }

    pub fn join(&self, below: impl AsRef<Path>) -> TracePath {
        TracePath { base: self.base.clone(), path: self.path.join(below) }
    }

    /// As it is shown to a person: without a mount, the path begins with `tracefs/`.
    pub fn shown(&self) -> PathBuf {
        match self.base {
            Base::Mounted => self.path.clone(),
            Base::Detached(_) | Base::Absent => Path::new("tracefs").join(self.path.strip_prefix(".").unwrap_or(&self.path)),
        }
    }

    /// What `openat(2)` and its like take.
    fn place(&self) -> io::Result<(BorrowedFd<'_>, &Path)> {
        match &self.base {
            Base::Mounted => Ok((CWD, &self.path)),
            Base::Detached(mount) => Ok((mount.as_fd(), &self.path)),
            Base::Absent => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// # Errors
    /// As `openat(2)`.
    pub fn open(&self, flags: OFlags) -> io::Result<File> {
        let (base, path) = self.place()?;
        Ok(rustix::fs::openat(base, path, flags | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    /// # Errors
    /// It cannot be opened or read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(OFlags::RDONLY)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// # Errors
    /// It cannot be opened or read, or is no UTF-8.
    pub fn read_to_string(&self) -> io::Result<String> {
        String::from_utf8(self.read()?).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    pub fn exists(&self) -> bool {
        self.kind().is_ok()
    }

    pub fn is_dir(&self) -> bool {
        self.kind().is_ok_and(FileType::is_dir)
    }

    fn kind(&self) -> io::Result<FileType> {
        let (base, path) = self.place()?;
        Ok(FileType::from_raw_mode(rustix::fs::statat(base, path, AtFlags::empty())?.st_mode))
    }

    /// The names of the directories in a directory, in the kernel's order. What is no UTF-8 is no name that anybody can ask for.
    ///
    /// # Errors
    /// It cannot be opened or read.
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

    /// # Errors
    /// As `mkdirat(2)`.
    pub fn create_dir(&self) -> io::Result<()> {
        let (base, path) = self.place()?;
        Ok(rustix::fs::mkdirat(base, path, Mode::RWXU | Mode::RWXG | Mode::RWXO)?)
    }

    /// # Errors
    /// As `unlinkat(2)` with AT_REMOVEDIR.
    pub fn remove_dir(&self) -> io::Result<()> {
        let (base, path) = self.place()?;
        Ok(rustix::fs::unlinkat(base, path, AtFlags::REMOVEDIR)?)
    }
}

impl fmt::Display for TracePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown().display().fmt(f)
    }
}
