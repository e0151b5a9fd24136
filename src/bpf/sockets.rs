//! How sockets are called: `TCP:[127.0.0.1:51234->127.0.0.1:80]`, as `strace -yy` has it.
//!
//! What a socket does not have is not there: one that listens has no remote end, one that is not bound only its inode.

use super::record::SocketNote;
use crate::beauty::tables::constants::{ETHERNET_PROTOCOL, NETLINK_FAMILY};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// include/linux/socket.h
const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const AF_NETLINK: u16 = 16;
const AF_PACKET: u16 = 17;
const AF_VSOCK: u16 = 40;

/// VMADDR_CID_ANY, VMADDR_PORT_ANY (include/uapi/linux/vm_sockets.h)
const VSOCK_ANY: u32 = u32::MAX;

/// A socket's name; it has this inode in sockfs.
pub(super) fn name(socket: &SocketNote<'_>, inode: u64) -> Vec<u8> {
    let mut name = if socket.protocol_name.is_empty() { b"socket".to_vec() } else { socket.protocol_name.to_vec() };
    name.extend_from_slice(b":[");
    name.extend(inside(socket, inode));
    name.push(b']');
    name
}

fn inside(socket: &SocketNote<'_>, inode: u64) -> Vec<u8> {
    let text = match socket.family {
        AF_UNIX => return unix(socket, inode),
        AF_INET | AF_INET6 => internet(socket),
        AF_NETLINK => netlink(socket),
        AF_PACKET => packet(socket),
        AF_VSOCK => vsock(socket),
        _ => None,
    };
    text.unwrap_or_else(|| inode.to_string()).into_bytes()
}

fn internet(socket: &SocketNote<'_>) -> Option<String> {
    let end = |words: [u32; 4], port: u32| {
        let mut bytes = [0; 16];
        bytes.chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
        let ip = match socket.family {
            AF_INET => Ipv4Addr::from([bytes[0], bytes[1], bytes[2], bytes[3]]).into(),
            _ => Ipv6Addr::from(bytes).into(),
        };
        SocketAddr::new(ip, port as u16)
    };
    let (local, remote) = (end(socket.local, socket.local_port), end(socket.remote, socket.remote_port));
    let is_none = |end: SocketAddr| end.port() == 0 && end.ip().is_unspecified();
    match (is_none(local), is_none(remote)) {
        (true, true) => None,
        (false, true) => Some(local.to_string()),
        _ => Some(format!("{local}->{remote}")),
    }
}

/// Its inode and its peer's, and the name it is bound to: a path, or, behind an @, a name of its own kind.
fn unix(socket: &SocketNote<'_>, inode: u64) -> Vec<u8> {
    let mut text = inode.to_string().into_bytes();
    if socket.peer != 0 {
        text.extend(format!("->{}", socket.peer).bytes());
    }
    let (mark, address) = match socket.address {
        [] => return text,
        [0, name @ ..] => (&b",@\""[..], name),
        path => (&b",\""[..], path.split(|&byte| byte == 0).next().unwrap_or_default()),
    };
    text.extend_from_slice(mark);
    text.extend_from_slice(address);
    text.push(b'"');
    text
}

/// `ROUTE:1234`: protocol and port; port 0 is the kernel's own, which a socket has until it is bound.
fn netlink(socket: &SocketNote<'_>) -> Option<String> {
    let protocol = match NETLINK_FAMILY.name(u64::from(socket.protocol)) {
        Some(name) => NETLINK_FAMILY.short(name).to_owned(),
        None => socket.protocol.to_string(),
    };
    Some(format!("{protocol}:{}", socket.local[0]))
}

/// `IP@2`: what is received, and of which interface; 0 is any.
fn packet(socket: &SocketNote<'_>) -> Option<String> {
    let protocol = match ETHERNET_PROTOCOL.name(u64::from(socket.protocol)) {
        Some(name) => ETHERNET_PROTOCOL.short(name).to_owned(),
        None => format!("{:#x}", socket.protocol),
    };
    Some(format!("{protocol}@{}", socket.local[0]))
}

fn vsock(socket: &SocketNote<'_>) -> Option<String> {
    let number = |number: u32| if number == VSOCK_ANY { "*".to_owned() } else { number.to_string() };
    let end = |words: [u32; 4], port: u32| format!("{}:{}", number(words[0]), number(port));
    let (local, remote) = (end(socket.local, socket.local_port), end(socket.remote, socket.remote_port));
    match (local.as_str(), remote.as_str()) {
        ("0:0" | "*:*", "0:0" | "*:*") => None,
        (_, "0:0" | "*:*") => Some(local),
        _ => Some(format!("{local}->{remote}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(family: u16, protocol_name: &'static str) -> SocketNote<'static> {
        SocketNote {
            family,
            protocol: 0,
            local: [0; 4],
            remote: [0; 4],
            local_port: 0,
            remote_port: 0,
            peer: 0,
            protocol_name: protocol_name.as_bytes(),
            address: b"",
        }
    }

    fn text(socket: &SocketNote<'_>) -> String {
        String::from_utf8(name(socket, 42)).unwrap()
    }

    #[test]
    fn internet() {
        let none = socket(AF_INET, "TCP");
        assert_eq!(text(&none), "TCP:[42]");
        let home = [u32::from_le_bytes([127, 0, 0, 1]), 0, 0, 0];
        let listens = SocketNote { local: home, local_port: 80, ..none };
        assert_eq!(text(&listens), "TCP:[127.0.0.1:80]");
        assert_eq!(text(&SocketNote { remote: home, remote_port: 51234, ..listens }), "TCP:[127.0.0.1:80->127.0.0.1:51234]");
        let six = SocketNote { local: [0, 0, 0, 1 << 24], local_port: 53, ..socket(AF_INET6, "UDPv6") };
        assert_eq!(text(&six), "UDPv6:[[::1]:53]");
    }

    #[test]
    fn unix() {
        let none = socket(AF_UNIX, "UNIX-STREAM");
        assert_eq!(text(&none), "UNIX-STREAM:[42]");
        assert_eq!(text(&SocketNote { peer: 43, ..none }), "UNIX-STREAM:[42->43]");
        assert_eq!(text(&SocketNote { peer: 43, address: b"/run/x\0", ..none }), "UNIX-STREAM:[42->43,\"/run/x\"]");
        assert_eq!(text(&SocketNote { address: b"\0name", ..none }), "UNIX-STREAM:[42,@\"name\"]");
    }

    #[test]
    fn others() {
        assert_eq!(text(&SocketNote { local: [77, 0, 0, 0], ..socket(AF_NETLINK, "NETLINK") }), "NETLINK:[ROUTE:77]");
        assert_eq!(text(&SocketNote { protocol: 3, local: [2, 0, 0, 0], ..socket(AF_PACKET, "PACKET") }), "PACKET:[ALL@2]");
        let any = SocketNote { local: [VSOCK_ANY, 0, 0, 0], local_port: VSOCK_ANY, ..socket(AF_VSOCK, "AF_VSOCK") };
        assert_eq!(text(&any), "AF_VSOCK:[42]");
        assert_eq!(text(&SocketNote { local: [1, 0, 0, 0], local_port: 5000, ..any }), "AF_VSOCK:[1:5000]");
        assert_eq!(text(&socket(31, "HCI")), "HCI:[42]");
    }
}
