//! Names of open files, as readlink(2) of /proc/PID/fd/N returns them. Sockets are named by their addresses, as with
//! `strace -yy` (`TCP:[127.0.0.1:51234->127.0.0.1:80]`), and pidfds by their process.
//!
//! The name of a socket has only the addresses that are set: a listening socket has no remote address, and an unbound
//! socket has only its inode.

use super::tables::constants::{ETHERNET_PROTOCOL, NETLINK_FAMILY};
use crate::event::{File, Port, Socket, SocketAddresses, UnixName};
use std::borrow::Cow;
use std::net::SocketAddr;

/// VMADDR_CID_ANY, VMADDR_PORT_ANY (include/uapi/linux/vm_sockets.h)
const VSOCK_ANY: u32 = u32::MAX;

/// Returns the name of a file, unescaped.
pub fn name(file: &File) -> Cow<'_, [u8]> {
    let text = match file {
        File::Path(path) | File::Device { path, .. } => return Cow::Borrowed(path),
        File::Socket(socket) => return Cow::Borrowed(socket.name.get_or_init(|| socket_name(socket).into())),
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

fn socket_name(socket: &Socket) -> Vec<u8> {
    let mut name = if socket.protocol.is_empty() { b"socket".to_vec() } else { socket.protocol.to_vec() };
    name.extend_from_slice(b":[");
    name.extend(addresses(socket));
    name.push(b']');
    name
}

/// Returns the text between the brackets: the addresses that are set, or the inode.
fn addresses(socket: &Socket) -> Vec<u8> {
    let text = match &socket.ends {
        SocketAddresses::Unix { peer, name } => return unix(socket.inode, *peer, name),
        SocketAddresses::Internet { local, remote } => internet(*local, *remote),
        SocketAddresses::Netlink { protocol, port } => Some(netlink(*protocol, *port)),
        SocketAddresses::Packet { protocol, interface } => Some(packet(*protocol, *interface)),
        SocketAddresses::Vsock { local, remote } => vsock(*local, *remote),
        SocketAddresses::Unknown => None,
    };
    text.unwrap_or_else(|| socket.inode.to_string()).into_bytes()
}

fn internet(local: SocketAddr, remote: SocketAddr) -> Option<String> {
    match (is_set(local), is_set(remote)) {
        (false, false) => None,
        (true, false) => Some(local.to_string()),
        _ => Some(format!("{local}->{remote}")),
    }
}

/// Returns whether an address of a socket is set: it has a port or an IP address.
pub fn is_set(address: SocketAddr) -> bool {
    address.port() != 0 || !address.ip().is_unspecified()
}

/// Returns the inodes of a Unix socket and of its peer, and the name it is bound to: a path, or an abstract name after
/// `@`.
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

/// Returns protocol and port of a netlink socket: `ROUTE:1234`.
fn netlink(protocol: u32, Port(port): Port) -> String {
    let protocol = match NETLINK_FAMILY.name(u64::from(protocol)) {
        Some(name) => NETLINK_FAMILY.short(name).to_owned(),
        None => protocol.to_string(),
    };
    format!("{protocol}:{port}")
}

/// Returns the protocol and the index of the interface of a packet socket: `IP@2`.
fn packet(protocol: u32, interface: u32) -> String {
    let protocol = match ETHERNET_PROTOCOL.name(u64::from(protocol)) {
        Some(name) => ETHERNET_PROTOCOL.short(name).to_owned(),
        None => format!("{protocol:#x}"),
    };
    format!("{protocol}@{interface}")
}

fn vsock(local: (u32, Port), remote: (u32, Port)) -> Option<String> {
    let number = |number: u32| if number == VSOCK_ANY { "*".to_owned() } else { number.to_string() };
    let end = |(context, Port(port)): (u32, Port)| format!("{}:{}", number(context), number(port));
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

    fn text(protocol: &str, ends: SocketAddresses) -> String {
        let socket = Socket { protocol: protocol.as_bytes().into(), inode: 42, ends, ..Socket::default() };
        String::from_utf8(name(&File::Socket(Arc::new(socket))).into_owned()).unwrap()
    }

    fn inet(local: &str, remote: &str) -> SocketAddresses {
        SocketAddresses::Internet { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
    }

    #[test]
    fn internet_sockets_are_named_by_the_addresses_that_are_set() {
        assert_eq!(text("TCP", inet("0.0.0.0:0", "0.0.0.0:0")), "TCP:[42]");
        assert_eq!(text("TCP", inet("127.0.0.1:80", "0.0.0.0:0")), "TCP:[127.0.0.1:80]");
        assert_eq!(text("TCP", inet("127.0.0.1:80", "127.0.0.1:51234")), "TCP:[127.0.0.1:80->127.0.0.1:51234]");
        assert_eq!(text("UDPv6", inet("[::1]:53", "[::]:0")), "UDPv6:[[::1]:53]");
    }

    #[test]
    fn unix_sockets_are_named_by_inode_peer_and_bound_name() {
        let of = |peer, name| text("UNIX-STREAM", SocketAddresses::Unix { peer, name });
        assert_eq!(of(0, UnixName::Unnamed), "UNIX-STREAM:[42]");
        assert_eq!(of(43, UnixName::Unnamed), "UNIX-STREAM:[42->43]");
        assert_eq!(of(43, UnixName::Path(b"/run/x"[..].into())), "UNIX-STREAM:[42->43,\"/run/x\"]");
        assert_eq!(of(0, UnixName::Abstract(b"name"[..].into())), "UNIX-STREAM:[42,@\"name\"]");
    }

    #[test]
    fn other_sockets_are_named_by_the_addresses_of_their_family() {
        assert_eq!(text("NETLINK", SocketAddresses::Netlink { protocol: 0, port: Port(77) }), "NETLINK:[ROUTE:77]");
        assert_eq!(text("PACKET", SocketAddresses::Packet { protocol: 3, interface: 2 }), "PACKET:[ALL@2]");
        let (any, none) = ((VSOCK_ANY, Port(VSOCK_ANY)), (0, Port(0)));
        assert_eq!(text("AF_VSOCK", SocketAddresses::Vsock { local: any, remote: none }), "AF_VSOCK:[42]");
        assert_eq!(text("AF_VSOCK", SocketAddresses::Vsock { local: (1, Port(5000)), remote: none }), "AF_VSOCK:[1:5000]");
        assert_eq!(text("HCI", SocketAddresses::Unknown), "HCI:[42]");
        assert_eq!(text("", SocketAddresses::Unknown), "socket:[42]");
    }

    #[test]
    fn a_file_from_a_proc_link_has_the_text_of_the_link_as_name() {
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
