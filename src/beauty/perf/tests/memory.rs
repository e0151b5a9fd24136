//! What calls print when their memory was copied: every family of structs, as x86-64 and as i386 have it.

use super::super::super::lookup;
use super::*;
use crate::event::When;

/// A call by its name, as an ABI has it, with the memory of its arguments.
struct Made {
    call: Call,
}

fn made(abi: Abi, name: &str, args: &[u64], ret: i64) -> Made {
    let row = lookup::index_by_name(name).map(|index| &crate::beauty::tables::SYSCALLS[usize::from(index)]).unwrap();
    let mut registers = [0; 6];
    registers[..args.len()].copy_from_slice(args);
    Made { call: Call { abi, nr: i64::from(row.numbers[abi as usize].unwrap()), ..call(registers, ret) } }
}

fn native(name: &str, args: &[u64], ret: i64) -> Made {
    made(Abi::X86_64, name, args, ret)
}

fn compat(name: &str, args: &[u64], ret: i64) -> Made {
    made(Abi::I386, name, args, ret)
}

impl Made {
    /// Memory at an address, all that the call names.
    fn at(self, arg: u8, when: When, address: u64, bytes: &[u8]) -> Made {
        Made { call: with_memory(self.call, arg, when, address, bytes, PieceState::Ok) }
    }

    fn entry(self, arg: u8, bytes: &[u8]) -> Made {
        let address = self.call.args.unwrap()[usize::from(arg)];
        self.at(arg, When::Entry, address, bytes)
    }

    fn exit(self, arg: u8, bytes: &[u8]) -> Made {
        let address = self.call.args.unwrap()[usize::from(arg)];
        self.at(arg, When::Exit, address, bytes)
    }

    /// The last piece, when the call names more than was copied.
    fn of(mut self, wanted: u64) -> Made {
        let last = self.call.pieces.last_mut().unwrap();
        last.wanted = wanted;
        last.state = if wanted > u64::from(last.len) { PieceState::Cut } else { PieceState::Ok };
        self
    }

    /// What stands between the brackets.
    fn says(&self, expected: &str) {
        let line = event_line(&Show { alignment: 0, ..show() }, &event(Time(1_000_050_000), What::Call(Box::new(self.call.clone()))));
        let body = line.split_once("sh/20131 ").unwrap().1.trim_end();
        let arguments = body.rsplit_once(") = ").unwrap().0.split_once('(').unwrap().1;
        assert_eq!(arguments, expected);
    }
}

/// Bytes of numbers, each as wide as said.
macro_rules! bytes {
    ($($number:expr),* $(,)?) => {{
        let mut bytes: Vec<u8> = Vec::new();
        $(bytes.extend_from_slice(&$number.to_le_bytes());)*
        bytes
    }};
}

#[test]
fn times() {
    native("nanosleep", &[0x1000, 0x2000], 0).entry(0, &bytes![1u64, 500u64]).says("rqtp: {.tv_sec: 1, .tv_nsec: 500}, rmtp: 0x2000");
    compat("nanosleep", &[0x1000, 0], 0).entry(0, &bytes![1u32, 0u32]).says("rqtp: {.tv_sec: 1, .tv_nsec: 0}");
    native("clock_gettime", &[1, 0x1000], 0).exit(1, &bytes![-1i64, 7u64]).says("which_clock: MONOTONIC, tp: {.tv_sec: -1, .tv_nsec: 7}");
    compat("clock_gettime64", &[0, 0x1000], 0)
        .exit(1, &bytes![1u64 << 33, 7u64])
        .says("which_clock: REALTIME, tp: {.tv_sec: 8589934592, .tv_nsec: 7}");
    native("gettimeofday", &[0x1000, 0x2000], 0)
        .exit(0, &bytes![1u64, 2u64])
        .exit(1, &bytes![60u32, 0u32])
        .says("tv: {.tv_sec: 1, .tv_usec: 2}, tz: {.tz_minuteswest: 60, .tz_dsttime: 0}");
    compat("setitimer", &[0, 0x1000, 0x2000], 0).entry(1, &bytes![0u32, 0u32, 3u32, 4u32]).exit(2, &bytes![0u32, 0u32, 0u32, 0u32]).says(
        "which: REAL, value: {.it_interval: {.tv_sec: 0, .tv_usec: 0}, .it_value: {.tv_sec: 3, .tv_usec: 4}}, \
             ovalue: {.it_interval: {.tv_sec: 0, .tv_usec: 0}, .it_value: {.tv_sec: 0, .tv_usec: 0}}",
    );
    native("timerfd_settime", &[3, 1, 0x1000, 0], 0)
        .entry(2, &bytes![0u64, 0u64, 3u64, 4u64])
        .says("ufd: 3, flags: ABSTIME, utmr: {.it_interval: {.tv_sec: 0, .tv_nsec: 0}, .it_value: {.tv_sec: 3, .tv_nsec: 4}}");
    native("utimensat", &[3, 0, 0x1000, 0], 0)
        .entry(2, &bytes![1u64, 2u64, 3u64, 4u64])
        .says("dfd: 3, utimes: [{.tv_sec: 1, .tv_nsec: 2}, {.tv_sec: 3, .tv_nsec: 4}]");
    native("time", &[0x1000], 17).exit(0, &bytes![17u64]).says("tloc: [17]");
    native("times", &[0x1000], 17)
        .exit(0, &bytes![1u64, 2u64, 3u64, 4u64])
        .says("tbuf: {.tms_utime: 1, .tms_stime: 2, .tms_cutime: 3, .tms_cstime: 4}");
}

const STAT: &str = "{.st_dev: 8:1, .st_ino: 7, .st_nlink: 1, .st_mode: IFREG|0644, .st_uid: 1000, .st_gid: 100, .st_rdev: 0:0, .st_size: 4096, \
                    .st_blksize: 512, .st_blocks: 8, .st_atime: 1, .st_atime_nsec: 2, .st_mtime: 3, .st_mtime_nsec: 4, .st_ctime: 5, .st_ctime_nsec: 6}";

#[test]
fn files() {
    let stat = bytes![
        0x801u64,
        7u64,
        1u64,
        0o100_644u32,
        1000u32,
        100u32,
        0u32,
        0u64,
        4096u64,
        512u64,
        8u64,
        1u64,
        2u64,
        3u64,
        4u64,
        5u64,
        6u64,
        0u64,
        0u64,
        0u64
    ];
    native("fstat", &[3, 0x1000], 0).exit(1, &stat).says(&format!("fd: 3, statbuf: {STAT}"));
    let compat_stat = bytes![
        0x801u32,
        7u32,
        0o100_644u16,
        1u16,
        1000u16,
        100u16,
        0u32,
        4096u32,
        512u32,
        8u32,
        1u32,
        2u32,
        3u32,
        4u32,
        5u32,
        6u32,
        0u32,
        0u32
    ];
    let reordered = STAT.replace(".st_nlink: 1, .st_mode: IFREG|0644", ".st_mode: IFREG|0644, .st_nlink: 1");
    compat("fstat", &[3, 0x1000], 0).exit(1, &compat_stat).says(&format!("fd: 3, statbuf: {reordered}"));
    let stat64 = bytes![
        0x801u64,
        0u32,
        7u32,
        0o040_755u32,
        2u32,
        0u32,
        0u32,
        0u64,
        0u32,
        1u64 << 33,
        512u32,
        8u64,
        1u32,
        2u32,
        3u32,
        4u32,
        5u32,
        6u32,
        7u64
    ];
    compat("fstat64", &[3, 0x1000], 0).exit(1, &stat64).says(
        "fd: 3, statbuf: {.st_dev: 8:1, .st_mode: IFDIR|0755, .st_nlink: 2, .st_uid: 0, .st_gid: 0, .st_rdev: 0:0, .st_size: 8589934592, \
         .st_blksize: 512, .st_blocks: 8, .st_atime: 1, .st_atime_nsec: 2, .st_mtime: 3, .st_mtime_nsec: 4, .st_ctime: 5, .st_ctime_nsec: 6, .st_ino: 7}",
    );
    native("openat2", &[CWD, 0, 0x1000, 24], 3)
        .entry(2, &bytes![0o2000001u64 | 1 << 40, 0o644u64, 0x8u64])
        .says("dfd: CWD, how: {.flags: WRONLY|CLOEXEC|0x10000000000, .mode: 0644, .resolve: BENEATH}, usize: 24");
    native("fcntl", &[3, 6, 0x1000], 0)
        .entry(2, &bytes![1u16, 0u16, 0u32, 10u64, 20u64, 7u32, 0u32])
        .says("fd: 3, cmd: SETLK, arg: {.l_type: WRLCK, .l_whence: SET, .l_start: 10, .l_len: 20, .l_pid: 7 (x)}");
    compat("fcntl64", &[3, 13, 0x1000], 0)
        .entry(2, &bytes![0u16, 2u16, -10i64, 20u64, 0u32])
        .says("fd: 3, cmd: SETLK64, arg: {.l_type: RDLCK, .l_whence: END, .l_start: -10, .l_len: 20, .l_pid: 0}");
    native("statfs", &[0, 0x1000], 0)
        .exit(1, &bytes![0xef53u64, 4096u64, 10u64, 9u64, 8u64, 7u64, 6u64, 1u32, -2i32, 255u64, 4096u64, 0x1020u64, 0u64, 0u64, 0u64, 0u64])
        .says(
            "buf: {.f_type: EXT4_SUPER_MAGIC, .f_bsize: 4096, .f_blocks: 10, .f_bfree: 9, .f_bavail: 8, .f_files: 7, .f_ffree: 6, .f_fsid: [1, -2], \
             .f_namelen: 255, .f_frsize: 4096, .f_flags: VALID|RELATIME}",
        );
}

#[test]
fn socket_addresses() {
    let connect = |address: &[u8]| native("connect", &[3, 0x1000, address.len() as u64], 0).entry(1, address);
    let inet = [&bytes![2u16][..], &[0, 80, 127, 0, 0, 1], &[0; 8]].concat();
    connect(&inet).says("fd: 3, uservaddr: {.sin_family: INET, .sin_port: 80, .sin_addr: 127.0.0.1}, addrlen: 16");
    compat("connect", &[3, 0x1000, 16], 0)
        .entry(1, &inet)
        .says("fd: 3, uservaddr: {.sin_family: INET, .sin_port: 80, .sin_addr: 127.0.0.1}, addrlen: 16");
    let mut inet6 = [&bytes![10u16][..], &[1, 187, 0, 0, 0, 1], &[0; 16], &bytes![2u32]].concat();
    (inet6[8], inet6[9], inet6[23]) = (0xfe, 0x80, 1);
    connect(&inet6)
        .says("fd: 3, uservaddr: {.sin6_family: INET6, .sin6_port: 443, .sin6_flowinfo: 0x1, .sin6_addr: fe80::1, .sin6_scope_id: 2}, addrlen: 28");
    connect(b"\x01\0/run/x\0").says("fd: 3, uservaddr: {.sun_family: UNIX, .sun_path: \"/run/x\"}, addrlen: 9");
    connect(b"\x01\0\0a\0b").says("fd: 3, uservaddr: {.sun_family: UNIX, .sun_path: \"\\x00a\\x00b\"}, addrlen: 6");
    connect(b"\x01\0").says("fd: 3, uservaddr: {.sun_family: UNIX}, addrlen: 2");
    connect(&bytes![16u16, 0u16, 7u32, 0x11u32]).says("fd: 3, uservaddr: {.nl_family: NETLINK, .nl_pid: 7, .nl_groups: 0x11}, addrlen: 12");
    connect(&[&bytes![17u16, 0x0008u16, 2u32, 1u16, 0u8, 6u8][..], &[0xaa, 1, 2, 3, 4, 5, 0, 0]].concat()).says(
        "fd: 3, uservaddr: {.sll_family: PACKET, .sll_protocol: IP, .sll_ifindex: 2, .sll_hatype: ETHER, .sll_pkttype: HOST, .sll_halen: 6, \
         .sll_addr: \"\\xaa\\x01\\x02\\x03\\x04\\x05\\x00\\x00\"}, addrlen: 20",
    );
    connect(&bytes![40u16, 0u16, 99u32, 2u32, 0u32])
        .says("fd: 3, uservaddr: {.svm_family: VSOCK, .svm_port: 99, .svm_cid: HOST, .svm_flags: 0}, addrlen: 16");
    connect(&bytes![99u16, 0x6261u16]).says("fd: 3, uservaddr: {.sa_family: 0x63, .sa_data: \"ab\"}, addrlen: 4");
    connect(&[2]).says("fd: 3, uservaddr: {}, addrlen: 1");
    connect(&inet[..6]).of(16).says("fd: 3, uservaddr: {.sin_family: INET, .sin_port: 80, ...}, addrlen: 6");
    native("accept", &[3, 0x1000, 0x2000], 4)
        .exit(1, &inet)
        .entry(2, &bytes![128u32])
        .exit(2, &bytes![16u32])
        .says("fd: 3, upeer_sockaddr: {.sin_family: INET, .sin_port: 80, .sin_addr: 127.0.0.1}, upeer_addrlen: [128 => 16]");
}

#[test]
fn data_in_several_places() {
    let entry = When::Entry;
    native("writev", &[1, 0x1000, 3], 5)
        .entry(1, &bytes![0x5000u64, 3u64, 0x6000u64, 2u64, 0x7000u64, 0u64])
        .at(1, entry, 0x6000, b"de")
        .at(1, entry, 0x5000, b"abc")
        .says("fd: 1, vec: [{.iov_base: \"abc\", .iov_len: 3}, {.iov_base: \"de\", .iov_len: 2}, {.iov_base: \"\", .iov_len: 0}], vlen: 3");
    compat("writev", &[1, 0x1000, 1], 5)
        .entry(1, &bytes![0x5000u32, 3u32])
        .at(1, entry, 0x5000, b"abc")
        .says("fd: 1, vec: [{.iov_base: \"abc\", .iov_len: 3}], vlen: 1");
    native("readv", &[0, 0x1000, 2], 3)
        .exit(1, &bytes![0x5000u64, 3u64, 0x6000u64, 2u64])
        .at(1, When::Exit, 0x5000, b"abc")
        .says("fd: 0, vec: [{.iov_base: \"abc\", .iov_len: 3}, {.iov_base: 0x6000, .iov_len: 2}], vlen: 2");
    native("sendmsg", &[3, 0x1000, 0x4000], 5)
        .entry(1, &bytes![0x5000u64, 9u64, 0x6000u64, 1u64, 0x7000u64, 4u64, 0u64])
        .at(1, entry, 0x5000, b"\x01\0/run/x\0")
        .at(1, entry, 0x6000, &bytes![0x8000u64, 5u64])
        .at(1, entry, 0x8000, b"hello")
        .at(1, entry, 0x7000, b"\x01\x02\x03\x04")
        .says(
            "fd: 3, msg: {.msg_name: {.sun_family: UNIX, .sun_path: \"/run/x\"}, .msg_namelen: 9, .msg_iov: [{.iov_base: \"hello\", .iov_len: 5}], \
             .msg_iovlen: 1, .msg_control: \"\\x01\\x02\\x03\\x04\", .msg_controllen: 4, .msg_flags: 0}, flags: NOSIGNAL",
        );
    let header = |name: u32, flags: u32| bytes![0x5000u32, name, 0x6000u32, 1u32, 0u32, 0u32, flags];
    compat("recvmsg", &[3, 0x1000, 0], 5)
        .entry(1, &header(16, 0))
        .exit(1, &header(12, 0x20))
        .at(1, When::Exit, 0x5000, &bytes![16u16, 0u16, 0u32, 0u32])
        .at(1, entry, 0x6000, &bytes![0x8000u32, 5u32])
        .at(1, When::Exit, 0x8000, b"hello")
        .says(
            "fd: 3, msg: {.msg_name: {.nl_family: NETLINK, .nl_pid: 0, .nl_groups: 0}, .msg_namelen: 16 => 12, \
             .msg_iov: [{.iov_base: \"hello\", .iov_len: 5}], .msg_iovlen: 1, .msg_control: NULL, .msg_controllen: 0, .msg_flags: 0 => TRUNC}",
        );
}

#[test]
fn programs_arguments() {
    let execve = |made: Made, word: fn(u64) -> Vec<u8>| {
        let pointers = [0x5000, 0x6000, 0].map(word).concat();
        made.entry(0, b"/bin/ls\0")
            .entry(1, &pointers)
            .at(1, When::Entry, 0x5000, b"ls\0")
            .at(1, When::Entry, 0x6000, b"-l\0")
            .entry(2, &word(0))
    };
    execve(native("execve", &[0x1000, 0x2000, 0x3000], 0), |word| bytes![word])
        .says("filename: \"/bin/ls\", argv: [\"ls\", \"-l\"], envp: []");
    execve(compat("execve", &[0x1000, 0x2000, 0x3000], 0), |word| bytes![word as u32])
        .says("filename: \"/bin/ls\", argv: [\"ls\", \"-l\"], envp: []");
    let many: Vec<u8> = (1..=40u64).flat_map(|at| (at * 0x1000).to_le_bytes()).chain([0; 8]).collect();
    let shown: Vec<String> = (1..=32).map(|at| format!("{:#x}", at * 0x1000)).collect();
    native("execve", &[0, 0, 0x90_0000], 0).entry(2, &many).says(&format!("envp: [{}, ...]", shown.join(", ")));
}

#[test]
fn numbers_behind_pointers() {
    native("pipe2", &[0x1000, 0], 0).exit(0, &bytes![3u32, 4u32]).says("fildes: [3, 4]");
    native("sendfile", &[1, 3, 0x1000, 10], 10)
        .entry(2, &bytes![5u64])
        .exit(2, &bytes![15u64])
        .says("out_fd: 1, in_fd: 3, offset: [5 => 15], count: 10");
    native("getresuid", &[0x1000, 0x2000, 0x3000], 0)
        .exit(0, &bytes![1u32])
        .exit(1, &bytes![2u32])
        .exit(2, &bytes![3u32])
        .says("ruidp: [1], euidp: [2], suidp: [3]");
    native("getgroups", &[40, 0x1000], 40)
        .exit(1, &(0..33u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>())
        .of(160)
        .says(&format!("gidsetsize: 40, grouplist: [{}, ...]", (0..32).map(|id: u32| id.to_string()).collect::<Vec<_>>().join(", ")));
    native("arch_prctl", &[0x1003, 0x1000], 0).exit(1, &bytes![0x7f00_0000_1000u64]).says("option: GET_FS, arg2: [0x7f0000001000]");
}
