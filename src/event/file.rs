//! Open files: what file descriptors refer to.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

/// An open file, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum File {
    /// A file that has a path.
    Path(Arc<[u8]>),
    /// A file whose path no longer exists, or whose path is known without its beginning.
    OldPath {
        /// The path that the file had, or the end of its path.
        path: Arc<[u8]>,
        /// The file was deleted. If only readlink(2) reports it, a file whose name ends in ` (deleted)` is
        /// indistinguishable.
        deleted: bool,
        /// The beginning of the path was cut off because it did not fit.
        cut: bool,
    },
    /// A device that has a path. Only the BPF programs recognize devices; otherwise they are files with a path.
    Device {
        /// The path of the special file.
        path: Arc<[u8]>,
        /// Whether it is a character or a block device.
        kind: DeviceKind,
        /// The major number (makedev(3)).
        major: u32,
        /// The minor number.
        minor: u32,
    },
    /// A socket (socket(7)).
    Socket(Arc<Socket>),
    /// A pipe without a path (pipe(2)).
    Pipe {
        /// The inode number in pipefs, which both ends have.
        inode: u64,
    },
    /// A file created by memfd_create(2), with the name that was passed to it.
    Memory(Arc<[u8]>),
    /// An anonymous inode, with the kernel's name for its kind: `[eventpoll]`, `[eventfd]`.
    Anonymous(Arc<[u8]>),
    /// A namespace (namespaces(7)).
    Namespace {
        /// The kind as in /proc/PID/ns: `net`, `mnt`.
        kind: Arc<[u8]>,
        /// The inode number in nsfs, which identifies the namespace.
        inode: u64,
    },
    /// A process (pidfd_open(2)).
    Process {
        /// The number of the process, as [`super::TaskId`] has it.
        pid: i32,
    },
}

/// The kinds of devices (mknod(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// S_IFCHR
    Character,
    /// S_IFBLK
    Block,
}

/// A socket. Only the BPF programs record more of it than its inode.
#[derive(Clone, Debug, Default)]
pub struct Socket {
    /// The protocol's name in the kernel: `TCP`, `UNIX-STREAM`; empty if it is not known.
    pub protocol: Box<[u8]>,
    /// `AF_*`; 0 if it is not known.
    pub family: u16,
    /// The inode number in sockfs.
    pub inode: u64,
    /// The addresses of both ends, in the form that the family has.
    pub ends: SocketAddresses,
    /// The socket's description in output lines, rendered on first use.
    pub(crate) name: OnceLock<Box<[u8]>>,
}

/// A port: the number by which a transport protocol (TCP, UDP, vsock) or netlink tells sockets of one address apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Port(pub u32);

/// The addresses of a socket. An end that the socket does not have is unspecified: address and port are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SocketAddresses {
    /// The addresses were not recorded, or rtrace does not decode those of the family.
    #[default]
    Unknown,
    /// An IPv4 or IPv6 socket (ip(7), ipv6(7)).
    Internet {
        /// The address that the socket is bound to.
        local: SocketAddr,
        /// The address that the socket is connected to.
        remote: SocketAddr,
    },
    /// A UNIX socket (unix(7)).
    Unix {
        /// The inode of the peer socket; 0 if there is none.
        peer: u64,
        /// The address that the socket is bound to.
        name: UnixName,
    },
    /// A netlink socket (netlink(7)).
    Netlink {
        /// `NETLINK_*`.
        protocol: u32,
        /// The port that the socket is bound to; 0, which is the kernel's own, if it is not bound.
        port: Port,
    },
    /// A packet socket (packet(7)).
    Packet {
        /// The protocol that it receives (`ETH_P_*`), in the machine's byte order.
        protocol: u32,
        /// The index of the network interface; 0 for any.
        interface: u32,
    },
    /// A socket to a virtual machine or its host (vsock(7)).
    Vsock {
        /// The context identifier and the port of this end.
        local: (u32, Port),
        /// The context identifier and the port of the other end.
        remote: (u32, Port),
    },
}

/// The address that a UNIX socket is bound to (unix(7)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UnixName {
    /// The socket is not bound.
    #[default]
    Unnamed,
    /// A path in the file system; not escaped.
    Path(Box<[u8]>),
    /// A name in the abstract namespace, without the leading NUL; not escaped.
    Abstract(Box<[u8]>),
}

impl PartialEq for Socket {
    fn eq(&self, other: &Socket) -> bool {
        (&self.protocol, self.family, self.inode, &self.ends) == (&other.protocol, other.family, other.inode, &other.ends)
    }
}

impl Eq for Socket {}

impl File {
    /// Parses the target of the link /proc/PID/fd/N, as readlink(2) returns it (d_path() in the kernel, and the
    /// d_dname() of each file system).
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
    fn a_link_target_shows_the_kind_of_file() {
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
