//! The files behind descriptors.

use super::object::{Bytes, Integer};
use crate::event::{DeviceKind, File, Port, Socket, SocketAddresses, UnixName};
use serde_json::{Map, Value};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::sync::Arc;

/// Returns the file of a descriptor, if the object has one that is known.
pub fn file(descriptor: &Map<String, Value>) -> Option<File> {
    let object = descriptor.get("file")?.as_object()?;
    let bytes = |name: &str| object.get(name).and_then(Bytes::of).map(Arc::<[u8]>::from);
    let number = |name: &str| object.get(name).and_then(Integer::of).map(Integer::unsigned);
    let is = |name: &str| object.get(name).and_then(Value::as_bool) == Some(true);
    if let Some(path) = bytes("path") {
        let (deleted, cut) = (is("deleted"), is("cut"));
        return Some(match object.get("device").and_then(Value::as_object) {
            Some(device) => device_file(path, device),
            None if deleted || cut => File::OldPath { path, deleted, cut },
            None => File::Path(path),
        });
    }
    if let Some(socket) = object.get("socket").and_then(Value::as_object) {
        return Some(File::Socket(Arc::new(self::socket(socket))));
    }
    let of_name = bytes("memfd").map(File::Memory).or_else(|| bytes("anonymous").map(File::Anonymous));
    let of_namespace = || Some(File::Namespace { kind: bytes("namespace")?, inode: number("inode").unwrap_or_default() });
    let of_process = || Some(File::Process { pid: number("pidfd")?.try_into().ok()? });
    of_name.or_else(|| number("pipe").map(|inode| File::Pipe { inode })).or_else(of_namespace).or_else(of_process)
}

fn device_file(path: Arc<[u8]>, device: &Map<String, Value>) -> File {
    let is_block = device.get("kind").and_then(Value::as_str) == Some("block");
    let kind = if is_block { DeviceKind::Block } else { DeviceKind::Character };
    File::Device { path, kind, major: small(device, "major"), minor: small(device, "minor") }
}

fn socket(object: &Map<String, Value>) -> Socket {
    let number = |name: &str| object.get(name).and_then(Integer::of).map_or(0, Integer::unsigned);
    let end = |name: &str| object.get(name).and_then(Value::as_object);
    // An end that is not set has no member.
    let unset = |other: Option<SocketAddr>| SocketAddr::new(other.map_or(Ipv4Addr::UNSPECIFIED.into(), |other| unspecified(other.ip())), 0);
    let ends = match (end("local"), end("remote")) {
        (Some(end), _) | (_, Some(end)) if end.contains_key("context") => {
            let of = |name: &str| {
                object.get(name).and_then(Value::as_object).map_or((0, Port(0)), |end| (small(end, "context"), Port(small(end, "port"))))
            };
            SocketAddresses::Vsock { local: of("local"), remote: of("remote") }
        }
        (None, None) => of_other_family(object),
        (local, remote) => {
            let [local, remote] = [local, remote].map(|end| end.and_then(address));
            SocketAddresses::Internet { local: local.unwrap_or(unset(remote)), remote: remote.unwrap_or(unset(local)) }
        }
    };
    let protocol = object.get("protocol").and_then(Bytes::of).unwrap_or_default().into();
    let family = end("family").map_or(0, |family| small(family, "value")) as u16;
    Socket { protocol, family, inode: number("inode"), ends, ..Socket::default() }
}

/// Returns the addresses of a socket that has none of the internet.
fn of_other_family(object: &Map<String, Value>) -> SocketAddresses {
    let bytes = |name: &str| object.get(name).and_then(Bytes::of).map(Vec::into_boxed_slice);
    if let Some(number) = object.get("number").and_then(Value::as_object) {
        let protocol = small(number, "value");
        return match object.contains_key("interface") {
            true => SocketAddresses::Packet { protocol, interface: small(object, "interface") },
            false => SocketAddresses::Netlink { protocol, port: Port(small(object, "port")) },
        };
    }
    let name = bytes("path").map(UnixName::Path).or_else(|| bytes("abstract").map(UnixName::Abstract));
    let peer = object.get("peer").and_then(Integer::of).map(Integer::unsigned);
    match (name, peer) {
        (None, None) => SocketAddresses::Unknown,
        (name, peer) => SocketAddresses::Unix { peer: peer.unwrap_or_default(), name: name.unwrap_or_default() },
    }
}

/// Returns the address and the port of an object.
pub fn address(object: &Map<String, Value>) -> Option<SocketAddr> {
    let ip: IpAddr = object.get("ip")?.as_str()?.parse().ok()?;
    let port = object.get("port").and_then(Integer::of)?.0.try_into().ok()?;
    Some(match ip {
        IpAddr::V4(_) => SocketAddr::new(ip, port),
        IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, small(object, "scope")).into(),
    })
}

fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Returns a number of 32 bits; 0 if the object has none.
fn small(object: &Map<String, Value>, name: &str) -> u32 {
    object.get(name).and_then(Integer::of).map_or(0, |number| number.unsigned() as u32)
}
