//! The files that the programs told of, by identifier.
//!
//! A file's name comes once for each task that uses it; records after that have its identifier alone. What was not told, or was lost, is unknown: it is never guessed.

use super::record::{FileIs, FileNote, SeenFile};
use super::sockets;
use crate::task::fds::Path;
use rustc_hash::FxHashMap;

/// Files that were told before so many others are forgotten. The programs tell a file again before that (`FRESH_MAX`).
const FRESH_MAX: u64 = 1 << 17;

/// include/uapi/linux/magic.h
const PIPEFS: u32 = 0x5049_5045;
const ANON_INODE_FS: u32 = 0x0904_1934;
const PID_FS: u32 = 0x5049_4446;
const NSFS: u32 = 0x6e73_6673;
const DMA_BUF: u32 = 0x444d_4142;

/// The names.
#[derive(Debug, Default)]
pub struct Files {
    paths: FxHashMap<u64, Path>,
    newest: u64,
}

impl Files {
    /// What a descriptor was, if that is known.
    pub fn path(&mut self, seen: &SeenFile<'_>) -> Option<Path> {
        let Some(note) = &seen.note else { return self.paths.get(&seen.id).cloned() };
        let path: Path = name(note).into();
        self.newest = self.newest.max(seen.id);
        if self.paths.len() as u64 > 2 * FRESH_MAX {
            let oldest = self.newest - FRESH_MAX;
            self.paths.retain(|&id, _| id >= oldest);
        }
        self.paths.insert(seen.id, Path::clone(&path));
        Some(path)
    }
}

/// As readlink(2) of /proc/PID/fd/N has it; but sockets have their addresses, pidfds their process, and the end of a path that found no room begins with `...`.
fn name(note: &FileNote<'_>) -> Vec<u8> {
    match note.is {
        FileIs::Rooted(names) => path(names, note.unlinked),
        FileIs::Cut(names) => [b"...".to_vec(), path(names, note.unlinked)].concat(),
        FileIs::Apart(_, pid @ 1..) => format!("pid:{pid}").into_bytes(),
        FileIs::Apart(names, _) => apart(first(names), note),
        FileIs::Socket(socket) => sockets::name(&socket, note.inode),
    }
}

fn path(names: &[u8], unlinked: bool) -> Vec<u8> {
    let mut path = Vec::with_capacity(names.len() + 16);
    for name in names.rsplit(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    if unlinked {
        path.extend_from_slice(b" (deleted)");
    }
    path
}

/// Each of these file systems has its own way to call what is in no directory; all others have one in common.
fn apart(name: &[u8], note: &FileNote<'_>) -> Vec<u8> {
    let inode = format!(":[{}]", note.inode).into_bytes();
    match note.magic {
        PIPEFS => [b"pipe", &inode[..]].concat(),
        NSFS => [name, &inode].concat(),
        ANON_INODE_FS => [b"anon_inode:", name].concat(),
        // Its process is gone, or it is of none that this machine knows.
        PID_FS => b"anon_inode:[pidfd]".to_vec(),
        DMA_BUF => b"/dmabuf:".to_vec(),
        _ => [b"/", name, b" (deleted)"].concat(),
    }
}

fn first(names: &[u8]) -> &[u8] {
    names.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FdPlace;

    const TMPFS: u32 = 0x0102_1994;

    fn note(magic: u32, is: FileIs<'_>, unlinked: bool) -> FileNote<'_> {
        FileNote { inode: 42, magic, unlinked, is }
    }

    #[test]
    fn names_are_put_together_from_the_root() {
        let name_of = |magic, is, unlinked| String::from_utf8(name(&note(magic, is, unlinked))).unwrap();
        let rooted = |names, unlinked| name_of(0xef53, FileIs::Rooted(names), unlinked);
        assert_eq!(rooted(b"passwd\0etc\0", false), "/etc/passwd");
        assert_eq!(rooted(b"x\0tmp\0", true), "/tmp/x (deleted)");
        assert_eq!(rooted(b"", false), "/");
        assert_eq!(name_of(0xef53, FileIs::Cut(b"x\0deep\0"), false), ".../deep/x");
        let apart = |magic, name| name_of(magic, FileIs::Apart(name, 0), true);
        assert_eq!(apart(ANON_INODE_FS, b"[eventpoll]\0"), "anon_inode:[eventpoll]");
        assert_eq!(apart(TMPFS, b"memfd:sealed\0"), "/memfd:sealed (deleted)");
        assert_eq!(apart(PIPEFS, b"\0"), "pipe:[42]");
        assert_eq!(apart(NSFS, b"net\0"), "net:[42]");
        assert_eq!(name_of(PID_FS, FileIs::Apart(b"", 77), false), "pid:77");
    }

    #[test]
    fn an_identifier_stands_for_what_was_told() {
        let mut files = Files::default();
        let seen = |id, note| SeenFile { place: FdPlace::Arg(0), id, note };
        assert_eq!(files.path(&seen(1, None)), None, "it was lost");
        let told = |names| Some(note(0xef53, FileIs::Rooted(names), false));
        assert_eq!(files.path(&seen(1, told(b"a\0"))).as_deref(), Some(&b"/a"[..]));
        assert_eq!(files.path(&seen(1, None)).as_deref(), Some(&b"/a"[..]));
        assert_eq!(files.path(&seen(2, None)), None);
    }

    #[test]
    fn what_the_programs_may_still_name_is_remembered() {
        let mut files = Files::default();
        let seen = |id, note| SeenFile { place: FdPlace::Arg(0), id, note };
        let told = || Some(note(0xef53, FileIs::Rooted(b"a\0"), false));
        for id in 1..=5 * FRESH_MAX {
            files.path(&seen(id, told()));
            let oldest = id.saturating_sub(FRESH_MAX - 1).max(1);
            assert!(files.path(&seen(oldest, None)).is_some(), "{oldest} of {id}");
        }
        assert!(files.paths.len() as u64 <= 2 * FRESH_MAX + 1);
    }
}
