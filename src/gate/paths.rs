//! `--path`: selects calls that name a path, or that have a descriptor open on it.

use crate::beauty::file;
use crate::beauty::resolve::Signature;
use crate::beauty::row::{ArgumentKind, Return, Syscall};
use crate::event::{Call, FdPlace, File, PieceState};
use crate::text::glob;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The requested paths and globs. If there are none, every call is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths(pub Vec<Vec<u8>>);

impl Paths {
    /// Returns each path in two forms: as the user wrote it, which calls may use, and absolute without symbolic links,
    /// which descriptors have.
    pub fn find(written: &[OsString]) -> Paths {
        let mut paths = Vec::new();
        for path in written {
            let mut add = |path: Vec<u8>| {
                if !paths.contains(&path) {
                    paths.push(path);
                }
            };
            add(path.as_bytes().to_vec());
            if let Ok(absolute) = std::path::absolute(path) {
                add(absolute.into_os_string().into_vec());
            }
            if !glob::is_pattern(&path.to_string_lossy())
                && let Ok(real) = Path::new(path).canonicalize()
            {
                add(real.into_os_string().into_vec());
            }
        }
        Paths(paths)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a call refers to one of the paths: by an argument, possibly relative to the directory descriptor
    /// that precedes it, or by a descriptor that is open on it.
    pub fn match_call(&self, call: &Call, row: Option<&Syscall>) -> bool {
        let by_descriptor = call.files.iter().any(|file| self.match_path(&file::name(&file.file)));
        by_descriptor || row.is_some_and(|row| self.match_arguments(call, row))
    }

    fn match_arguments(&self, call: &Call, row: &Syscall) -> bool {
        let signature = call.args.as_ref().map_or(row.signature(), |registers| row.signature_of(registers));
        let names = signature.args.iter().enumerate().filter(|(_, arg)| matches!(arg.kind, ArgumentKind::Path));
        let mut pieces = names.filter_map(|(at, _)| call.pieces.iter().find(|piece| usize::from(piece.arg) == at).map(|piece| (at, piece)));
        pieces.any(|(at, piece)| {
            let name = call.bytes(piece);
            matches!(piece.state, PieceState::Ok) && (self.match_path(name) || self.match_below(call, &signature, at, name))
        })
    }

    /// Checks a relative name below the directory whose descriptor is the preceding argument.
    fn match_below(&self, call: &Call, signature: &Signature, at: usize, name: &[u8]) -> bool {
        let Some(before) = at.checked_sub(1).filter(|before| matches!(signature.args[*before].kind, ArgumentKind::DirFd)) else {
            return false;
        };
        match call.file(FdPlace::Arg(before as u8)) {
            Some(File::Path(directory)) if !name.starts_with(b"/") => self.match_path(&[directory, &b"/"[..], name].concat()),
            _ => false,
        }
    }

    fn match_path(&self, path: &[u8]) -> bool {
        self.0.iter().any(|pattern| pattern == path || glob::matches(pattern, path))
    }
}

/// Returns whether calls of this syscall can refer to a path: by a path argument, by a descriptor, or by memory that
/// may hold descriptors.
pub fn may_have_paths(row: &Syscall) -> bool {
    let is_number = |kind: &ArgumentKind| {
        matches!(
            kind,
            ArgumentKind::Int
                | ArgumentKind::Uint
                | ArgumentKind::Long
                | ArgumentKind::Ulong
                | ArgumentKind::Hex
                | ArgumentKind::Size
                | ArgumentKind::Offset
                | ArgumentKind::Loff
                | ArgumentKind::Pid
                | ArgumentKind::Uid
                | ArgumentKind::Gid
                | ArgumentKind::Signal
                | ArgumentKind::Mode
                | ArgumentKind::Dev
                | ArgumentKind::Address
                | ArgumentKind::Table(_)
                | ArgumentKind::Custom(..)
                | ArgumentKind::Number { .. }
        )
    };
    row.signatures().any(|of| matches!(of.returns, Return::Fd) || of.args.iter().any(|arg| !is_number(&arg.kind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::lookup;
    use crate::beauty::tables::SYSCALLS;

    #[test]
    fn paths_are_matched_as_written_and_as_the_kernel_names_them() {
        let of = |path: &str| Paths::find(&[OsString::from(path)]).0;
        assert_eq!(of("/nonexistent/*"), [b"/nonexistent/*".to_vec()]);
        assert_eq!(of("/proc/self/../self/../sys"), [b"/proc/self/../self/../sys".to_vec(), b"/proc/sys".to_vec()]);
        let here = std::env::current_dir().unwrap().join("x.c").into_os_string().into_vec();
        assert_eq!(of("x.c"), [b"x.c".to_vec(), here]);
    }

    #[test]
    fn syscalls_with_only_numbers_have_no_paths() {
        let may = |name: &str| may_have_paths(&SYSCALLS[usize::from(lookup::index_by_name(name).unwrap())]);
        for name in ["openat", "read", "mmap", "poll", "recvmsg", "fcntl", "pidfd_getfd", "socket", "chdir"] {
            assert!(may(name), "{name}");
        }
        for name in ["getpid", "brk", "munmap", "kill", "exit_group"] {
            assert!(!may(name), "{name}");
        }
    }
}
