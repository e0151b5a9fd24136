//! `--path`: whether a call names a path, or has a descriptor open on it.

use crate::beauty::file;
use crate::beauty::resolve::Signature;
use crate::beauty::row::{Kind, Return, Syscall};
use crate::event::{Call, FdPlace, File, PieceState};
use crate::text::glob;

/// The paths and globs that are asked for; none asks for nothing, and every call is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths(pub Vec<Vec<u8>>);

impl Paths {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a call has to do with one of them: it is in an argument, also below the directory that the call gives
    /// with it, or what a descriptor is open on.
    pub fn concern(&self, call: &Call, row: Option<&Syscall>) -> bool {
        let of_files = call.files.iter().any(|file| self.have(&file::name(&file.file)));
        of_files || row.is_some_and(|row| self.are_named(call, row))
    }

    fn are_named(&self, call: &Call, row: &Syscall) -> bool {
        let signature = call.args.as_ref().map_or(row.signature(), |registers| row.signature_of(registers));
        let names = signature.args.iter().enumerate().filter(|(_, arg)| matches!(arg.kind, Kind::Path));
        let mut pieces = names.filter_map(|(at, _)| call.pieces.iter().find(|piece| usize::from(piece.arg) == at).map(|piece| (at, piece)));
        pieces.any(|(at, piece)| {
            let name = call.bytes(piece);
            matches!(piece.state, PieceState::Ok) && (self.have(name) || self.have_below(call, &signature, at, name))
        })
    }

    /// A relative name below the directory whose descriptor stands before it.
    fn have_below(&self, call: &Call, signature: &Signature, at: usize, name: &[u8]) -> bool {
        let Some(before) = at.checked_sub(1).filter(|before| matches!(signature.args[*before].kind, Kind::DirFd)) else { return false };
        match call.file(FdPlace::Arg(before as u8)) {
            Some(File::Path(directory)) if !name.starts_with(b"/") => self.have(&[directory, &b"/"[..], name].concat()),
            _ => false,
        }
    }

    fn have(&self, path: &[u8]) -> bool {
        self.0.iter().any(|pattern| pattern == path || glob::matches(pattern, path))
    }
}

/// Whether a call of this syscall can have to do with a path: by an argument that is one, a descriptor, or memory that
/// may hold descriptors.
pub fn may_have_paths(row: &Syscall) -> bool {
    let is_number = |kind: &Kind| {
        matches!(
            kind,
            Kind::Int
                | Kind::Uint
                | Kind::Long
                | Kind::Ulong
                | Kind::Hex
                | Kind::Size
                | Kind::Offset
                | Kind::Loff
                | Kind::Pid
                | Kind::Uid
                | Kind::Gid
                | Kind::Signal
                | Kind::Mode
                | Kind::Dev
                | Kind::Address
                | Kind::Table(_)
                | Kind::Custom(..)
                | Kind::Number { .. }
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
    fn calls_of_numbers_alone_have_no_paths() {
        let may = |name: &str| may_have_paths(&SYSCALLS[usize::from(lookup::index_by_name(name).unwrap())]);
        for name in ["openat", "read", "mmap", "poll", "recvmsg", "fcntl", "pidfd_getfd", "socket", "chdir"] {
            assert!(may(name), "{name}");
        }
        for name in ["getpid", "brk", "munmap", "kill", "exit_group"] {
            assert!(!may(name), "{name}");
        }
    }
}
