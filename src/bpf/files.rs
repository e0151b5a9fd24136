//! The files that the programs told of, by identifier.
//!
//! A file's name comes once for each task that uses it; records after that have its identifier alone. What was not told, or was lost, or is forgotten here is unknown: it is never guessed.

use super::record::{FileNote, SeenFile};
use crate::task::fds::Path;
use rustc_hash::FxHashMap;

/// No more are remembered: a task tells again what it has not used for a while.
const FILES_MAX: usize = 1 << 17;

/// include/uapi/linux/magic.h
const SOCKFS: u32 = 0x534f_434b;
const PIPEFS: u32 = 0x5049_5045;
const ANON_INODE_FS: u32 = 0x0904_1934;
const PID_FS: u32 = 0x5049_4446;
const TMPFS: u32 = 0x0102_1994;
const HUGETLBFS: u32 = 0x9584_58f6;

/// The names.
#[derive(Debug, Default)]
pub struct Files {
    paths: FxHashMap<u64, Path>,
}

impl Files {
    /// What a descriptor was, if that is known.
    pub fn path(&mut self, seen: &SeenFile<'_>) -> Option<Path> {
        let Some(note) = &seen.note else { return self.paths.get(&seen.id).cloned() };
        if self.paths.len() == FILES_MAX {
            self.paths.clear();
        }
        let path: Path = name(note)?.into();
        self.paths.insert(seen.id, Path::clone(&path));
        Some(path)
    }
}

/// As readlink(2) of /proc/PID/fd/N has it.
fn name(note: &FileNote<'_>) -> Option<Vec<u8>> {
    let first = note.names.split(|&byte| byte == 0).next().unwrap_or_default();
    match note.magic {
        SOCKFS => return Some(format!("socket:[{}]", note.inode).into_bytes()),
        PIPEFS => return Some(format!("pipe:[{}]", note.inode).into_bytes()),
        ANON_INODE_FS => return Some([b"anon_inode:", first].concat()),
        PID_FS => return Some(b"anon_inode:[pidfd]".to_vec()),
        // Files that were never in a directory: memfd, shared memory.
        TMPFS | HUGETLBFS if !note.reached_root => return Some([b"/", first, b" (deleted)"].concat()),
        _ if !note.reached_root => return None,
        _ => {}
    }
    let mut path = Vec::with_capacity(note.names.len() + 16);
    for name in note.names.rsplit(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    if note.unlinked {
        path.extend_from_slice(b" (deleted)");
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FdPlace;

    fn note(magic: u32, names: &[u8], reached_root: bool, unlinked: bool) -> FileNote<'_> {
        FileNote { inode: 42, magic, reached_root, unlinked, names }
    }

    #[test]
    fn names_are_put_together_from_the_root() {
        let name_of = |magic, names, reached_root, unlinked| {
            super::name(&note(magic, names, reached_root, unlinked)).map(|name| String::from_utf8(name).unwrap())
        };
        let name = |names, unlinked| name_of(0xef53, names, true, unlinked);
        assert_eq!(name(b"passwd\0etc\0", false).as_deref(), Some("/etc/passwd"));
        assert_eq!(name(b"x\0tmp\0", true).as_deref(), Some("/tmp/x (deleted)"));
        assert_eq!(name(b"", false).as_deref(), Some("/"));
        assert_eq!(name_of(0xef53, b"x\0", false, false), None, "the way up ended somewhere else");
        assert_eq!(name_of(SOCKFS, b"TCP\0", false, false).as_deref(), Some("socket:[42]"));
        assert_eq!(name_of(ANON_INODE_FS, b"[eventpoll]\0", false, false).as_deref(), Some("anon_inode:[eventpoll]"));
        assert_eq!(name_of(TMPFS, b"memfd:sealed\0", false, false).as_deref(), Some("/memfd:sealed (deleted)"));
    }

    #[test]
    fn an_identifier_stands_for_what_was_told() {
        let mut files = Files::default();
        let seen = |id, note| SeenFile { place: FdPlace::Arg(0), id, note };
        assert_eq!(files.path(&seen(1, None)), None, "it was lost");
        assert_eq!(files.path(&seen(1, Some(note(0xef53, b"a\0", true, false)))).as_deref(), Some(&b"/a"[..]));
        assert_eq!(files.path(&seen(1, None)).as_deref(), Some(&b"/a"[..]));
        assert_eq!(files.path(&seen(2, None)), None);
    }
}
