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
        .entry(2, &bytes![1u64, 2u64, 0u64, 0x3fff_ffffu64])
        .says("dfd: 3, utimes: [{.tv_sec: 1, .tv_nsec: 2}, {.tv_sec: 0, .tv_nsec: NOW}]");
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
fn files_with_everything() {
    let stamp = |seconds: i64| bytes![seconds, 5u32, 0u32];
    let statx = [
        bytes![0x7ffu32, 4096u32, 0x10u64, 1u32, 1000u32, 100u32, 0o100_755u16, 0u16, 7u64, 10u64, 8u64, 0x30u64],
        stamp(1),
        stamp(2),
        stamp(-3),
        stamp(4),
        bytes![0u32, 0u32, 8u32, 1u32, 9u64, 0u32, 0u32, 0u64, 0u32, 0u32, 0u32, 0u32, 0u32, 0u32],
        vec![0; 64],
    ]
    .concat();
    let told = "{.stx_mask: BASIC_STATS, .stx_blksize: 4096, .stx_attributes: IMMUTABLE, \
                .stx_nlink: 1, .stx_uid: 1000, .stx_gid: 100, .stx_mode: IFREG|0755, .stx_ino: 7, .stx_size: 10, .stx_blocks: 8, \
                .stx_attributes_mask: IMMUTABLE|APPEND, .stx_atime: {.tv_sec: 1, .tv_nsec: 5}, .stx_btime: {.tv_sec: 2, .tv_nsec: 5}, \
                .stx_ctime: {.tv_sec: -3, .tv_nsec: 5}, .stx_mtime: {.tv_sec: 4, .tv_nsec: 5}, .stx_rdev_major: 0, .stx_rdev_minor: 0, \
                .stx_dev_major: 8, .stx_dev_minor: 1, .stx_mnt_id: 9, .stx_dio_mem_align: 0, .stx_dio_offset_align: 0, .stx_subvol: 0, \
                .stx_atomic_write_unit_min: 0, .stx_atomic_write_unit_max: 0, .stx_atomic_write_segments_max: 0, .stx_dio_read_offset_align: 0, \
                .stx_atomic_write_unit_max_opt: 0}";
    for abi in [Abi::X86_64, Abi::I386] {
        made(abi, "statx", &[3, 0, 0, 1, 0x1000], 0).exit(4, &statx).says(&format!("dfd: 3, mask: TYPE, buffer: {told}"));
    }
    compat("statfs64", &[0, 84, 0x1000], 0)
        .exit(
            2,
            &bytes![0x0102_1994u32, 4096u32, 10u64, 9u64, 8u64, 7u64, 6u64, 0u32, 0u32, 255u32, 4096u32, 0x21u32, 0u32, 0u32, 0u32, 0u32],
        )
        .says(
            "sz: 84, buf: {.f_type: TMPFS_MAGIC, .f_bsize: 4096, .f_blocks: 10, .f_bfree: 9, .f_bavail: 8, .f_files: 7, .f_ffree: 6, \
             .f_fsid: [0, 0], .f_namelen: 255, .f_frsize: 4096, .f_flags: RDONLY|VALID}",
        );
    native("name_to_handle_at", &[3, 0, 0x1000, 0x2000, 0], 0)
        .entry(2, &bytes![8u32, 0u32])
        .exit(2, &bytes![8u32, 1u32, 0x1122_3344_5566_7788u64])
        .exit(3, &bytes![30u32])
        .says("dfd: 3, handle: {.handle_bytes: 8, .handle_type: 0 => 1, .f_handle: \"\" => \"\\x88wfUD3\\\"\\x11\"}, mnt_id: [30]");
}

#[test]
fn queues_and_sets() {
    native("semop", &[1, 0x1000, 2], 0).entry(1, &bytes![0u16, -1i16, 0x1800u16, 1u16, 2i16, 0u16]).says(
        "semid: 1, tsops: [{.sem_num: 0, .sem_op: -1, .sem_flg: IPC_NOWAIT|SEM_UNDO}, {.sem_num: 1, .sem_op: 2, .sem_flg: 0}], nsops: 2",
    );
    native("msgsnd", &[1, 0x1000, 2, 0], 0)
        .entry(1, &bytes![5u64, b'h', b'i'])
        .says("msqid: 1, msgp: {.mtype: 5, .mtext: \"hi\"}, msgsz: 2");
    compat("msgsnd", &[1, 0x1000, 2, 0], 0)
        .entry(1, &bytes![5u32, b'h', b'i'])
        .says("msqid: 1, msgp: {.mtype: 5, .mtext: \"hi\"}, msgsz: 2");
    let perm = "{.key: PRIVATE, .uid: 1, .gid: 2, .cuid: 3, .cgid: 4, .mode: 0600, .seq: 6}";
    let told = format!("{{.sem_perm: {perm}, .sem_otime: 7, .sem_ctime: 8, .sem_nsems: 9}}");
    native("semctl", &[1, 0, 2, 0x1000], 0)
        .exit(3, &bytes![0u32, 1u32, 2u32, 3u32, 4u32, 0x180u32, 6u16, 0u16, 0u32, 0u64, 0u64, 7u64, 0u64, 8u64, 0u64, 9u64, 0u64, 0u64])
        .says(&format!("semid: 1, cmd: IPC_STAT, arg: {told}"));
    compat("semctl", &[1, 0, 2, 0x1000], 0)
        .exit(3, &bytes![0u32, 1u32, 2u32, 3u32, 4u32, 0x180u16, 0u16, 6u16, 0u16, 0u32, 0u32, 7u32, 0u32, 8u32, 0u32, 9u32, 0u32, 0u32])
        .says(&format!("semid: 1, cmd: IPC_STAT, arg: {told}"));
    native("mq_getsetattr", &[3, 0x1000, 0], 0)
        .entry(1, &bytes![0o4000u64, 10u64, 8192u64, 0u64, 0u64, 0u64, 0u64, 0u64])
        .says("mqdes: 3, u_mqstat: {.mq_flags: NONBLOCK, .mq_maxmsg: 10, .mq_msgsize: 8192, .mq_curmsgs: 0}");
    native("capset", &[0x1000, 0x2000], 0)
        .entry(0, &bytes![0x2008_0522u32, 0u32])
        .entry(1, &bytes![1u32, 3u32, 0u32, 0u32, 0u32, 0u32])
        .says(
            "header: {.version: 3, .pid: 0}, data: [{.effective: 0x1, .permitted: 0x3, .inheritable: 0}, \
             {.effective: 0, .permitted: 0, .inheritable: 0}]",
        );
    let odd = bytes![0u64, 0u64, 0u64, 0u64, 1u64 << 32 | 17, 0u64, 0u64, 0u64];
    native("clone3", &[0x1000, 64], -22).entry(0, &odd).says(
        "uargs: {.flags: 0, .pidfd: NULL, .child_tid: NULL, .parent_tid: NULL, .exit_signal: 0x100000011, .stack: NULL, .stack_size: 0, .tls: NULL}, \
         size: 64",
    );
    native("landlock_create_ruleset", &[0x1000, 16, 0], 3)
        .entry(0, &bytes![5u64, 1u64])
        .says("attr: {.handled_access_fs: EXECUTE|READ_FILE, .handled_access_net: BIND_TCP}, size: 16");
    native("adjtimex", &[0x1000], 0)
        .entry(0, &[&bytes![0x4002u32, 0u32, 0u64, 5u64][..], &[0; 184]].concat())
        .of(208)
        .exit(0, &[&bytes![0x4002u32, 0u32, 9u64, 5u64][..], &[0; 184]].concat())
        .says(
            "txc_p: {.modes: FREQUENCY|TICK, .offset: 0 => 9, .freq: 5, .maxerror: 0, .esterror: 0, .status: 0, .constant: 0, .precision: 0, \
             .tolerance: 0, .time: {.tv_sec: 0, .tv_usec: 0}, .tick: 0, .ppsfreq: 0, .jitter: 0, .shift: 0, .stabil: 0, .jitcnt: 0, .calcnt: 0, \
             .errcnt: 0, .stbcnt: 0, .tai: 0}",
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
    // Of the environment nobody wants more than how much there is of it.
    let many = |count: u64| (1..=count).flat_map(|at| (at * 0x1000).to_le_bytes()).collect::<Vec<u8>>();
    let executed = |bytes: &[u8]| native("execve", &[0, 0x90_0000, 0x90_0000], 0).entry(2, bytes);
    executed(&[many(40), vec![0; 8]].concat()).says("argv: 0x900000, envp: [40 strings]");
    executed(&many(40)).of(328).says("argv: 0x900000, envp: [40 or more strings]");
    let shown: Vec<String> = (1..=32).map(|at| format!("{:#x}", at * 0x1000)).collect();
    let begun = with_memory(executed(&[many(40), vec![0; 8]].concat()).call, 2, When::Entry, 0x1000, &[], PieceState::Fault);
    Made { call: begun }.says(&format!("argv: 0x900000, envp: [{}, ...]", shown.join(", ")));
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

#[test]
fn signals() {
    let mask = |signals: &[u32]| bytes![signals.iter().fold(0u64, |mask, signal| mask | 1 << (signal - 1))];
    native("rt_sigprocmask", &[0, 0x1000, 0x2000, 8], 0)
        .entry(1, &mask(&[2, 15, 34]))
        .exit(2, &mask(&[]))
        .says("how: BLOCK, nset: [INT, TERM, RT_2], oset: [], sigsetsize: 8");
    native("rt_sigprocmask", &[2, 0x1000, 0, 8], 0)
        .entry(1, &bytes![!(1u64 << 8 | 1 << 18)])
        .says("how: SETMASK, nset: ~[KILL, STOP], sigsetsize: 8");
    native("rt_sigaction", &[17, 0x1000, 0x2000, 8], 0)
        .entry(1, &bytes![0x40_1000u64, 0x1400_0004u64, 0x7f00_1000u64, 1u64 << 1])
        .exit(2, &bytes![0u64, 0u64, 0u64, 0u64])
        .says(
            "sig: CHLD, act: {.sa_handler: 0x401000, .sa_flags: SIGINFO|RESTORER|RESTART, .sa_restorer: 0x7f001000, .sa_mask: [INT]}, \
             oact: {.sa_handler: DFL, .sa_flags: 0, .sa_restorer: NULL, .sa_mask: []}, sigsetsize: 8",
        );
    compat("rt_sigaction", &[2, 0x1000, 0, 8], 0)
        .entry(1, &bytes![1u32, 0u32, 0u32, 0u64])
        .says("sig: INT, act: {.sa_handler: IGN, .sa_flags: 0, .sa_restorer: NULL, .sa_mask: []}, sigsetsize: 8");
    compat("sigaltstack", &[0x1000, 0], 0)
        .entry(0, &bytes![0x8000u32, 0x8000_0001u32, 4096u32])
        .says("uss: {.ss_sp: 0x8000, .ss_flags: ONSTACK|AUTODISARM, .ss_size: 4096}");
    native("pselect6", &[0, 0, 0, 0, 0, 0x1000], 0)
        .entry(5, &bytes![0x2000u64, 8u64])
        .at(5, When::Entry, 0x2000, &mask(&[2]))
        .says("sig: {.p: [INT], .size: 8}");
}

#[test]
fn what_came_with_a_signal() {
    let info = |signal: u32, code: i32, rest: &[u8]| {
        let mut bytes = bytes![signal, 0u32, code, 0u32];
        bytes.extend_from_slice(rest);
        bytes.resize(128, 0);
        bytes
    };
    let waited = |info: &[u8]| native("waitid", &[1, 7, 0x1000, 4, 0], 0).exit(2, info);
    waited(&info(17, 1, &bytes![7u32, 1000u32, 3u32, 0u32, 5u64, 6u64])).says(
        "which: PID, upid: 7 (x), infop: {.si_signo: CHLD, .si_code: CLD_EXITED, .si_pid: 7 (x), .si_uid: 1000, .si_status: 3, .si_utime: 5, \
         .si_stime: 6}, options: WEXITED",
    );
    let sent = |info: &[u8]| native("rt_sigqueueinfo", &[7, 10, 0x1000], 0).entry(2, info);
    sent(&info(10, -1, &bytes![8u32, 0u32, 0x1234u64]))
        .says("pid: 7 (x), sig: USR1, uinfo: {.si_signo: USR1, .si_code: SI_QUEUE, .si_pid: 8, .si_uid: 0, .si_value: 0x1234}");
    sent(&info(10, 0, &bytes![8u32, 0u32]))
        .says("pid: 7 (x), sig: USR1, uinfo: {.si_signo: USR1, .si_code: SI_USER, .si_pid: 8, .si_uid: 0}");
    sent(&info(11, 1, &bytes![0xdead_0000u64]))
        .says("pid: 7 (x), sig: USR1, uinfo: {.si_signo: SEGV, .si_code: SEGV_MAPERR, .si_addr: 0xdead0000}");
    sent(&info(10, 77, &[])).says("pid: 7 (x), sig: USR1, uinfo: {.si_signo: USR1, .si_code: 77}");
    waited(&[0; 128]).says("which: PID, upid: 7 (x), infop: {.si_signo: 0}, options: WEXITED");
    let mut narrow = bytes![17u32, 0u32, 2u32, 7u32, 0u32, 9u32, 5u32, 6u32];
    narrow.resize(128, 0);
    compat("waitid", &[1, 7, 0x1000, 4, 0], 0).exit(2, &narrow).says(
        "which: PID, upid: 7 (x), infop: {.si_signo: CHLD, .si_code: CLD_KILLED, .si_pid: 7 (x), .si_uid: 0, .si_status: 9, .si_utime: 5, \
         .si_stime: 6}, options: WEXITED",
    );
    native("timer_create", &[1, 0x1000, 0x2000], 0)
        .entry(1, &[&bytes![5u64, 10u32, 4u32, 7u32][..], &[0; 44]].concat())
        .exit(2, &bytes![3u32])
        .says(
            "which_clock: MONOTONIC, timer_event_spec: {.sigev_value: 0x5, .sigev_signo: USR1, .sigev_notify: THREAD_ID, \
             .sigev_notify_thread_id: 7 (x)}, created_timer_id: [3]",
        );
    compat("mq_notify", &[3, 0x1000], 0)
        .entry(1, &[&bytes![5u32, 10u32, 0u32][..], &[0; 52]].concat())
        .says("mqdes: 3, u_notification: {.sigev_value: 0x5, .sigev_signo: USR1, .sigev_notify: SIGNAL}");
}

#[test]
fn children() {
    let waited = |status: u32| native("wait4", &[u64::MAX, 0x1000, 0, 0], 7).exit(1, &bytes![status]);
    waited(0x300).says("upid: -1, stat_addr: [{.exited: 3}]");
    waited(9).says("upid: -1, stat_addr: [{.killed: KILL}]");
    waited(0x8b).says("upid: -1, stat_addr: [{.killed: SEGV, .dumped: 1}]");
    waited(0x137f).says("upid: -1, stat_addr: [{.stopped: STOP}]");
    waited(0x3_057f).says("upid: -1, stat_addr: [{.stopped: TRAP, .event: CLONE}]");
    waited(0xffff).says("upid: -1, stat_addr: [{.continued: 1}]");
    let rusage: Vec<u8> = (1..=18u64).flat_map(u64::to_le_bytes).collect();
    let text = "ru: {.ru_utime: {.tv_sec: 1, .tv_usec: 2}, .ru_stime: {.tv_sec: 3, .tv_usec: 4}, .ru_maxrss: 5, .ru_ixrss: 6, .ru_idrss: 7, \
                .ru_isrss: 8, .ru_minflt: 9, .ru_majflt: 10, .ru_nswap: 11, .ru_inblock: 12, .ru_oublock: 13, .ru_msgsnd: 14, .ru_msgrcv: 15, \
                .ru_nsignals: 16, .ru_nvcsw: 17, .ru_nivcsw: 18}";
    native("getrusage", &[0, 0x1000], 0).exit(1, &rusage).says(&format!("who: SELF, {text}"));
    let narrow: Vec<u8> = (1..=18u32).flat_map(u32::to_le_bytes).collect();
    compat("getrusage", &[0, 0x1000], 0).exit(1, &narrow).says(&format!("who: SELF, {text}"));
    let clone: Vec<u8> = bytes![0x100_1200u64, 0x5000u64, 0x6000u64, 0x7000u64, 17u64, 0u64, 0u64, 0u64, 0x8000u64, 2u64, 0u64];
    let cloned = native("clone3", &[0x1000, 88], 7).entry(0, &clone).at(0, When::Entry, 0x8000, &bytes![7u32, 8u32]).exit(0, &clone).at(
        0,
        When::Exit,
        0x5000,
        &bytes![4u32],
    );
    cloned.says(
        "uargs: {.flags: FS|PIDFD|CHILD_SETTID, .pidfd: [4], .child_tid: 0x6000, .parent_tid: 0x7000, .exit_signal: CHLD, .stack: NULL, \
         .stack_size: 0, .tls: NULL, .set_tid: [7, 8], .set_tid_size: 2, .cgroup: 0}, size: 88",
    );
    native("clone3", &[0x1000, 64], 7).entry(0, &clone[..64]).says(
        "uargs: {.flags: FS|PIDFD|CHILD_SETTID, .pidfd: 0x5000, .child_tid: 0x6000, .parent_tid: 0x7000, .exit_signal: CHLD, .stack: NULL, \
         .stack_size: 0, .tls: NULL}, size: 64",
    );
}

#[test]
fn limits_and_the_machine() {
    native("prlimit64", &[0, 7, 0x1000, 0x2000], 0)
        .entry(2, &bytes![1024u64, u64::MAX])
        .exit(3, &bytes![512u64, 4096u64])
        .says("resource: NOFILE, new_rlim: {.rlim_cur: 1024, .rlim_max: INFINITY}, old_rlim: {.rlim_cur: 512, .rlim_max: 4096}");
    compat("getrlimit", &[7, 0x1000], 0)
        .exit(1, &bytes![7u32, u32::MAX])
        .says("resource: NOFILE, rlim: {.rlim_cur: 7, .rlim_max: INFINITY}");
    let mut name = Vec::new();
    for part in ["Linux", "host", "6.18.0", "#1 SMP", "x86_64", "(none)"] {
        name.extend_from_slice(part.as_bytes());
        name.resize(name.len().next_multiple_of(65), 0);
    }
    native("uname", &[0x1000], 0).exit(0, &name).says(
        "name: {.sysname: \"Linux\", .nodename: \"host\", .release: \"6.18.0\", .version: \"#1 SMP\", .machine: \"x86_64\", .domainname: \"(none)\"}",
    );
    let told = "info: {.uptime: 5, .loads: [1, 2, 3], .totalram: 6, .freeram: 7, .sharedram: 8, .bufferram: 9, .totalswap: 10, .freeswap: 11, \
                .procs: 12, .totalhigh: 13, .freehigh: 14, .mem_unit: 1}";
    native("sysinfo", &[0x1000], 0)
        .exit(0, &bytes![5u64, 1u64, 2u64, 3u64, 6u64, 7u64, 8u64, 9u64, 10u64, 11u64, 12u16, 0u16, 0u32, 13u64, 14u64, 1u32, 0u32])
        .says(told);
    compat("sysinfo", &[0x1000], 0)
        .exit(
            0,
            &[&bytes![5u32, 1u32, 2u32, 3u32, 6u32, 7u32, 8u32, 9u32, 10u32, 11u32, 12u16, 0u16, 13u32, 14u32, 1u32][..], &[0; 8]].concat(),
        )
        .says(told);
    native("sched_setattr", &[7, 0x1000, 0], 0).entry(1, &bytes![48u32, 6u32, 4u64, 0u32, 0u32, 10u64, 20u64, 30u64]).says(
        "pid: 7 (x), uattr: {.size: 48, .sched_policy: DEADLINE, .sched_flags: DL_OVERRUN, .sched_nice: 0, .sched_priority: 0, \
             .sched_runtime: 10, .sched_deadline: 20, .sched_period: 30}",
    );
    native("sched_getaffinity", &[0, 8, 0x1000], 8).exit(2, &bytes![0b1011u64]).says("len: 8, user_mask_ptr: [0, 1, 3]");
    native("mincore", &[0x1000, 8192, 0x2000], 0).exit(2, &[1, 0]).says("start: 0x1000, len: 8192, vec: [1, 0]");
}

#[test]
fn waiting_for_descriptors() {
    let set = |first: u32, got: u16| bytes![first, 1u16, got, -1i32, 5u16, 0u16];
    native("poll", &[0x1000, 2, 100], 1)
        .entry(0, &set(3, 0))
        .exit(0, &set(3, 0x11))
        .says("ufds: [{.fd: 3, .events: IN, .revents: 0 => IN|HUP}, {.fd: -1, .events: IN|OUT, .revents: 0}], nfds: 2, timeout_msecs: 100");
    native("epoll_ctl", &[3, 1, 4, 0x1000], 0)
        .entry(3, &bytes![0x8000_2001u32, 0x1234u64])
        .says("epfd: 3, op: ADD, fd: 4, event: {.events: IN|RDHUP|ET, .data: 0x1234}");
    native("epoll_wait", &[3, 0x1000, 8, 5], 2)
        .exit(1, &bytes![1u32, 4u64, 0x10u32, 5u64])
        .says("epfd: 3, events: [{.events: IN, .data: 0x4}, {.events: HUP, .data: 0x5}], maxevents: 8, timeout: 5");
    made(Abi::Aarch64, "epoll_pwait", &[3, 0x1000, 8, 5, 0, 0], 1)
        .exit(1, &bytes![1u32, 0u32, 4u64])
        .says("epfd: 3, events: [{.events: IN, .data: 0x4}], maxevents: 8, timeout: 5");
    native("select", &[6, 0x1000, 0x2000, 0, 0x3000], 1)
        .entry(1, &bytes![0b10_1000u64 | 1 << 40])
        .exit(1, &bytes![0b1000u64])
        .entry(2, &bytes![0u64])
        .exit(2, &bytes![0u64])
        .entry(4, &bytes![5u64, 0u64])
        .exit(4, &bytes![4u64, 9u64])
        .says("n: 6, inp: [3, 5] => [3], outp: [], tvp: {.tv_sec: 5 => 4, .tv_usec: 0 => 9}");
}

#[test]
fn directories() {
    let entry = |ino: u64, kind: u8, name: &str| {
        let length = (19 + name.len() + 1).next_multiple_of(8);
        let mut bytes = [&bytes![ino, 9u64, length as u16, kind][..], name.as_bytes()].concat();
        bytes.resize(length, 0);
        bytes
    };
    let both = [entry(1, 4, "."), entry(2, 8, "a\nb")].concat();
    let read = |bytes: &[u8]| native("getdents64", &[3, 0x1000, 32768], bytes.len() as i64).exit(1, bytes);
    let first = "{.d_ino: 1, .d_off: 9, .d_reclen: 24, .d_type: DIR, .d_name: \".\"}";
    let second = "{.d_ino: 2, .d_off: 9, .d_reclen: 24, .d_type: REG, .d_name: \"a\\nb\"}";
    read(&both).says(&format!("fd: 3, dirent: [{first}, {second}], count: 32768"));
    read(&both[..40]).of(48).says(&format!("fd: 3, dirent: [{first}, ...], count: 32768"));
    read(&[0; 24]).says("fd: 3, dirent: [...], count: 32768");
    let old = [&bytes![1u32, 9u32, 16u16][..], b"x\0\0\0\0\x08"].concat();
    compat("getdents", &[3, 0x1000, 32768], 16)
        .exit(1, &old)
        .says("fd: 3, dirent: [{.d_ino: 1, .d_off: 9, .d_reclen: 16, .d_name: \"x\", .d_type: REG}], count: 32768");
}

#[test]
fn options_and_terminals() {
    let set = |option: u64, value: &[u8]| native("setsockopt", &[3, 1, option, 0x1000, value.len() as u64], 0).entry(3, value);
    set(2, &bytes![1u32]).says("fd: 3, level: SOCKET, optname: REUSEADDR, optval: [1], optlen: 4");
    set(13, &bytes![1u32, 30u32]).says("fd: 3, level: SOCKET, optname: LINGER, optval: {.l_onoff: 1, .l_linger: 30}, optlen: 8");
    set(25, b"eth0\0").says("fd: 3, level: SOCKET, optname: BINDTODEVICE, optval: \"eth0\\x00\", optlen: 5");
    native("getsockopt", &[3, 1, 4, 0x1000, 0x2000], 0)
        .exit(3, &bytes![111u32])
        .entry(4, &bytes![4u32])
        .exit(4, &bytes![4u32])
        .says("fd: 3, level: SOCKET, optname: ERROR, optval: [ECONNREFUSED], optlen: [4]");
    native("ioctl", &[1, 0x5413, 0x1000], 0)
        .exit(2, &bytes![24u16, 80u16, 0u16, 0u16])
        .says("fd: 1, cmd: TIOCGWINSZ, arg: {.ws_row: 24, .ws_col: 80, .ws_xpixel: 0, .ws_ypixel: 0}");
    compat("ioctl", &[1, 0x5401, 0x1000], 0).exit(2, &[&bytes![0x500u32, 5u32, 0xbfu32, 0x8a3bu32, 0u8][..], &[0; 19]].concat()).says(
        &format!(
            "fd: 1, cmd: TCGETS, arg: {{.c_iflag: ICRNL|IXON, .c_oflag: OPOST|ONLCR, .c_cflag: B38400|CS8|CREAD, \
             .c_lflag: ISIG|ICANON|ECHO|ECHOE|ECHOK|ECHOCTL|ECHOKE|IEXTEN, .c_line: 0, .c_cc: \"{}\"}}",
            "\\x00".repeat(19)
        ),
    );
    native("ioctl", &[1, 0x541b, 0x1000], 0).exit(2, &bytes![9u32]).says("fd: 1, cmd: FIONREAD, arg: [9]");
    native("ioctl", &[1, 0x541b, 0x1000], -25).says("fd: 1, cmd: FIONREAD, arg: 0x1000");
}

#[test]
fn what_is_cut_says_so() {
    native("nanosleep", &[0x1000, 0], 0).entry(0, &bytes![1u64]).of(16).says("rqtp: {.tv_sec: 1, ...}");
    native("nanosleep", &[0x1000, 0], 0).entry(0, &bytes![1u64, 2u16]).of(16).says("rqtp: {.tv_sec: 1, ...}");
    native("nanosleep", &[0x1000, 0], 0).entry(0, &[]).of(16).says("rqtp: {...}");
    let how = bytes![0u64, 0u64, 0u64];
    let opened = |bytes: &[u8], size: u64| native("openat2", &[CWD, 0, 0x1000, size], 3).entry(2, bytes).of(size);
    opened(&how[..16], 16).says("dfd: CWD, how: {.flags: RDONLY, .mode: 0}, usize: 16");
    opened(&how[..12], 12).says("dfd: CWD, how: {.flags: RDONLY, ...}, usize: 12");
    opened(&how, 32).says("dfd: CWD, how: {.flags: RDONLY, .mode: 0, .resolve: 0, ...}, usize: 32");
    native("writev", &[1, 0x1000, 40], 5)
        .entry(1, &[0; 32 * 16])
        .of(40 * 16)
        .says(&format!("fd: 1, vec: [{}, ...], vlen: 40", ["{.iov_base: NULL, .iov_len: 0}"; 32].join(", ")));
    // Dots in place of bytes are no numbers.
    let altered =
        with_memory(native("nanosleep", &[0x1000, 0], 0).call, 0, When::Entry, 0x1000, &[b'.'; 16], PieceState::Altered { cut: false });
    Made { call: altered }.says("rqtp: 0x1000");
    let fault = with_memory(native("nanosleep", &[0x1000, 0], -14).call, 0, When::Entry, 0x1000, &[], PieceState::Fault);
    Made { call: fault.clone() }.says("rqtp: 0x1000");
    Made { call: with_memory(fault, 0, When::Retry, 0x1000, &bytes![1u64, 2u64], PieceState::Ok) }.says("rqtp: {.tv_sec: 1, .tv_nsec: 2}");
}

/// An address that pieces and pointers in them like to share, so that memory is found behind memory.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1u64..9, 1 => any::<u64>()]
}

/// Bytes that are addresses as often as not.
fn memory() -> impl Strategy<Value = Vec<u8>> {
    let words =
        proptest::collection::vec(address(), 0..80).prop_map(|words| words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
    let halves =
        proptest::collection::vec(0u32..9, 0..80).prop_map(|words| words.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    prop_oneof![words, halves, proptest::collection::vec(any::<u8>(), 0..300)]
}

fn state() -> impl Strategy<Value = PieceState> {
    prop_oneof![
        3 => Just(PieceState::Ok),
        1 => Just(PieceState::Cut),
        1 => Just(PieceState::Fault),
        1 => any::<bool>().prop_map(|cut| PieceState::Altered { cut }),
    ]
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![Just(When::Entry), Just(When::Exit), Just(When::Retry)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever the memory holds and however it is linked: one line, of printable characters, of bounded length.
    #[test]
    fn any_memory_is_one_clean_line(
        row in 0..crate::beauty::tables::SYSCALLS.len(), abi in 0usize..4, args in proptest::array::uniform6(address()), ret in -2i64..300,
        pieces in proptest::collection::vec((0u8..6, when(), address(), memory(), state(), prop_oneof![Just(None), address().prop_map(Some)]), 0..12),
    ) {
        let nr = crate::beauty::tables::SYSCALLS[row].numbers[abi].map_or(row as i64, i64::from);
        let mut call = Call { abi: Abi::ALL[abi], nr, ..call(args, ret) };
        for (arg, when, address, bytes, state, wanted) in &pieces {
            call = with_memory(call, *arg, *when, *address, bytes, *state);
            if let (Some(wanted), Some(last)) = (wanted, call.pieces.last_mut()) {
                last.wanted = *wanted;
            }
        }
        let line = event_line(&show(), &event(Time(1), What::Call(Box::new(call))));
        prop_assert!(line.ends_with('\n') && !line.trim_end_matches('\n').contains(char::is_control), "{line:?}");
        prop_assert!(line.len() < 1 << 20, "{}", line.len());
    }
}

/// Nanoseconds for a line with memory: `cargo test --release --lib beauty::perf -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement, not a check"]
fn cost_of_memory() {
    let stat: Vec<u8> =
        [0x801u64, 7, 1, 0o100_644, 100, 0, 4096, 512, 8, 1, 2, 3, 4, 5, 6, 0, 0, 0].into_iter().flat_map(u64::to_le_bytes).collect();
    let inet = [&bytes![2u16][..], &[0, 80, 127, 0, 0, 1], &[0; 8]].concat();
    let path = || native("newfstatat", &[CWD, 0x5000, 0x1000, 0], 0).entry(1, b"/usr/lib/locale/locale-archive\0");
    let parts = || native("writev", &[1, 0x1000, 2], 5).entry(1, &bytes![0x5000u64, 3u64, 0x6000u64, 2u64]);
    for (name, made) in [
        ("newfstatat, no memory", native("newfstatat", &[CWD, 0x5000, 0x1000, 0], 0)),
        ("newfstatat, path", path()),
        ("newfstatat, path and stat", path().exit(2, &stat)),
        ("read, no memory", native("read", &[3, 0x1000, 832], 832)),
        ("read, 32 bytes", native("read", &[3, 0x1000, 832], 832).exit(1, &[b'a'; 32]).of(832)),
        ("clock_nanosleep", native("clock_nanosleep", &[1, 0, 0x1000, 0], 0).entry(2, &bytes![1u64, 500u64])),
        ("connect", native("connect", &[3, 0x1000, 16], 0).entry(1, &inet)),
        ("writev of two", parts().at(1, When::Entry, 0x5000, b"abc").at(1, When::Entry, 0x6000, b"de")),
        ("rt_sigprocmask", native("rt_sigprocmask", &[0, 0x1000, 0, 8], 0).entry(1, &bytes![6u64])),
        ("poll of two", native("poll", &[0x1000, 2, 100], 1).entry(0, &[1; 16]).exit(0, &[2; 16])),
    ] {
        println!("{name}: {:.0} ns", cost(&made.call, None));
    }
}
