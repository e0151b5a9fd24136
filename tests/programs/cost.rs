//! The same call many times, and the CPU time that the calls took: what a tracer makes them cost (`benches/structs`).

use std::ptr::from_ref;

/// `RTM_NEWLINK`, `IFLA_IFNAME`, `IFLA_MTU`, `IFLA_LINKINFO` and `IFLA_INFO_KIND`
const NEW_LINK: u16 = 16;
const IFNAME: u16 = 3;
const MTU: u16 = 4;
const LINKINFO: u16 = 18;
const INFO_KIND: u16 = 1;
/// `BPF_MAP_CREATE`, `BPF_MAP_LOOKUP_ELEM` and `BPF_MAP_TYPE_ARRAY`
const MAP_CREATE: u64 = 0;
const MAP_LOOKUP: u64 = 1;
const ARRAY: u32 = 2;

/// Makes a call of a kind `count` times. Says the CPU time of one in nanoseconds.
pub fn run(kind: &str, count: u64) {
    match kind {
        "getppid" => repeat(kind, count, || unsafe { libc::syscall(libc::SYS_getppid) }),
        "sendmsg" => sendmsg(kind, count),
        "ioctl" => ioctl(kind, count),
        "setsockopt" => setsockopt(kind, count),
        "bpf" => bpf(kind, count),
        _ => panic!("no kind {kind:?}"),
    }
}

fn repeat(kind: &str, count: u64, call: impl Fn() -> i64) {
    assert!(call() >= 0, "{kind}: {}", std::io::Error::last_os_error());
    let start = cpu_time();
    for _ in 0..count {
        call();
    }
    println!("cost {kind} {:.1}", (cpu_time() - start) as f64 / count as f64);
}

/// Returns the CPU time of this process in nanoseconds, in user space and in the kernel.
fn cpu_time() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) }, 0);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A message with nested attributes. It has no NLM_F_REQUEST, so the kernel drops it unread.
fn sendmsg(kind: &str, count: u64) {
    let attribute = |kind: u16, payload: &[u8]| {
        let mut bytes = [(4 + payload.len() as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let info = attribute(LINKINFO | 0x8000, &attribute(INFO_KIND, b"vlan\0"));
    let attributes = [attribute(IFNAME, b"eth0.7\0"), attribute(MTU, &1500u32.to_ne_bytes()), info].concat();
    let mut message = (32 + attributes.len() as u32).to_ne_bytes().to_vec();
    message.extend(NEW_LINK.to_ne_bytes());
    message.resize(32, 0);
    message.extend(attributes);
    let socket = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
    let buffer = libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: message.len() };
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (from_ref(&buffer).cast_mut(), 1);
    repeat(kind, count, || unsafe { libc::sendmsg(socket, &raw const header, 0) } as i64);
}

/// TCGETS of a terminal, which fills a struct termios.
fn ioctl(kind: &str, count: u64) {
    let terminal = unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY) };
    // The kernel's struct has 36 bytes.
    let termios = [0u32; 16];
    repeat(kind, count, || unsafe { libc::syscall(libc::SYS_ioctl, terminal, libc::TCGETS, termios.as_ptr()) });
}

fn setsockopt(kind: &str, count: u64) {
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    let linger = libc::linger { l_onoff: 1, l_linger: 30 };
    let size = size_of_val(&linger) as u32;
    let pointer = from_ref(&linger).cast();
    repeat(kind, count, || unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_LINGER, pointer, size) }.into());
}

/// A lookup in an array of one element: `union bpf_attr` with the addresses of key and value.
fn bpf(kind: &str, count: u64) {
    let bpf = |command: u64, attr: &[u32]| unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_ptr(), size_of_val(attr)) };
    let map = bpf(MAP_CREATE, &[ARRAY, 4, 8, 1, 0]);
    assert!(map >= 0, "bpf needs CAP_BPF: {}", std::io::Error::last_os_error());
    let (key, value) = (0u32, 0u64);
    let halves = |address: u64| [address as u32, (address >> 32) as u32];
    let [key, value] = [from_ref(&key) as u64, from_ref(&value) as u64].map(halves);
    let attr = [map as u32, 0, key[0], key[1], value[0], value[1], 0, 0];
    repeat(kind, count, || bpf(MAP_LOOKUP, &attr));
}
