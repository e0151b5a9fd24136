//! The names of open files, as readlink(2) of /proc/PID/fd/N has them. Sockets have their addresses, as `strace -yy` has it
//! (`TCP:[127.0.0.1:51234->127.0.0.1:80]`), and pidfds their process.
//!
//! What a socket does not have is not there: one that listens has no remote end, one that is not bound only its inode.

use super::tables::constants::{ETHERNET_PROTOCOL, NETLINK_FAMILY};
use crate::event::{Ends, File, Socket, UnixName};
use std::borrow::Cow;
use std::net::SocketAddr;

/// VMADDR_CID_ANY, VMADDR_PORT_ANY (include/uapi/linux/vm_sockets.h)
const VSOCK_ANY: u32 = u32::MAX;

/// The name, unescaped.
pub fn name(file: &File) -> Cow<'_, [u8]> {
    let text = match file {
        File::Path(path) => return Cow::Borrowed(path),
        File::Socket(socket) => return Cow::Borrowed(socket.name.get_or_init(|| of_socket(socket).into())),
        File::OldPath { path, deleted, cut } => {
            [if *cut { b"...".as_slice() } else { b"" }, path, if *deleted { b" (deleted)" } else { b"" }].concat()
        }
        File::Pipe { inode } => format!("pipe:[{inode}]").into_bytes(),
        File::Memory(name) => [b"/memfd:", &name[..], b" (deleted)"].concat(),
        File::Anonymous(name) => [b"anon_inode:", &name[..]].concat(),
        File::Namespace { kind, inode } => [kind, format!(":[{inode}]").as_bytes()].concat(),
        File::Process { pid } => format!("pid:{pid}").into_bytes(),
    };
    Cow::Owned(text)
}

fn of_socket(socket: &Socket) -> Vec<u8> {
    let mut name = if socket.protocol.is_empty() { b"socket".to_vec() } else { socket.protocol.to_vec() };
    name.extend_from_slice(b":[");
    name.extend(inside(socket));
    name.push(b']');
    name
}

fn inside(socket: &Socket) -> Vec<u8> {
    let text = match &socket.ends {
        Ends::Unix { peer, name } => return unix(socket.inode, *peer, name),
        Ends::Internet { local, remote } => internet(*local, *remote),
        Ends::Netlink { protocol, port } => Some(netlink(*protocol, *port)),
        Ends::Packet { protocol, interface } => Some(packet(*protocol, *interface)),
        Ends::Vsock { local, remote } => vsock(*local, *remote),
        Ends::Unknown => None,
    };
    text.unwrap_or_else(|| socket.inode.to_string()).into_bytes()
}

fn internet(local: SocketAddr, remote: SocketAddr) -> Option<String> {
    match (is_end(local), is_end(remote)) {
        (false, false) => None,
        (true, false) => Some(local.to_string()),
        _ => Some(format!("{local}->{remote}")),
    }
}

/// Whether a socket has this end.
pub fn is_end(address: SocketAddr) -> bool {
    address.port() != 0 || !address.ip().is_unspecified()
}

/// Its inode and its peer's, and the name it is bound to: a path, or, behind an @, a name of its own kind.
fn unix(inode: u64, peer: u64, name: &UnixName) -> Vec<u8> {
    let mut text = inode.to_string().into_bytes();
    if peer != 0 {
        text.extend(format!("->{peer}").bytes());
    }
    let (mark, name) = match name {
        UnixName::Unnamed => return text,
        UnixName::Abstract(name) => (&b",@\""[..], name),
        UnixName::Path(path) => (&b",\""[..], path),
    };
    text.extend_from_slice(mark);
    text.extend_from_slice(name);
    text.push(b'"');
    text
}

/// `ROUTE:1234`: protocol and port.
fn netlink(protocol: u32, port: u32) -> String {
    let protocol = match NETLINK_FAMILY.name(u64::from(protocol)) {
        Some(name) => NETLINK_FAMILY.short(name).to_owned(),
        None => protocol.to_string(),
    };
    format!("{protocol}:{port}")
}

/// `IP@2`: what is received, and of which interface.
fn packet(protocol: u32, interface: u32) -> String {
    let protocol = match ETHERNET_PROTOCOL.name(u64::from(protocol)) {
        Some(name) => ETHERNET_PROTOCOL.short(name).to_owned(),
        None => format!("{protocol:#x}"),
    };
    format!("{protocol}@{interface}")
}

fn vsock(local: (u32, u32), remote: (u32, u32)) -> Option<String> {
    let number = |number: u32| if number == VSOCK_ANY { "*".to_owned() } else { number.to_string() };
    let end = |(context, port): (u32, u32)| format!("{}:{}", number(context), number(port));
    let (local, remote) = (end(local), end(remote));
    match (local.as_str(), remote.as_str()) {
        ("0:0" | "*:*", "0:0" | "*:*") => None,
        (_, "0:0" | "*:*") => Some(local),
        _ => Some(format!("{local}->{remote}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn text(protocol: &str, ends: Ends) -> String {
        let socket = Socket { protocol: protocol.as_bytes().into(), inode: 42, ends, ..Socket::default() };
        String::from_utf8(name(&File::Socket(Arc::new(socket))).into_owned()).unwrap()
    }

    fn inet(local: &str, remote: &str) -> Ends {
        Ends::Internet { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
    }

    #[test]
    fn internet_sockets_have_their_ends() {
        assert_eq!(text("TCP", inet("0.0.0.0:0", "0.0.0.0:0")), "TCP:[42]");
        assert_eq!(text("TCP", inet("127.0.0.1:80", "0.0.0.0:0")), "TCP:[127.0.0.1:80]");
        assert_eq!(text("TCP", inet("127.0.0.1:80", "127.0.0.1:51234")), "TCP:[127.0.0.1:80->127.0.0.1:51234]");
        assert_eq!(text("UDPv6", inet("[::1]:53", "[::]:0")), "UDPv6:[[::1]:53]");
    }

    #[test]
    fn unix_sockets_have_their_peer_and_their_name() {
        let of = |peer, name| text("UNIX-STREAM", Ends::Unix { peer, name });
        assert_eq!(of(0, UnixName::Unnamed), "UNIX-STREAM:[42]");
        assert_eq!(of(43, UnixName::Unnamed), "UNIX-STREAM:[42->43]");
        assert_eq!(of(43, UnixName::Path(b"/run/x"[..].into())), "UNIX-STREAM:[42->43,\"/run/x\"]");
        assert_eq!(of(0, UnixName::Abstract(b"name"[..].into())), "UNIX-STREAM:[42,@\"name\"]");
    }

    #[test]
    fn other_sockets_have_what_their_family_has() {
        assert_eq!(text("NETLINK", Ends::Netlink { protocol: 0, port: 77 }), "NETLINK:[ROUTE:77]");
        assert_eq!(text("PACKET", Ends::Packet { protocol: 3, interface: 2 }), "PACKET:[ALL@2]");
        let any = (VSOCK_ANY, VSOCK_ANY);
        assert_eq!(text("AF_VSOCK", Ends::Vsock { local: any, remote: (0, 0) }), "AF_VSOCK:[42]");
        assert_eq!(text("AF_VSOCK", Ends::Vsock { local: (1, 5000), remote: (0, 0) }), "AF_VSOCK:[1:5000]");
        assert_eq!(text("HCI", Ends::Unknown), "HCI:[42]");
        assert_eq!(text("", Ends::Unknown), "socket:[42]");
    }

    #[test]
    fn what_a_link_says_is_the_name_again() {
        for link in [
            "/etc/passwd",
            "/tmp/x (deleted)",
            "/memfd:sealed (deleted)",
            "socket:[42]",
            "pipe:[7]",
            "anon_inode:[eventpoll]",
            "net:[4026531840]",
            "odd",
            "",
        ] {
            assert_eq!(*name(&File::of_link(&link.as_bytes().into())), *link.as_bytes());
        }
        assert_eq!(*name(&File::Process { pid: 77 }), *b"pid:77");
        let cut = File::OldPath { path: b"/deep/x"[..].into(), deleted: false, cut: true };
        assert_eq!(*name(&cut), *b".../deep/x");
    }
}
