//! Sets and gets socket options of every type, with known values.

use crate::told;

/// The constants of `SO_TIMESTAMPING_OLD` and `TCP_INFO` in the kernel's headers.
const SO_TIMESTAMPING_OLD: i32 = 37;
const PACKET_VERSION: i32 = 10;
const MCAST_JOIN_GROUP: i32 = 42;

pub fn run() {
    let socket = |family: i32, kind: i32| unsafe { libc::socket(family, kind, 0) };
    let tcp = socket(libc::AF_INET, libc::SOCK_STREAM);
    let udp = socket(libc::AF_INET, libc::SOCK_DGRAM);
    let mut pair = [0; 2];
    assert_eq!(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr()) }, 0);
    of_sockets(tcp, pair[0]);
    of_tcp(tcp);
    of_ip(udp);
    refused(tcp);
}

fn of_sockets(tcp: i32, unix: i32) {
    const LEVEL: i32 = libc::SOL_SOCKET;
    set(tcp, LEVEL, libc::SO_REUSEADDR, &words(&[1]));
    get(tcp, LEVEL, libc::SO_REUSEADDR, 4);
    set(tcp, LEVEL, libc::SO_LINGER, &words(&[1, 30]));
    get(tcp, LEVEL, libc::SO_LINGER, 8);
    set(tcp, LEVEL, libc::SO_RCVTIMEO, &[5u64, 0].map(u64::to_ne_bytes).concat());
    get(tcp, LEVEL, libc::SO_RCVTIMEO, 16);
    for option in [libc::SO_TYPE, libc::SO_PROTOCOL, libc::SO_DOMAIN, libc::SO_ERROR] {
        get(tcp, LEVEL, option, 4);
    }
    get(unix, LEVEL, libc::SO_PEERCRED, 12);
    set(tcp, LEVEL, libc::SO_BINDTODEVICE, b"lo\0");
    get(tcp, LEVEL, libc::SO_BINDTODEVICE, 16);
    // SOF_TIMESTAMPING_RX_SOFTWARE and SOF_TIMESTAMPING_SOFTWARE; the second word is newer.
    set(tcp, LEVEL, SO_TIMESTAMPING_OLD, &words(&[0x18]));
    set(tcp, LEVEL, SO_TIMESTAMPING_OLD, &words(&[0x18, 0]));
}

fn of_tcp(tcp: i32) {
    set(tcp, libc::IPPROTO_TCP, libc::TCP_NODELAY, &words(&[1]));
    set(tcp, libc::IPPROTO_TCP, libc::TCP_CONGESTION, b"reno");
    get(tcp, libc::IPPROTO_TCP, libc::TCP_CONGESTION, 16);
    get(tcp, libc::IPPROTO_TCP, libc::TCP_INFO, 8);
}

fn of_ip(udp: i32) {
    let loopback = u32::from_ne_bytes([127, 0, 0, 1]);
    let group = |last: u8| u32::from_ne_bytes([224, 0, 0, last]);
    set(udp, libc::IPPROTO_IP, libc::IP_TTL, &words(&[9]));
    set(udp, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &words(&[loopback]));
    set(udp, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &words(&[0, loopback]));
    set(udp, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &words(&[0, loopback, 0]));
    get(udp, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, 4);
    set(udp, libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, &words(&[group(99), loopback]));
    let mut request = [0u8; 136];
    request[..4].copy_from_slice(&1u32.to_ne_bytes());
    request[8..10].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    request[12..16].copy_from_slice(&group(98).to_ne_bytes());
    set(udp, libc::IPPROTO_IP, MCAST_JOIN_GROUP, &request);
}

/// Makes calls that fail, whose values are still those of their options.
fn refused(tcp: i32) {
    set(-1, libc::SOL_PACKET, PACKET_VERSION, &words(&[2]));
    get(-1, libc::SOL_SOCKET, libc::SO_LINGER, 8);
    // These are shorter than the struct, and an option that no kernel has.
    set(tcp, libc::SOL_SOCKET, libc::SO_LINGER, &words(&[1]));
    set(tcp, libc::IPPROTO_TCP, 9999, b"abc");
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn set(fd: i32, level: i32, option: i32, value: &[u8]) {
    unsafe { told::syscall!(libc::SYS_setsockopt, fd, level, option, value, value.len()) };
}

fn get(fd: i32, level: i32, option: i32, room: u32) {
    let mut value = [0u8; 64];
    let mut length = room;
    unsafe { told::syscall!(libc::SYS_getsockopt, fd, level, option, &mut value[..], &raw mut length) };
}
