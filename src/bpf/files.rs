//! The files that the programs told of, by identifier.
//!
//! A file's name comes once for each task that uses it; records after that have its identifier alone. What was not told, or was lost, is unknown: it is never guessed.

use super::record::{FileIs, FileNote, SeenFile};
use super::sockets;
use crate::event::File;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Files that were told before so many others are forgotten. The programs tell a file again before that (`FRESH_MAX`).
const FRESH_MAX: u64 = 1 << 17;

/// include/uapi/linux/magic.h
const PIPEFS: u32 = 0x5049_5045;
const ANON_INODE_FS: u32 = 0x0904_1934;
const PID_FS: u32 = 0x5049_4446;
const NSFS: u32 = 0x6e73_6673;
const DMA_BUF: u32 = 0x444d_4142;

/// The files.
#[derive(Debug, Default)]
pub struct Files {
    files: FxHashMap<u64, File>,
    newest: u64,
}

impl Files {
    /// What a descriptor was, if that is known.
    pub fn file(&mut self, seen: &SeenFile<'_>) -> Option<File> {
        let Some(note) = &seen.note else { return self.files.get(&seen.id).cloned() };
        let file = file(note);
        self.newest = self.newest.max(seen.id);
        if self.files.len() as u64 > 2 * FRESH_MAX {
            let oldest = self.newest - FRESH_MAX;
            self.files.retain(|&id, _| id >= oldest);
        }
        self.files.insert(seen.id, file.clone());
        Some(file)
    }
}

fn file(note: &FileNote<'_>) -> File {
    match note.is {
        FileIs::Rooted(names) if !note.unlinked => File::Path(path(names).into()),
        FileIs::Rooted(names) => File::OldPath { path: path(names).into(), deleted: true, cut: false },
        FileIs::Cut(names) => File::OldPath { path: path(names).into(), deleted: note.unlinked, cut: true },
        FileIs::Apart(_, pid @ 1..) => File::Process { pid },
        FileIs::Apart(names, _) => apart(first(names), note),
        FileIs::Socket(socket) => File::Socket(Arc::new(sockets::socket(&socket, note.inode))),
    }
}

fn path(names: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(names.len() + 1);
    for name in names.rsplit(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    path
}

/// Each of these file systems has its own way to call what is in no directory; all others have one in common.
fn apart(name: &[u8], note: &FileNote<'_>) -> File {
    let inode = note.inode;
    match note.magic {
        PIPEFS => File::Pipe { inode },
        NSFS => File::Namespace { kind: name.into(), inode },
        ANON_INODE_FS => File::Anonymous(name.into()),
        // Its process is gone, or it is of none that this machine knows.
        PID_FS => File::Anonymous(b"[pidfd]"[..].into()),
        DMA_BUF => File::Path(b"/dmabuf:"[..].into()),
        _ => match name.strip_prefix(b"memfd:") {
            Some(name) => File::Memory(name.into()),
            None => File::OldPath { path: [b"/", name].concat().into(), deleted: true, cut: false },
        },
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
        let name_of =
            |magic, is, unlinked| String::from_utf8(crate::beauty::file::name(&file(&note(magic, is, unlinked))).into_owned()).unwrap();
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
        assert_eq!(files.file(&seen(1, None)), None, "it was lost");
        let told = |names| Some(note(0xef53, FileIs::Rooted(names), false));
        assert_eq!(files.file(&seen(1, told(b"a\0"))), Some(File::Path(b"/a"[..].into())));
        assert_eq!(files.file(&seen(1, None)), Some(File::Path(b"/a"[..].into())));
        assert_eq!(files.file(&seen(2, None)), None);
    }

    #[test]
    fn what_the_programs_may_still_name_is_remembered() {
        let mut files = Files::default();
        let seen = |id, note| SeenFile { place: FdPlace::Arg(0), id, note };
        let told = || Some(note(0xef53, FileIs::Rooted(b"a\0"), false));
        for id in 1..=5 * FRESH_MAX {
            files.file(&seen(id, told()));
            let oldest = id.saturating_sub(FRESH_MAX - 1).max(1);
            assert!(files.file(&seen(oldest, None)).is_some(), "{oldest} of {id}");
        }
        assert!(files.files.len() as u64 <= 2 * FRESH_MAX + 1);
    }
}
