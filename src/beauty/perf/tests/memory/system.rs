//! Clocks, queues, limits, and calls that wait for descriptors.

use super::*;

#[test]
fn times_are_printed_in_each_layout() {
    native("nanosleep", &[0x1000, 0x2000], 0).entry(0, &bytes![1u64, 500u64]).prints("rqtp: {.tv_sec: 1, .tv_nsec: 500}, rmtp: 0x2000");
    compat("nanosleep", &[0x1000, 0], 0).entry(0, &bytes![1u32, 0u32]).prints("rqtp: {.tv_sec: 1, .tv_nsec: 0}");
    native("clock_gettime", &[1, 0x1000], 0).exit(1, &bytes![-1i64, 7u64]).prints("which_clock: MONOTONIC, tp: {.tv_sec: -1, .tv_nsec: 7}");
    compat("clock_gettime64", &[0, 0x1000], 0)
        .exit(1, &bytes![1u64 << 33, 7u64])
        .prints("which_clock: REALTIME, tp: {.tv_sec: 8589934592, .tv_nsec: 7}");
    native("gettimeofday", &[0x1000, 0x2000], 0)
        .exit(0, &bytes![1u64, 2u64])
        .exit(1, &bytes![60u32, 0u32])
        .prints("tv: {.tv_sec: 1, .tv_usec: 2}, tz: {.tz_minuteswest: 60, .tz_dsttime: 0}");
    compat("setitimer", &[0, 0x1000, 0x2000], 0).entry(1, &bytes![0u32, 0u32, 3u32, 4u32]).exit(2, &bytes![0u32, 0u32, 0u32, 0u32]).prints(
        "which: REAL, value: {.it_interval: {.tv_sec: 0, .tv_usec: 0}, .it_value: {.tv_sec: 3, .tv_usec: 4}}, \
             ovalue: {.it_interval: {.tv_sec: 0, .tv_usec: 0}, .it_value: {.tv_sec: 0, .tv_usec: 0}}",
    );
    native("timerfd_settime", &[3, 1, 0x1000, 0], 0)
        .entry(2, &bytes![0u64, 0u64, 3u64, 4u64])
        .prints("ufd: 3, flags: ABSTIME, utmr: {.it_interval: {.tv_sec: 0, .tv_nsec: 0}, .it_value: {.tv_sec: 3, .tv_nsec: 4}}");
    native("utimensat", &[3, 0, 0x1000, 0], 0)
        .entry(2, &bytes![1u64, 2u64, 0u64, 0x3fff_ffffu64])
        .prints("dfd: 3, filename: NULL, utimes: [{.tv_sec: 1, .tv_nsec: 2}, {.tv_sec: 0, .tv_nsec: NOW}]");
    native("time", &[0x1000], 17).exit(0, &bytes![17u64]).prints("tloc: [17]");
    native("times", &[0x1000], 17)
        .exit(0, &bytes![1u64, 2u64, 3u64, 4u64])
        .prints("tbuf: {.tms_utime: 1, .tms_stime: 2, .tms_cutime: 3, .tms_cstime: 4}");
}

#[test]
fn queues_and_attribute_structs_are_printed() {
    native("semop", &[1, 0x1000, 2], 0).entry(1, &bytes![0u16, -1i16, 0x1800u16, 1u16, 2i16, 0u16]).prints(
        "semid: 1, tsops: [{.sem_num: 0, .sem_op: -1, .sem_flg: IPC_NOWAIT|SEM_UNDO}, {.sem_num: 1, .sem_op: 2, .sem_flg: 0}], nsops: 2",
    );
    native("msgsnd", &[1, 0x1000, 2, 0], 0)
        .entry(1, &bytes![5u64, b'h', b'i'])
        .prints("msqid: 1, msgp: {.mtype: 5, .mtext: \"hi\"}, msgsz: 2");
    compat("msgsnd", &[1, 0x1000, 2, 0], 0)
        .entry(1, &bytes![5u32, b'h', b'i'])
        .prints("msqid: 1, msgp: {.mtype: 5, .mtext: \"hi\"}, msgsz: 2");
    let perm = "{.key: PRIVATE, .uid: 1, .gid: 2, .cuid: 3, .cgid: 4, .mode: 0600, .seq: 6}";
    let expected = format!("{{.sem_perm: {perm}, .sem_otime: 7, .sem_ctime: 8, .sem_nsems: 9}}");
    native("semctl", &[1, 0, 2, 0x1000], 0)
        .exit(3, &bytes![0u32, 1u32, 2u32, 3u32, 4u32, 0x180u32, 6u16, 0u16, 0u32, 0u64, 0u64, 7u64, 0u64, 8u64, 0u64, 9u64, 0u64, 0u64])
        .prints(&format!("semid: 1, cmd: IPC_STAT, arg: {expected}"));
    compat("semctl", &[1, 0, 2, 0x1000], 0)
        .exit(3, &bytes![0u32, 1u32, 2u32, 3u32, 4u32, 0x180u16, 0u16, 6u16, 0u16, 0u32, 0u32, 7u32, 0u32, 8u32, 0u32, 9u32, 0u32, 0u32])
        .prints(&format!("semid: 1, cmd: IPC_STAT, arg: {expected}"));
    native("mq_getsetattr", &[3, 0x1000, 0], 0)
        .entry(1, &bytes![0o4000u64, 10u64, 8192u64, 0u64, 0u64, 0u64, 0u64, 0u64])
        .prints("mqdes: 3, u_mqstat: {.mq_flags: NONBLOCK, .mq_maxmsg: 10, .mq_msgsize: 8192, .mq_curmsgs: 0}");
    native("capset", &[0x1000, 0x2000], 0)
        .entry(0, &bytes![0x2008_0522u32, 0u32])
        .entry(1, &bytes![1u32, 3u32, 0u32, 0u32, 0u32, 0u32])
        .prints("header: {.version: 3, .pid: 0}, data: {.effective: [CHOWN], .permitted: [CHOWN, DAC_OVERRIDE], .inheritable: []}");
    let odd = bytes![0u64, 0u64, 0u64, 0u64, 1u64 << 32 | 17, 0u64, 0u64, 0u64];
    native("clone3", &[0x1000, 64], -22).entry(0, &odd).prints(
        "uargs: {.flags: 0, .pidfd: NULL, .child_tid: NULL, .parent_tid: NULL, .exit_signal: 0x100000011, .stack: NULL, .stack_size: 0, .tls: NULL}, \
         size: 64",
    );
    native("landlock_create_ruleset", &[0x1000, 16, 0], 3)
        .entry(0, &bytes![5u64, 1u64])
        .prints("attr: {.handled_access_fs: EXECUTE|READ_FILE, .handled_access_net: BIND_TCP}, size: 16");
    native("adjtimex", &[0x1000], 0)
        .entry(0, &[&bytes![0x4002u32, 0u32, 0u64, 5u64][..], &[0; 184]].concat())
        .with_length(208)
        .exit(0, &[&bytes![0x4002u32, 0u32, 9u64, 5u64][..], &[0; 184]].concat())
        .prints(
            "txc_p: {.modes: FREQUENCY|TICK, .offset: 0 => 9, .freq: 5, .maxerror: 0, .esterror: 0, .status: 0, .constant: 0, .precision: 0, \
             .tolerance: 0, .time: {.tv_sec: 0, .tv_usec: 0}, .tick: 0, .ppsfreq: 0, .jitter: 0, .shift: 0, .stabil: 0, .jitcnt: 0, .calcnt: 0, \
             .errcnt: 0, .stbcnt: 0, .tai: 0}",
        );
}

#[test]
fn calls_of_32_bit_programs_have_their_own_order_and_widths() {
    // CLONE_SETTLS and CLONE_CHILD_SETTID
    native("clone", &[0x0108_0000, 0, 0, 0x1000, 0x2000], 7).prints("clone_flags: SETTLS|CHILD_SETTID, child_tidptr: 0x1000, tls: 0x2000");
    compat("clone", &[0x0108_0000, 0, 0, 0x2000, 0x1000], 7).prints("clone_flags: SETTLS|CHILD_SETTID, child_tidptr: 0x1000, tls: 0x2000");
    compat("getresuid", &[0x1000, 0x2000, 0x3000], 0)
        .exit(0, &bytes![1u16])
        .exit(1, &bytes![2u16])
        .exit(2, &bytes![3u16])
        .prints("ruidp: [1], euidp: [2], suidp: [3]");
    compat("getresuid32", &[0x1000, 0, 0], 0).exit(0, &bytes![100_000u32]).prints("ruidp: [100000]");
    compat("getgroups", &[4, 0x1000], 2).exit(1, &bytes![5u16, 6u16]).prints("gidsetsize: 4, grouplist: [5, 6]");
}

#[test]
fn numbers_behind_pointers_are_printed_in_brackets() {
    native("pipe2", &[0x1000, 0], 0).exit(0, &bytes![3u32, 4u32]).prints("fildes: [3, 4]");
    native("sendfile", &[1, 3, 0x1000, 10], 10)
        .entry(2, &bytes![5u64])
        .exit(2, &bytes![15u64])
        .prints("out_fd: 1, in_fd: 3, offset: [5 => 15], count: 10");
    native("getresuid", &[0x1000, 0x2000, 0x3000], 0)
        .exit(0, &bytes![1u32])
        .exit(1, &bytes![2u32])
        .exit(2, &bytes![3u32])
        .prints("ruidp: [1], euidp: [2], suidp: [3]");
    native("getgroups", &[40, 0x1000], 40)
        .exit(1, &(0..33u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>())
        .with_length(160)
        .prints(&format!("gidsetsize: 40, grouplist: [{}, ...]", (0..32).map(|id: u32| id.to_string()).collect::<Vec<_>>().join(", ")));
    native("arch_prctl", &[0x1003, 0x1000], 0).exit(1, &bytes![0x7f00_0000_1000u64]).prints("option: GET_FS, arg2: [0x7f0000001000]");
    native("ptrace", &[0x4201, 5, 0, 0x1000], 0).exit(3, &bytes![8u64]).prints("request: GETEVENTMSG, pid: 5, data: [8]");
    native("ptrace", &[1, 5, 0x4000, 0x1000], 0).exit(3, &bytes![0u64]).prints("request: PEEKTEXT, pid: 5, addr: 0x4000, data: [0]");
    native("name_to_handle_at", &[3, 0, 0x1000, 0x2000, 1], 0)
        .exit(3, &bytes![1u64 << 40])
        .prints("dfd: 3, name: NULL, handle: 0x1000, mnt_id: [1099511627776], flag: HANDLE_MNT_ID_UNIQUE");
}

#[test]
fn limits_and_system_information_are_printed() {
    native("prlimit64", &[0, 7, 0x1000, 0x2000], 0)
        .entry(2, &bytes![1024u64, u64::MAX])
        .exit(3, &bytes![512u64, 4096u64])
        .prints("pid: 0, resource: NOFILE, new_rlim: {.rlim_cur: 1024, .rlim_max: INFINITY}, old_rlim: {.rlim_cur: 512, .rlim_max: 4096}");
    compat("getrlimit", &[7, 0x1000], 0)
        .exit(1, &bytes![7u32, u32::MAX])
        .prints("resource: NOFILE, rlim: {.rlim_cur: 7, .rlim_max: INFINITY}");
    let mut name = Vec::new();
    for part in ["Linux", "host", "6.18.0", "#1 SMP", "x86_64", "(none)"] {
        name.extend_from_slice(part.as_bytes());
        name.resize(name.len().next_multiple_of(65), 0);
    }
    native("uname", &[0x1000], 0).exit(0, &name).prints(
        "name: {.sysname: \"Linux\", .nodename: \"host\", .release: \"6.18.0\", .version: \"#1 SMP\", .machine: \"x86_64\", .domainname: \"(none)\"}",
    );
    let expected = "info: {.uptime: 5, .loads: [1, 2, 3], .totalram: 6, .freeram: 7, .sharedram: 8, .bufferram: 9, .totalswap: 10, .freeswap: 11, \
                .procs: 12, .totalhigh: 13, .freehigh: 14, .mem_unit: 1}";
    native("sysinfo", &[0x1000], 0)
        .exit(0, &bytes![5u64, 1u64, 2u64, 3u64, 6u64, 7u64, 8u64, 9u64, 10u64, 11u64, 12u16, 0u16, 0u32, 13u64, 14u64, 1u32, 0u32])
        .prints(expected);
    compat("sysinfo", &[0x1000], 0)
        .exit(
            0,
            &[&bytes![5u32, 1u32, 2u32, 3u32, 6u32, 7u32, 8u32, 9u32, 10u32, 11u32, 12u16, 0u16, 13u32, 14u32, 1u32][..], &[0; 8]].concat(),
        )
        .prints(expected);
    native("sched_setattr", &[7, 0x1000, 0], 0).entry(1, &bytes![48u32, 6u32, 4u64, 0u32, 0u32, 10u64, 20u64, 30u64]).prints(
        "pid: 7 (x), uattr: {.size: 48, .sched_policy: DEADLINE, .sched_flags: DL_OVERRUN, .sched_nice: 0, .sched_priority: 0, \
             .sched_runtime: 10, .sched_deadline: 20, .sched_period: 30}",
    );
    native("sched_getaffinity", &[0, 8, 0x1000], 8).exit(2, &bytes![0b1011u64]).prints("pid: 0, len: 8, user_mask_ptr: [0, 1, 3]");
    native("mincore", &[0x1000, 8192, 0x2000], 0).exit(2, &[1, 0]).prints("start: 0x1000, len: 8192, vec: [1, 0]");
}

#[test]
fn poll_epoll_and_select_sets_are_printed() {
    let set = |first: u32, got: u16| bytes![first, 1u16, got, -1i32, 5u16, 0u16];
    native("poll", &[0x1000, 2, 100], 1)
        .entry(0, &set(3, 0))
        .exit(0, &set(3, 0x11))
        .prints("ufds: [{.fd: 3, .events: IN, .revents: IN|HUP}, {.fd: -1, .events: IN|OUT, .revents: 0}], nfds: 2, timeout_msecs: 100");
    native("epoll_ctl", &[3, 1, 4, 0x1000], 0)
        .entry(3, &bytes![0x8000_2001u32, 0x1234u64])
        .prints("epfd: 3, op: ADD, fd: 4, event: {.events: IN|RDHUP|ET, .data: 0x1234}");
    native("epoll_wait", &[3, 0x1000, 8, 5], 2)
        .exit(1, &bytes![1u32, 4u64, 0x10u32, 5u64])
        .prints("epfd: 3, events: [{.events: IN, .data: 0x4}, {.events: HUP, .data: 0x5}], maxevents: 8, timeout: 5");
    sample_call(Abi::Aarch64, "epoll_pwait", &[3, 0x1000, 8, 5, 0, 0], 1)
        .exit(1, &bytes![1u32, 0u32, 4u64])
        .prints("epfd: 3, events: [{.events: IN, .data: 0x4}], maxevents: 8, timeout: 5");
    native("select", &[6, 0x1000, 0x2000, 0, 0x3000], 1)
        .entry(1, &bytes![0b10_1000u64 | 1 << 40])
        .exit(1, &bytes![0b1000u64])
        .entry(2, &bytes![0u64])
        .exit(2, &bytes![0u64])
        .entry(4, &bytes![5u64, 0u64])
        .exit(4, &bytes![4u64, 9u64])
        .prints("n: 6, inp: [3, 5] => [3], outp: [], tvp: {.tv_sec: 5 => 4, .tv_usec: 0 => 9}");
}
