//! The files that the programs have named, by identifier.
//!
//! The programs write a file's name once for each task that uses the file; later records have its identifier alone. If
//! the record with the name was lost, the file is unknown; rtrace never guesses it.

use super::record::{FileInfo, FileName, RecordedFile};
use super::sockets;
use crate::event::{DeviceKind, File};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Files are dropped when this many others have been named after them. The programs name a file again before that
/// (`FRESH_MAX`).
const FRESH_MAX: u64 = 1 << 17;

/// include/uapi/linux/magic.h
const PIPEFS: u32 = 0x5049_5045;
const ANON_INODE_FS: u32 = 0x0904_1934;
const PID_FS: u32 = 0x5049_4446;
const NSFS: u32 = 0x6e73_6673;
const DMA_BUF: u32 = 0x444d_4142;

/// The known files.
#[derive(Debug, Default)]
pub struct Files {
    files: FxHashMap<u64, File>,
    newest: u64,
}

impl Files {
    /// Returns the file of a descriptor, if it is known.
    pub fn file(&mut self, seen: &RecordedFile<'_>) -> Option<File> {
        let Some(info) = &seen.info else { return self.files.get(&seen.id).cloned() };
        let file = file(info);
        self.newest = self.newest.max(seen.id);
        if self.files.len() as u64 > 2 * FRESH_MAX {
            let oldest = self.newest - FRESH_MAX;
            self.files.retain(|&id, _| id >= oldest);
        }
        self.files.insert(seen.id, file.clone());
        Some(file)
    }
}

fn file(info: &FileInfo<'_>) -> File {
    match info.is {
        FileName::Rooted(names) if !info.unlinked => match device(info) {
            Some(kind) => File::Device { path: path(names).into(), kind, major: info.device >> 20, minor: info.device & 0xf_ffff },
            None => File::Path(path(names).into()),
        },
        FileName::Rooted(names) => File::OldPath { path: path(names).into(), deleted: true, cut: false },
        FileName::Cut(names) => File::OldPath { path: path(names).into(), deleted: info.unlinked, cut: true },
        FileName::Pathless(_, pid @ 1..) => File::Process { pid },
        FileName::Pathless(names, _) => pathless(first(names), info),
        FileName::Socket(socket) => File::Socket(Arc::new(sockets::socket(&socket, info.inode))),
    }
}

/// Returns which kind of device a file is.
fn device(info: &FileInfo<'_>) -> Option<DeviceKind> {
    // include/uapi/linux/stat.h
    match info.file_type {
        0o020_000 => Some(DeviceKind::Character),
        0o060_000 => Some(DeviceKind::Block),
        _ => None,
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

/// Names a file that is in no directory. Each of these file systems has its own form for such names; all others share
/// one.
fn pathless(name: &[u8], info: &FileInfo<'_>) -> File {
    let inode = info.inode;
    match info.magic {
        PIPEFS => File::Pipe { inode },
        NSFS => File::Namespace { kind: name.into(), inode },
        ANON_INODE_FS => File::Anonymous(name.into()),
        // The process has ended, or is in a pid namespace in which it has no pid for rtrace.
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

    fn info(magic: u32, is: FileName<'_>, unlinked: bool) -> FileInfo<'_> {
        FileInfo { inode: 42, magic, unlinked, file_type: 0o100_000, device: 0, is }
    }

    #[test]
    fn paths_are_joined_from_the_root() {
        let name_of =
            |magic, is, unlinked| String::from_utf8(crate::beauty::file::name(&file(&info(magic, is, unlinked))).into_owned()).unwrap();
        let rooted = |names, unlinked| name_of(0xef53, FileName::Rooted(names), unlinked);
        assert_eq!(rooted(b"passwd\0etc\0", false), "/etc/passwd");
        assert_eq!(rooted(b"x\0tmp\0", true), "/tmp/x (deleted)");
        assert_eq!(rooted(b"", false), "/");
        assert_eq!(name_of(0xef53, FileName::Cut(b"x\0deep\0"), false), ".../deep/x");
        let pathless_name = |magic, name| name_of(magic, FileName::Pathless(name, 0), true);
        assert_eq!(pathless_name(ANON_INODE_FS, b"[eventpoll]\0"), "anon_inode:[eventpoll]");
        assert_eq!(pathless_name(TMPFS, b"memfd:sealed\0"), "/memfd:sealed (deleted)");
        assert_eq!(pathless_name(PIPEFS, b"\0"), "pipe:[42]");
        assert_eq!(pathless_name(NSFS, b"net\0"), "net:[42]");
        assert_eq!(name_of(PID_FS, FileName::Pathless(b"", 77), false), "pid:77");
    }

    #[test]
    fn later_records_refer_to_a_file_by_its_identifier() {
        let mut files = Files::default();
        let seen = |id, info| RecordedFile { place: FdPlace::Arg(0), id, info };
        assert_eq!(files.file(&seen(1, None)), None, "the record with the name was lost");
        let named = |names| Some(info(0xef53, FileName::Rooted(names), false));
        assert_eq!(files.file(&seen(1, named(b"a\0"))), Some(File::Path(b"/a"[..].into())));
        assert_eq!(files.file(&seen(1, None)), Some(File::Path(b"/a"[..].into())));
        assert_eq!(files.file(&seen(2, None)), None);
    }

    #[test]
    fn files_are_kept_until_the_programs_name_them_again() {
        let mut files = Files::default();
        let seen = |id, info| RecordedFile { place: FdPlace::Arg(0), id, info };
        let named = || Some(info(0xef53, FileName::Rooted(b"a\0"), false));
        for id in 1..=5 * FRESH_MAX {
            files.file(&seen(id, named()));
            let oldest = id.saturating_sub(FRESH_MAX - 1).max(1);
            assert!(files.file(&seen(oldest, None)).is_some(), "{oldest} of {id}");
        }
        assert!(files.files.len() as u64 <= 2 * FRESH_MAX + 1);
    }
}
