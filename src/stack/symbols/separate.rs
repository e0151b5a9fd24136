//! Debug files: where distributions put what they strip from a file, and which of the files found there is the right one.
//!
//! Places are those that gdb documents ("Debugging Information in Separate Files"). A file found by build-id is taken if it has this build-id, one
//! found by its name in `.gnu_debuglink` if it has the same build-id or, where there is none, the checksum given there.

use super::build_id::BuildId;
use super::elf::string_at;
use super::order::ByteOrder;
use super::read_at::ReadAt;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Where separate debug files are kept.
const DEBUG: &str = "/usr/lib/debug";

/// The debug file of a build-id.
pub fn path_by_build_id(id: BuildId) -> PathBuf {
    let text = id.to_string();
    let (first, rest) = text.split_at(2);
    PathBuf::from(format!("{DEBUG}/.build-id/{first}/{rest}.debug"))
}

/// What a file says of its debug file (`.gnu_debuglink`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// A file name, without a directory.
    name: Vec<u8>,
    /// CRC-32 of the whole debug file.
    checksum: u32,
}

impl Link {
    /// From the section's contents: the name, zeros up to a multiple of four, the checksum.
    pub fn parse(section: &[u8], order: ByteOrder) -> Option<Link> {
        let name = string_at(section, 0).filter(|name| !name.is_empty() && !name.contains(&b'/'))?;
        let checksum = order.u32(section, (name.len() + 1).next_multiple_of(4))?;
        Some(Link { name: name.to_vec(), checksum })
    }

    /// Where the debug file of the file at `path` may be.
    pub fn paths(&self, path: &Path) -> Vec<PathBuf> {
        let name = OsStr::from_bytes(&self.name);
        let Some(directory) = path.parent().filter(|directory| directory.is_absolute()) else { return Vec::new() };
        let below: PathBuf = directory.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let places = [directory.to_owned(), directory.join(".debug"), Path::new(DEBUG).join(below)];
        // The file itself may have the name that it gives.
        places.into_iter().map(|place| place.join(name)).filter(|place| place != path).collect()
    }

    /// Whether this is the file that is meant. Reads all of it, if that is not more than a GiB.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn is_of(&self, file: &dyn ReadAt) -> io::Result<bool> {
        const PART: u64 = 1 << 20;
        const SIZE_MAX: u64 = 1 << 30;
        if file.size() > SIZE_MAX {
            return Ok(false);
        }
        let mut hasher = crc32fast::Hasher::new();
        let mut part = vec![0; PART.min(file.size()) as usize];
        let mut offset = 0;
        while offset < file.size() {
            let length = PART.min(file.size() - offset) as usize;
            file.read_at(offset, &mut part[..length])?;
            hasher.update(&part[..length]);
            offset += length as u64;
        }
        Ok(hasher.finalize() == self.checksum)
    }
}

/// What a debug file says of the file that it shares its strings with (`.gnu_debugaltlink`, made by dwz).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    path: Vec<u8>,
    pub build_id: BuildId,
}

impl Shared {
    /// From the section's contents: path and build-id.
    pub fn parse(section: &[u8]) -> Option<Shared> {
        let path = string_at(section, 0)?;
        Some(Shared { path: path.to_vec(), build_id: BuildId::new(&section[path.len() + 1..])? })
    }

    /// Where it may be, as seen from the debug file at `path`.
    pub fn paths(&self, path: &Path) -> Vec<PathBuf> {
        let stated = Path::new(OsStr::from_bytes(&self.path));
        let beside = path.parent().map(|directory| directory.join(stated));
        let name = stated.file_name().map(|name| Path::new(DEBUG).join(".dwz").join(name));
        beside.into_iter().chain(name).chain([path_by_build_id(self.build_id)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn links() {
        let section = b"ls.debug\0\0\0\0\x78\x56\x34\x12";
        let link = Link::parse(section, ByteOrder::Little).unwrap();
        assert_eq!(link, Link { name: b"ls.debug".to_vec(), checksum: 0x1234_5678 });
        let paths = link.paths(Path::new("/usr/bin/ls"));
        assert_eq!(paths, ["/usr/bin/ls.debug", "/usr/bin/.debug/ls.debug", "/usr/lib/debug/usr/bin/ls.debug"].map(PathBuf::from));
        assert!(link.paths(Path::new("[vdso]")).is_empty());
        for end in 0..section.len() {
            assert_eq!(Link::parse(&section[..end], ByteOrder::Little), None);
        }
        assert_eq!(Link::parse(b"../../x\0\0\0\0\0", ByteOrder::Little), None);
        let of_contents = Link { name: b"x".to_vec(), checksum: 0xcbf4_3926 };
        assert!(of_contents.is_of(b"123456789").unwrap());
        assert!(!of_contents.is_of(b"123456780").unwrap());
    }

    #[test]
    fn shared_files() {
        let shared = Shared::parse(b"../../.dwz/x/y.debug\0\xab\xcd").unwrap();
        let paths = shared.paths(Path::new("/usr/lib/debug/.build-id/00/11.debug"));
        assert_eq!(paths[0], Path::new("/usr/lib/debug/.build-id/00/../../.dwz/x/y.debug"));
        assert_eq!(paths[1..], ["/usr/lib/debug/.dwz/y.debug", "/usr/lib/debug/.build-id/ab/cd.debug"].map(PathBuf::from));
        assert_eq!(Shared::parse(b"x\0"), None);
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..48)) {
            let _ = (Link::parse(&bytes, ByteOrder::Big), Shared::parse(&bytes));
        }
    }
}
