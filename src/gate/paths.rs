//! `--path`: selects calls that name a path, or that have a descriptor open on it.

use crate::beauty::file;
use crate::beauty::resolve::Signature;
use crate::beauty::row::{ArgumentKind, Return, Syscall};
use crate::event::{Call, FdPlace, File, PieceState};
use crate::session::PathNames;
use crate::text::glob;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The requested paths and globs. If there are none, every call is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths(pub Vec<Vec<u8>>);

impl Paths {
    /// Returns each path as the user wrote it, which calls may use, and with the other names that the traced machine
    /// had for it, which descriptors have. Nothing is looked up: a path that is not in `known` has no other names.
    pub fn new(written: &[OsString], known: &[PathNames]) -> Paths {
        let mut paths: Vec<Vec<u8>> = Vec::new();
        for path in written.iter().map(|path| path.as_bytes()) {
            let others = known.iter().filter(|names| names.written == path).flat_map(|names| names.others.iter().map(Vec::as_slice));
            for name in std::iter::once(path).chain(others) {
                if !paths.iter().any(|known| known == name) {
                    paths.push(name.to_vec());
                }
            }
        }
        Paths(paths)
    }

    /// Returns whether no path was requested, so that every call is shown.
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
                | ArgumentKind::Port
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
    fn a_path_has_the_names_that_the_traced_machine_had_for_it() {
        let names = |written: &str, other: &str| PathNames { written: written.into(), others: vec![other.into()] };
        let known = [names("x.c", "/no/such/directory/x.c"), names("link", "/x")];
        let of = |path: &str| Paths::new(&[OsString::from(path)], &known).0;
        assert_eq!(of("x.c"), [&b"x.c"[..], b"/no/such/directory/x.c"]);
        assert_eq!(of("/proc/self/../self/../sys"), [b"/proc/self/../self/../sys"], "the machine that reads the stream is not asked");
        assert_eq!(Paths::new(&["/x".into(), "link".into()], &known).0, [&b"/x"[..], b"link"]);
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
