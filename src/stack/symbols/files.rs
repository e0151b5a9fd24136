//! The files that symbols are read from: how they are requested, and how they are identified.

use super::read_at::ReadAt;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The identity of a file with its present contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The device number (`st_dev` of stat(2)).
    pub device: u64,
    /// The inode number (`st_ino`).
    pub inode: u64,
    /// In bytes.
    pub size: u64,
    /// The time of the last modification in seconds and nanoseconds.
    pub modified: (i64, u32),
    /// The user ID of the owner. Only files of one owner share symbols by build-id: otherwise a user could write the
    /// build-id of another user's file into a file of his own, and so give names to the other's code.
    pub owner: u32,
}

/// The mapping by which a file was found first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// A process that had the file mapped.
    pub pid: i32,
    /// The path in the mount namespace of this process.
    pub path: PathBuf,
}

/// A request for a file.
#[derive(Clone, Copy, Debug)]
pub enum Want<'a> {
    /// A file that was read before. Only the file with this identity is returned.
    Again {
        /// The identity that the file had when it was read.
        identity: Identity,
        /// The mapping by which it was found.
        origin: &'a Origin,
    },
    /// The file at a path. The caller verifies that it is the right file.
    Path {
        /// The absolute path.
        path: &'a Path,
        /// The process in whose mount namespace the path is valid; `None` for rtrace's own.
        seen_by: Option<i32>,
    },
}

/// Opens files.
pub trait Files {
    /// Opens a regular file. Returns `None` if the file does not exist or may not be read.
    fn find(&mut self, want: Want<'_>) -> Option<Box<dyn ReadAt>>;
}

impl<F: FnMut(Want<'_>) -> Option<Box<dyn ReadAt>>> Files for F {
    fn find(&mut self, want: Want<'_>) -> Option<Box<dyn ReadAt>> {
        self(want)
    }
}
