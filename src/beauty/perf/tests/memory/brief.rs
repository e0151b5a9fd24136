//! Tests of the brief forms of structs and arrays, which lines show without `--full`.

use super::*;

/// Returns a struct stat of x86-64.
fn stat(mode: u32, (uid, gid): (u32, u32), rdev: u64, size: u64) -> Vec<u8> {
    let mut bytes = bytes![0x801u64, 7u64, 1u64, mode, uid, gid, 0u32, rdev, size, 4096u64, 8u64, 1u64, 2u64, 3u64, 4u64, 5u64, 6u64];
    bytes.resize(144, 0);
    bytes
}

#[test]
fn a_stat_has_mode_size_foreign_owners_and_the_number_of_a_device() {
    let fstat = |stat: &[u8]| native("fstat", &[3, 0x1000], 0).exit(1, stat);
    fstat(&stat(0o100_644, (0, 0), 0, 4096)).prints_briefly("fd: 3, statbuf: {.st_mode: IFREG|0644, .st_size: 4096, ...}");
    fstat(&stat(0o100_600, (0, 0), 0, 0)).prints_briefly("fd: 3, statbuf: {.st_mode: IFREG|0600, .st_size: 0, ...}");
    fstat(&stat(0o040_755, (1000, 0), 0, 80)).prints_briefly("fd: 3, statbuf: {.st_mode: IFDIR|0755, .st_uid: 1000, .st_size: 80, ...}");
    fstat(&stat(0o020_620, (1000, 5), 0x8801, 0))
        .prints_briefly("fd: 3, statbuf: {.st_mode: IFCHR|0620, .st_uid: 1000, .st_gid: 5, .st_rdev: 136:1, .st_size: 0, ...}");
    let mut narrow = bytes![0x801u32, 7u32, 0o100_644u16, 1u16, 0u16, 100u16, 0u32, 9u32];
    narrow.resize(64, 0);
    compat("fstat", &[3, 0x1000], 0)
        .exit(1, &narrow)
        .prints_briefly("fd: 3, statbuf: {.st_mode: IFREG|0644, .st_gid: 100, .st_size: 9, ...}");
    native("fstat", &[3, 0x1000], -9).prints_briefly("fd: 3, statbuf: 0x1000");
}

#[test]
fn a_cut_struct_has_its_first_members() {
    let cut = |bytes: usize| native("fstat", &[3, 0x1000], 0).exit(1, &stat(0o100_644, (5, 0), 0, 9)[..bytes]).with_length(144);
    cut(24).prints_briefly("fd: 3, statbuf: {...}");
    cut(28).prints_briefly("fd: 3, statbuf: {.st_mode: IFREG|0644, ...}");
    cut(32).prints_briefly("fd: 3, statbuf: {.st_mode: IFREG|0644, .st_uid: 5, ...}");
}

#[test]
fn a_statx_has_what_its_mask_asks_for() {
    let statx = |mask: u64, mode: u16, attributes: u64, rdev: [u32; 2]| {
        let stamp = |seconds: i64| bytes![seconds, 5u32, 0u32];
        let bytes = [
            bytes![0x7ffu32, 4096u32, attributes, 1u32, 0u32, 0u32, mode, 0u16, 7u64, 10u64, 8u64, 0x30u64],
            [1, 2, 3, 4].map(stamp).concat(),
            bytes![rdev[0], rdev[1], 8u32, 1u32, 9u64],
            vec![0; 104],
        ]
        .concat();
        native("statx", &[3, 0, 0, mask, 0x1000], 0).exit(4, &bytes)
    };
    statx(0x202, 0o100_755, 0, [0, 0])
        .prints_briefly("dfd: 3, filename: NULL, mask: MODE|SIZE, buffer: {.stx_mode: IFREG|0755, .stx_size: 10, ...}");
    statx(0x25e, 0o100_755, 0, [0, 0]).prints_briefly(
        "dfd: 3, filename: NULL, mask: MODE|NLINK|UID|GID|MTIME|SIZE, buffer: {.stx_nlink: 1, .stx_uid: 0, .stx_gid: 0, .stx_mode: IFREG|0755, \
         .stx_size: 10, .stx_mtime: {.tv_sec: 4, .tv_nsec: 5}, ...}",
    );
    statx(0, 0o100_755, 0, [0, 0]).prints_briefly("dfd: 3, filename: NULL, buffer: {...}");
    statx(1, 0o100_755, 0x10, [0, 0])
        .prints_briefly("dfd: 3, filename: NULL, mask: TYPE, buffer: {.stx_attributes: IMMUTABLE, .stx_mode: IFREG|0755, ...}");
    statx(1, 0o060_660, 0, [8, 0])
        .prints_briefly("dfd: 3, filename: NULL, mask: TYPE, buffer: {.stx_mode: IFBLK|0660, .stx_rdev_major: 8, .stx_rdev_minor: 0, ...}");
}

#[test]
fn directory_entries_have_a_number_and_the_first_names() {
    let entry = |name: &str| {
        let length = (19 + name.len() + 1).next_multiple_of(8);
        let mut bytes = [&bytes![1u64, 9u64, length as u16, 8u8][..], name.as_bytes()].concat();
        bytes.resize(length, 0);
        bytes
    };
    let listed = |names: &[&str]| names.iter().flat_map(|name| entry(name)).collect::<Vec<u8>>();
    let read = |bytes: &[u8]| native("getdents64", &[3, 0x1000, 32768], bytes.len() as i64).exit(1, bytes);
    read(&listed(&[".", "..", "a\nb"])).prints_briefly("fd: 3, dirent: [3 entries: \".\", \"..\", \"a\\nb\"], count: 32768");
    read(&listed(&["only"])).prints_briefly("fd: 3, dirent: [1 entry: \"only\"], count: 32768");
    let eight = listed(&[".", "..", "a", "b", "c", "d", "e", "f"]);
    read(&eight).prints_briefly("fd: 3, dirent: [8 entries: \".\", \"..\", \"a\", \"b\", \"c\", \"d\", ...], count: 32768");
    read(&eight[..40]).with_length(192).prints_briefly("fd: 3, dirent: [1 or more entries: \".\", ...], count: 32768");
    read(&[]).prints_briefly("fd: 3, dirent: [], count: 32768");
    read(&[0; 24]).prints_briefly("fd: 3, dirent: [...], count: 32768");
    let old = [&bytes![1u32, 9u32, 16u16][..], b"x\0\0\0\0\x08"].concat();
    compat("getdents", &[3, 0x1000, 32768], 16).exit(1, &old).prints_briefly("fd: 3, dirent: [1 entry: \"x\"], count: 32768");
}

#[test]
fn arrays_of_structs_have_their_first_elements() {
    let buffers = |count: usize| native("writev", &[1, 0x1000, count as u64], 0).entry(1, &vec![0; count * 16]);
    let part = "{.iov_base: NULL, .iov_len: 0}";
    buffers(4).prints_briefly(&format!("fd: 1, vec: [{part}, {part}, {part}, {part}], vlen: 4"));
    buffers(5).prints_briefly(&format!("fd: 1, vec: [{part}, {part}, {part}, {part}, ...], vlen: 5"));
    buffers(5).prints(&format!("fd: 1, vec: [{part}, {part}, {part}, {part}, {part}], vlen: 5"));
    let events: Vec<u8> = (0..9u64).flat_map(|data| bytes![1u32, data]).collect();
    let shown: Vec<String> = (0..8)
        .map(|data| if data == 0 { "{.events: IN, .data: 0}".into() } else { format!("{{.events: IN, .data: {data:#x}}}") })
        .collect();
    native("epoll_wait", &[3, 0x1000, 16, 5], 9)
        .exit(1, &events)
        .prints_briefly(&format!("epfd: 3, events: [{}, ...], maxevents: 16, timeout: 5", shown.join(", ")));
    let groups: Vec<u8> = (0..10u32).flat_map(u32::to_le_bytes).collect();
    native("getgroups", &[10, 0x1000], 10).exit(1, &groups).prints_briefly("gidsetsize: 10, grouplist: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]");
}

#[test]
fn changed_members_have_their_old_values() {
    let entry = PieceTime::Entry;
    let header = |flags: u32| bytes![0x5000u32, 16u32, 0x6000u32, 1u32, 0u32, 0u32, flags];
    compat("recvmsg", &[3, 0x1000, 0], 5)
        .entry(1, &header(0))
        .exit(1, &header(0x20))
        .at(1, PieceTime::Exit, 0x5000, &bytes![16u16, 0u16, 0u32, 0u32])
        .at(1, entry, 0x6000, &bytes![0x8000u32, 5u32])
        .at(1, PieceTime::Exit, 0x8000, b"hello")
        .prints_briefly(
            "fd: 3, msg: {.msg_name: {.nl_family: NETLINK, .nl_pid: 0, .nl_groups: 0}, .msg_iov: [{.iov_base: \"hello\", .iov_len: 5}], \
             .msg_flags: TRUNC, ...}",
        );
    let reset = "fd: 3, msg: {.msg_iov: NULL, .msg_flags: TRUNC => 0, ...}";
    let empty = |flags: u32| bytes![0u32, 0u32, 0u32, 0u32, 0u32, 0u32, flags];
    compat("recvmsg", &[3, 0x1000, 0], 0).entry(1, &empty(0x20)).exit(1, &empty(0)).prints_briefly(reset);
    let timex = |offset: u64| [&bytes![0x4002u32, 0u32, offset, 5u64][..], &[0; 184]].concat();
    native("adjtimex", &[0x1000], 0)
        .entry(0, &timex(0))
        .exit(0, &timex(9))
        .prints_briefly("txc_p: {.modes: FREQUENCY|TICK, .offset: 0 => 9, .freq: 5, .status: 0, .time: {.tv_sec: 0, .tv_usec: 0}, ...}");
}

#[test]
fn a_struct_from_which_nothing_is_left_out_has_no_dots() {
    let created = |attr: &[u8]| native("landlock_create_ruleset", &[0x1000, attr.len() as u64, 0], 3).entry(0, attr);
    created(&bytes![5u64]).prints_briefly("attr: {.handled_access_fs: EXECUTE|READ_FILE}, size: 8");
    created(&bytes![5u64, 1u64]).prints_briefly("attr: {.handled_access_fs: EXECUTE|READ_FILE, .handled_access_net: BIND_TCP}, size: 16");
    created(&bytes![5u64, 0u64]).prints_briefly("attr: {.handled_access_fs: EXECUTE|READ_FILE, ...}, size: 16");
    let clone: Vec<u8> = bytes![0x100_1200u64, 0x5000u64, 0x6000u64, 0x7000u64, 17u64, 0u64, 0u64, 0u64];
    native("clone3", &[0x1000, 64], 7)
        .entry(0, &clone)
        .prints_briefly("uargs: {.flags: FS|PIDFD|CHILD_SETTID, .pidfd: 0x5000, .parent_tid: 0x7000, .exit_signal: CHLD, ...}, size: 64");
}

#[test]
fn other_long_structs_have_what_people_look_for() {
    let rusage: Vec<u8> = (1..=18u64).flat_map(u64::to_le_bytes).collect();
    native("getrusage", &[0, 0x1000], 0)
        .exit(1, &rusage)
        .prints_briefly("who: SELF, ru: {.ru_utime: {.tv_sec: 1, .tv_usec: 2}, .ru_stime: {.tv_sec: 3, .tv_usec: 4}, .ru_maxrss: 5, ...}");
    native("rt_sigaction", &[17, 0x1000, 0x2000, 8], 0)
        .entry(1, &bytes![0x40_1000u64, 0x1400_0004u64, 0x7f00_1000u64, 1u64 << 1])
        .exit(2, &bytes![0u64, 0u64, 0u64, 0u64])
        .prints_briefly(
            "sig: CHLD, act: {.sa_handler: 0x401000, .sa_flags: SIGINFO|RESTORER|RESTART, .sa_mask: [INT], ...}, \
             oact: {.sa_handler: DFL, .sa_flags: 0, ...}, sigsetsize: 8",
        );
    let mut ended = bytes![17u32, 0u32, 1u32, 0u32, 7u32, 0u32, 3u32, 0u32, 5u64, 6u64];
    ended.resize(128, 0);
    native("waitid", &[1, 7, 0x1000, 4, 0], 0).exit(2, &ended).prints_briefly(
        "which: PID, upid: 7 (x), infop: {.si_signo: CHLD, .si_code: CLD_EXITED, .si_pid: 7 (x), .si_status: 3, ...}, options: WEXITED",
    );
    let mut inet6 = [&bytes![10u16][..], &[1, 187, 0, 0, 0, 0], &[0; 16], &bytes![0u32]].concat();
    inet6[23] = 1;
    native("connect", &[3, 0x1000, 28], 0)
        .entry(1, &inet6)
        .prints_briefly("fd: 3, uservaddr: {.sin6_family: INET6, .sin6_port: 443, .sin6_addr: ::1, ...}, addrlen: 28");
    native("statfs", &[0, 0x1000], 0)
        .exit(
            1,
            &bytes![0xef53u64, 4096u64, 10u64, 9u64, 8u64, 7u64, 6u64, 1u32, -2i32, 255u64, 4096u64, 0x1020u64, 0u64, 0u64, 0u64, 0u64],
        )
        .prints_briefly("pathname: NULL, buf: {.f_type: EXT4_SUPER_MAGIC, .f_bsize: 4096, .f_blocks: 10, .f_bavail: 8, .f_ffree: 6, ...}");
    native("ioctl", &[1, 0x5413, 0x1000], 0)
        .exit(2, &bytes![24u16, 80u16, 0u16, 0u16])
        .prints_briefly("fd: 1, cmd: TIOCGWINSZ, arg: {.ws_row: 24, .ws_col: 80, ...}");
    native("sched_setattr", &[7, 0x1000, 0], 0)
        .entry(1, &bytes![48u32, 0u32, 0u64, 7u32, 0u32, 0u64, 0u64, 0u64])
        .prints_briefly("pid: 7 (x), uattr: {.sched_policy: NORMAL, .sched_nice: 7, ...}");
}
