//! Messages of sockets whose contents are known: control messages and netlink messages.

use crate::told::{self, out};
use std::ffi::c_void;
use std::io::Error;
use std::ptr::from_ref;

/// `SOL_NETLINK`, `NETLINK_EXT_ACK` and `NETLINK_SOCK_DIAG`
const SOL_NETLINK: i32 = 270;
const NETLINK_EXT_ACK: i32 = 11;
const NETLINK_SOCK_DIAG: i32 = 4;
/// `NLM_F_REQUEST`, `NLM_F_ACK` and `NLM_F_DUMP`; `NLMSG_DONE`
const REQUEST: u16 = 1;
const ACK: u16 = 4;
const DUMP: u16 = 0x300;
const DONE: u16 = 3;
/// `RTM_NEWLINK`, `RTM_GETLINK` and `RTM_GETADDR`
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const GET_ADDRESS: u16 = 22;
/// `SOCK_DIAG_BY_FAMILY`, and `GENL_ID_CTRL` with `CTRL_CMD_GETFAMILY`
const BY_FAMILY: u16 = 20;
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;

pub fn run(scene: &str) {
    match scene {
        "control" => {
            rights();
            datagram();
        }
        "netlink" => {
            route();
            sockets();
            families();
        }
        "kernel" => crate::netlink::run(),
        _ => panic!("there is no scene {scene}"),
    }
}

pub fn check(result: i64, call: &str) -> usize {
    usize::try_from(result).unwrap_or_else(|_| panic!("{call}: {}", Error::last_os_error()))
}

fn enable(socket: i32, level: i32, option: i32) {
    let on = 1;
    check(unsafe { told::syscall!(libc::SYS_setsockopt, socket, level, option, &raw const on, 4) }, "setsockopt");
}

/// Returns the bytes of a control message, padded to a word.
fn control(level: i32, kind: i32, data: &[i32]) -> Vec<u8> {
    let data: Vec<u8> = data.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut bytes = (16 + data.len()).to_ne_bytes().to_vec();
    bytes.extend([level.to_ne_bytes(), kind.to_ne_bytes()].concat());
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

fn send(socket: i32, data: &[u8], control: &[u8], to: Option<&libc::sockaddr_in>) {
    let mut part = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    (message.msg_control, message.msg_controllen) = (control.as_ptr().cast_mut().cast(), control.len() as _);
    if let Some(to) = to {
        (message.msg_name, message.msg_namelen) = (from_ref(to).cast_mut().cast(), size_of_val(to) as u32);
    }
    told::note(std::slice::from_ref(&part));
    told::note(data);
    told::note(control);
    to.iter().for_each(|to| told::note(from_ref(*to)));
    check(unsafe { told::syscall!(libc::SYS_sendmsg, socket, &raw const message, 0) }, "sendmsg");
}

fn receive(socket: i32, room: usize) -> Vec<u8> {
    let (mut data, mut control) = (vec![0u8; room], [0u64; 64]);
    let mut part = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast::<c_void>(), size_of_val(&control) as _);
    told::note(std::slice::from_ref(&part));
    told::note(out(data.as_mut_ptr(), room));
    told::note(control.as_mut_slice());
    let length = check(unsafe { told::syscall!(libc::SYS_recvmsg, socket, &raw mut message, 0) }, "recvmsg");
    data.truncate(length);
    data
}

/// Passes /dev/null and credentials over a pair of sockets.
fn rights() {
    let mut pair = [0; 2];
    check(unsafe { told::syscall!(libc::SYS_socketpair, libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_slice()) }, "socketpair");
    enable(pair[1], libc::SOL_SOCKET, libc::SO_PASSCRED);
    let file = unsafe { told::syscall!(libc::SYS_openat, libc::AT_FDCWD, c"/dev/null", libc::O_RDONLY, 0) as i32 };
    let own = unsafe { [libc::getpid(), libc::getuid() as i32, libc::getgid() as i32] };
    println!("own {} {} {}", own[0], own[1], own[2]);
    let parts =
        [control(libc::SOL_SOCKET, libc::SCM_RIGHTS, &[file, pair[0]]), control(libc::SOL_SOCKET, libc::SCM_CREDENTIALS, &own)].concat();
    send(pair[0], b"rights", &parts, None);
    receive(pair[1], 16);
}

/// Sends a datagram to itself, and receives it with its time, its address, its TTL and its type of service.
fn datagram() {
    let socket = unsafe { told::syscall!(libc::SYS_socket, libc::AF_INET, libc::SOCK_DGRAM, 0) as i32 };
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    (address.sin_family, address.sin_addr.s_addr) = (libc::AF_INET as u16, u32::from_ne_bytes([127, 0, 0, 1]));
    let mut length = size_of_val(&address) as u32;
    check(unsafe { told::syscall!(libc::SYS_bind, socket, &raw const address, length) }, "bind");
    check(unsafe { told::syscall!(libc::SYS_getsockname, socket, out(&raw mut address, 1), &raw mut length) }, "getsockname");
    enable(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS);
    for option in [libc::IP_PKTINFO, libc::IP_RECVTTL, libc::IP_RECVTOS] {
        enable(socket, libc::IPPROTO_IP, option);
    }
    send(socket, b"datagram", &control(libc::IPPROTO_IP, libc::IP_TTL, &[9]), Some(&address));
    receive(socket, 16);
}

pub fn netlink(protocol: i32) -> i32 {
    let socket = unsafe { told::syscall!(libc::SYS_socket, libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
    check(socket, "socket") as i32
}

pub fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (16 + payload.len() as u32).to_ne_bytes().to_vec();
    bytes.extend([kind.to_ne_bytes(), flags.to_ne_bytes()].concat());
    bytes.extend([77u32.to_ne_bytes(), 0u32.to_ne_bytes()].concat());
    bytes.extend(payload);
    bytes
}

pub fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [(4 + payload.len() as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

pub fn send_to(socket: i32, bytes: &[u8]) {
    check(unsafe { told::syscall!(libc::SYS_sendto, socket, bytes, bytes.len(), 0, 0, 0) }, "sendto");
}

/// Receives the messages of a dump up to its end.
pub fn drain(mut receive: impl FnMut() -> Vec<u8>) {
    loop {
        let bytes = receive();
        let mut rest = &bytes[..];
        while let [a, b, c, d, e, f, ..] = *rest {
            if u16::from_ne_bytes([e, f]) == DONE {
                return;
            }
            let length = (u32::from_ne_bytes([a, b, c, d]) as usize).next_multiple_of(4);
            rest = rest.get(length..).unwrap_or_default();
        }
    }
}

/// Asks for all links and addresses, and for a link of a kind that does not exist.
fn route() {
    let socket = netlink(libc::NETLINK_ROUTE);
    enable(socket, SOL_NETLINK, NETLINK_EXT_ACK);
    // IFLA_EXT_MASK: RTEXT_FILTER_VF
    send_to(socket, &message(GET_LINK, REQUEST | DUMP, &[&[0; 16][..], &attribute(29, &1u32.to_ne_bytes())].concat()));
    drain(|| receive(socket, 32 << 10));
    send(socket, &message(GET_ADDRESS, REQUEST | DUMP, &[libc::AF_INET as u8, 0, 0, 0, 0, 0, 0, 0]), &[], None);
    drain(|| received(socket, 32 << 10));
    // IFLA_IFNAME, and IFLA_LINKINFO with IFLA_INFO_KIND.
    let kind = attribute(18, &attribute(1, b"rtracekind"));
    send_to(socket, &message(NEW_LINK, REQUEST | ACK | 0x600, &[&[0; 16][..], &attribute(3, b"rtrace9\0"), &kind].concat()));
    received(socket, 4096);
}

/// Asks for the listening UNIX sockets through write and read.
fn sockets() {
    let pair = std::os::unix::net::UnixListener::bind(std::env::temp_dir().join(format!("rtrace-messages-{}", std::process::id())));
    let socket = netlink(NETLINK_SOCK_DIAG);
    // udiag_states: TCPF_LISTEN, udiag_show: UDIAG_SHOW_NAME
    let words = [u32::from(libc::AF_UNIX as u16), 0x400, 0, 1, 0, 0];
    let bytes = message(BY_FAMILY, REQUEST | DUMP, &words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>());
    check(unsafe { told::syscall!(libc::SYS_write, socket, bytes.as_slice(), bytes.len()) }, "write");
    drain(|| {
        let mut data = vec![0u8; 32 << 10];
        let length = check(unsafe { told::syscall!(libc::SYS_read, socket, out(data.as_mut_ptr(), data.len()), data.len()) }, "read");
        data.truncate(length);
        data
    });
    if let Ok(path) = pair.and_then(|pair| pair.local_addr())
        && let Some(path) = path.as_pathname()
    {
        std::fs::remove_file(path).expect("it is there");
    }
}

/// Asks for the generic family that controls the others.
fn families() {
    let socket = netlink(libc::NETLINK_GENERIC);
    send_to(socket, &message(CONTROL, REQUEST, &[&[GET_FAMILY, 1, 0, 0][..], &attribute(2, b"nlctrl\0")].concat()));
    received(socket, 4096);
}

pub fn received(socket: i32, room: usize) -> Vec<u8> {
    let mut data = vec![0u8; room];
    let length = check(unsafe { told::syscall!(libc::SYS_recvfrom, socket, out(data.as_mut_ptr(), room), room, 0, 0, 0) }, "recv");
    data.truncate(length);
    data
}
