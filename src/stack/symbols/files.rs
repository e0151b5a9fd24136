//! What symbols are read from, as far as this code knows of files: what it asks for, and how it tells them apart.

use super::read_at::ReadAt;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A file, as long as it is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// As stat(2) gives it.
    pub device: u64,
    pub inode: u64,
    /// In bytes.
    pub size: u64,
    /// Seconds and nanoseconds.
    pub modified: (i64, u32),
    /// Whoever can write a build-id into a file could give names to the code of another's that has the same: only files of one owner share.
    pub owner: u32,
}

/// Where a file was met first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// A process that had it mapped.
    pub pid: i32,
    /// As this process sees it.
    pub path: PathBuf,
}

/// A file that is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Want<'a> {
    /// One that was read before: no other than the one of this identity.
    Again { identity: Identity, origin: &'a Origin },
    /// Whatever has this path, as a process sees it, or as rtrace does. Who asks checks that it is the right one.
    Path { path: &'a Path, seen_by: Option<i32> },
}

/// Opens files.
pub trait Files {
    /// A regular file's bytes; `None` if there is no such file or it may not be read.
    fn find(&mut self, want: Want<'_>) -> Option<Box<dyn ReadAt>>;
}

impl<F: FnMut(Want<'_>) -> Option<Box<dyn ReadAt>>> Files for F {
    fn find(&mut self, want: Want<'_>) -> Option<Box<dyn ReadAt>> {
        self(want)
    }
}
