//! Converts the programs' description of a socket to a [`Socket`].

use super::record::SocketInfo;
use crate::event::{Port, Socket, SocketAddresses, UnixName};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// include/linux/socket.h
const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const AF_NETLINK: u16 = 16;
const AF_PACKET: u16 = 17;
const AF_VSOCK: u16 = 40;

/// Returns the socket with this inode in sockfs.
pub(super) fn socket(info: &SocketInfo<'_>, inode: u64) -> Socket {
    let [local, remote] = [(info.local, info.local_port), (info.remote, info.remote_port)];
    let ends = match info.family {
        AF_UNIX => SocketAddresses::Unix { peer: info.peer, name: unix_name(info.address) },
        AF_INET | AF_INET6 => SocketAddresses::Internet { local: internet(info.family, local), remote: internet(info.family, remote) },
        AF_NETLINK => SocketAddresses::Netlink { protocol: info.protocol, port: Port(info.local[0]) },
        AF_PACKET => SocketAddresses::Packet { protocol: info.protocol, interface: info.local[0] },
        AF_VSOCK => SocketAddresses::Vsock { local: (local.0[0], Port(local.1)), remote: (remote.0[0], Port(remote.1)) },
        _ => SocketAddresses::Unknown,
    };
    Socket { protocol: info.protocol_name.into(), family: info.family, inode, ends, ..Socket::default() }
}

fn internet(family: u16, (words, port): ([u32; 4], u32)) -> SocketAddr {
    let mut bytes = [0; 16];
    bytes.chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
    let ip = match family {
        AF_INET => Ipv4Addr::from([bytes[0], bytes[1], bytes[2], bytes[3]]).into(),
        _ => Ipv6Addr::from(bytes).into(),
    };
    SocketAddr::new(ip, port as u16)
}

/// Returns the name of a UNIX socket by the bytes after the family in its `struct sockaddr_un`.
fn unix_name(address: &[u8]) -> UnixName {
    match address {
        [] => UnixName::Unnamed,
        [0, name @ ..] => UnixName::Abstract(name.into()),
        path => UnixName::Path(path.split(|&byte| byte == 0).next().unwrap_or_default().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(family: u16) -> SocketInfo<'static> {
        SocketInfo {
            family,
            protocol: 0,
            local: [0; 4],
            remote: [0; 4],
            local_port: 0,
            remote_port: 0,
            peer: 0,
            protocol_name: b"TCP",
            address: b"",
        }
    }

    #[test]
    fn internet_addresses_are_in_network_byte_order() {
        let home = [u32::from_le_bytes([127, 0, 0, 1]), 0, 0, 0];
        let four = socket(&SocketInfo { local: home, local_port: 80, ..info(AF_INET) }, 42);
        assert_eq!(four.ends, SocketAddresses::Internet { local: "127.0.0.1:80".parse().unwrap(), remote: "0.0.0.0:0".parse().unwrap() });
        assert_eq!((four.inode, &*four.protocol), (42, &b"TCP"[..]));
        let six = socket(&SocketInfo { remote: [0, 0, 0, 1 << 24], remote_port: 53, ..info(AF_INET6) }, 42);
        assert_eq!(six.ends, SocketAddresses::Internet { local: "[::]:0".parse().unwrap(), remote: "[::1]:53".parse().unwrap() });
    }

    #[test]
    fn a_unix_socket_is_bound_to_a_path_or_a_name() {
        let of = |address| socket(&SocketInfo { peer: 43, address, ..info(AF_UNIX) }, 42).ends;
        assert_eq!(of(b""), SocketAddresses::Unix { peer: 43, name: UnixName::Unnamed });
        assert_eq!(of(b"/run/x\0"), SocketAddresses::Unix { peer: 43, name: UnixName::Path(b"/run/x"[..].into()) });
        assert_eq!(of(b"\0name"), SocketAddresses::Unix { peer: 43, name: UnixName::Abstract(b"name"[..].into()) });
    }

    #[test]
    fn sockets_of_other_families_have_numbers() {
        let of = |family| socket(&SocketInfo { protocol: 3, local: [2, 0, 0, 0], local_port: 5000, ..info(family) }, 42).ends;
        assert_eq!(of(AF_NETLINK), SocketAddresses::Netlink { protocol: 3, port: Port(2) });
        assert_eq!(of(AF_PACKET), SocketAddresses::Packet { protocol: 3, interface: 2 });
        assert_eq!(of(AF_VSOCK), SocketAddresses::Vsock { local: (2, Port(5000)), remote: (0, Port(0)) });
        assert_eq!(of(31), SocketAddresses::Unknown);
    }
}
