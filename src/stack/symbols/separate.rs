//! The paths of separate debug files, and how they are verified.
//!
//! The paths are those that gdb documents ("Debugging Information in Separate Files"). A file found by build-id is
//! accepted if it has this build-id. A file found by its name in `.gnu_debuglink` is accepted if it has the same
//! build-id or, if one of the two files has none, the checksum in the section.

use super::build_id::BuildId;
use super::elf::string_at;
use super::order::ByteOrder;
use super::read_at::ReadAt;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The directory of separate debug files.
const DEBUG: &str = "/usr/lib/debug";

/// Returns the path of the debug file of a build-id.
pub fn path_by_build_id(id: BuildId) -> PathBuf {
    let text = id.to_string();
    let (first, rest) = text.split_at(2);
    PathBuf::from(format!("{DEBUG}/.build-id/{first}/{rest}.debug"))
}

/// The `.gnu_debuglink` section, which names the debug file of a stripped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugLink {
    /// A file name, without a directory.
    name: Vec<u8>,
    /// CRC-32 of the whole debug file.
    checksum: u32,
}

impl DebugLink {
    /// Parses the section's contents: the name, zeros up to a multiple of four, the checksum.
    pub fn parse(section: &[u8], order: ByteOrder) -> Option<DebugLink> {
        let name = string_at(section, 0).filter(|name| !name.is_empty() && !name.contains(&b'/'))?;
        let checksum = order.u32(section, (name.len() + 1).next_multiple_of(4))?;
        Some(DebugLink { name: name.to_vec(), checksum })
    }

    /// Returns the possible paths of the debug file, for a stripped file at `path`.
    pub fn paths(&self, path: &Path) -> Vec<PathBuf> {
        let name = OsStr::from_bytes(&self.name);
        let Some(directory) = path.parent().filter(|directory| directory.is_absolute()) else { return Vec::new() };
        let below: PathBuf = directory.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let places = [directory.to_owned(), directory.join(".debug"), Path::new(DEBUG).join(below)];
        // The section may have the stripped file's own name.
        places.into_iter().map(|place| place.join(name)).filter(|place| place != path).collect()
    }

    /// Whether a file has the checksum. Reads all of it; a file of more than 1 GiB is never accepted.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn has_checksum_of(&self, file: &dyn ReadAt) -> io::Result<bool> {
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

/// The `.gnu_debugaltlink` section, which names the file that dwz moved the common parts of several debug files to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugAltLink {
    path: Vec<u8>,
    /// The build-id that the shared file must have.
    pub build_id: BuildId,
}

impl DebugAltLink {
    /// Parses the section's contents: path and build-id.
    pub fn parse(section: &[u8]) -> Option<DebugAltLink> {
        let path = string_at(section, 0)?;
        Some(DebugAltLink { path: path.to_vec(), build_id: BuildId::new(&section[path.len() + 1..])? })
    }

    /// Returns the possible paths of the shared file, for a debug file at `path`.
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
    fn a_debuglink_has_paths_and_a_checksum() {
        let section = b"ls.debug\0\0\0\0\x78\x56\x34\x12";
        let link = DebugLink::parse(section, ByteOrder::Little).unwrap();
        assert_eq!(link, DebugLink { name: b"ls.debug".to_vec(), checksum: 0x1234_5678 });
        let paths = link.paths(Path::new("/usr/bin/ls"));
        assert_eq!(paths, ["/usr/bin/ls.debug", "/usr/bin/.debug/ls.debug", "/usr/lib/debug/usr/bin/ls.debug"].map(PathBuf::from));
        assert!(link.paths(Path::new("[vdso]")).is_empty());
        for end in 0..section.len() {
            assert_eq!(DebugLink::parse(&section[..end], ByteOrder::Little), None);
        }
        assert_eq!(DebugLink::parse(b"../../x\0\0\0\0\0", ByteOrder::Little), None);
        let link = DebugLink { name: b"x".to_vec(), checksum: 0xcbf4_3926 };
        assert!(link.has_checksum_of(b"123456789").unwrap());
        assert!(!link.has_checksum_of(b"123456780").unwrap());
    }

    #[test]
    fn a_debugaltlink_has_paths_and_a_build_id() {
        let shared = DebugAltLink::parse(b"../../.dwz/x/y.debug\0\xab\xcd").unwrap();
        let paths = shared.paths(Path::new("/usr/lib/debug/.build-id/00/11.debug"));
        assert_eq!(paths[0], Path::new("/usr/lib/debug/.build-id/00/../../.dwz/x/y.debug"));
        assert_eq!(paths[1..], ["/usr/lib/debug/.dwz/y.debug", "/usr/lib/debug/.build-id/ab/cd.debug"].map(PathBuf::from));
        assert_eq!(DebugAltLink::parse(b"x\0"), None);
    }

    proptest! {
        #[test]
        fn random_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..48)) {
            let _ = (DebugLink::parse(&bytes, ByteOrder::Big), DebugAltLink::parse(&bytes));
        }
    }
}
