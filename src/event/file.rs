//! What a descriptor is open on.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

/// An open file, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum File {
    /// A file with a name in a file system.
    Path(Arc<[u8]>),
    /// The same, where the name is no longer there, or its beginning is not known.
    OldPath {
        path: Arc<[u8]>,
        /// The file was removed. Where only readlink(2) tells it, a file whose own name ends in ` (deleted)` looks the same.
        deleted: bool,
        /// There was no room for the beginning of the path.
        cut: bool,
    },
    Socket(Arc<Socket>),
    Pipe {
        inode: u64,
    },
    /// Memory that memfd_create(2) made, by the name that it was given.
    Memory(Arc<[u8]>),
    /// What has an inode of its own kind in no directory, by the kernel's name for the kind: `[eventpoll]`, `[eventfd]`.
    Anonymous(Arc<[u8]>),
    /// A namespace (namespaces(7)): `net`, `mnt`.
    Namespace {
        kind: Arc<[u8]>,
        inode: u64,
    },
    /// A process (pidfd_open(2)), by its number as [`super::TaskId`] has it.
    Process {
        pid: i32,
    },
}

/// A socket. Only BPF programs know more of it than its inode.
#[derive(Clone, Debug, Default)]
pub struct Socket {
    /// The protocol, as the kernel calls it: `TCP`, `UNIX-STREAM`; empty where it is not known.
    pub protocol: Box<[u8]>,
    /// `AF_*`; 0 where it is not known.
    pub family: u16,
    /// In sockfs.
    pub inode: u64,
    pub ends: Ends,
    /// Its name in lines, once somebody wanted it.
    pub(crate) name: OnceLock<Box<[u8]>>,
}

/// Whom a socket connects. An end that it does not have is unspecified: address and port 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    #[default]
    Unknown,
    Internet {
        local: SocketAddr,
        remote: SocketAddr,
    },
    Unix {
        /// The inode of the socket at the other end; 0 if there is none.
        peer: u64,
        name: UnixName,
    },
    /// The port is 0, the kernel's own, until the socket is bound.
    Netlink {
        protocol: u32,
        port: u32,
    },
    /// What is received, in the machine's byte order, and of which interface; 0 is any.
    Packet {
        protocol: u32,
        interface: u32,
    },
    /// Context identifier and port.
    Vsock {
        local: (u32, u32),
        remote: (u32, u32),
    },
}

/// What a UNIX socket is bound to (unix(7)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UnixName {
    #[default]
    Unnamed,
    Path(Box<[u8]>),
    Abstract(Box<[u8]>),
}

impl PartialEq for Socket {
    fn eq(&self, other: &Socket) -> bool {
        (&self.protocol, self.family, self.inode, &self.ends) == (&other.protocol, other.family, other.inode, &other.ends)
    }
}

impl Eq for Socket {}

impl File {
    /// From what readlink(2) says of /proc/PID/fd/N (d_path() and the d_dname() of each file system in the kernel).
    pub fn of_link(link: &Arc<[u8]>) -> File {
        const DELETED: &[u8] = b" (deleted)";
        let inode = || {
            let (kind, number) = link.strip_suffix(b"]")?.split_at(link.iter().position(|byte| *byte == b':')?);
            Some((kind, str::from_utf8(number.strip_prefix(b":[")?).ok()?.parse().ok()?))
        };
        if link.starts_with(b"/") {
            return match link.strip_suffix(DELETED) {
                None => File::Path(Arc::clone(link)),
                Some(path) => match path.strip_prefix(b"/memfd:") {
                    Some(name) => File::Memory(name.into()),
                    None => File::OldPath { path: path.into(), deleted: true, cut: false },
                },
            };
        }
        if let Some(name) = link.strip_prefix(b"anon_inode:") {
            return File::Anonymous(name.into());
        }
        match inode() {
            Some((b"socket", inode)) => File::Socket(Arc::new(Socket { inode, ..Socket::default() })),
            Some((b"pipe", inode)) => File::Pipe { inode },
            Some((kind, inode)) => File::Namespace { kind: kind.into(), inode },
            None => File::Path(Arc::clone(link)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(link: &str) -> File {
        File::of_link(&link.as_bytes().into())
    }

    #[test]
    fn a_link_tells_what_kind_of_file_it_is() {
        let bytes = |text: &str| -> Arc<[u8]> { text.as_bytes().into() };
        assert_eq!(of("/etc/passwd"), File::Path(bytes("/etc/passwd")));
        assert_eq!(of("/tmp/x (deleted)"), File::OldPath { path: bytes("/tmp/x"), deleted: true, cut: false });
        assert_eq!(of("/memfd:sealed (deleted)"), File::Memory(bytes("sealed")));
        assert_eq!(of("socket:[42]"), File::Socket(Arc::new(Socket { inode: 42, ..Socket::default() })));
        assert_eq!(of("pipe:[7]"), File::Pipe { inode: 7 });
        assert_eq!(of("anon_inode:[eventpoll]"), File::Anonymous(bytes("[eventpoll]")));
        assert_eq!(of("anon_inode:inotify"), File::Anonymous(bytes("inotify")));
        assert_eq!(of("net:[4026531840]"), File::Namespace { kind: bytes("net"), inode: 4_026_531_840 });
        for odd in ["", "pipe:[x]", "pipe:[", "[7]"] {
            assert_eq!(of(odd), File::Path(bytes(odd)), "{odd}");
        }
    }
}
