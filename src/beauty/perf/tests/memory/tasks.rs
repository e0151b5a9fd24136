//! Arguments of programs, signals, children.

use super::*;

#[test]
fn program_arguments_are_printed_and_environments_counted() {
    let execve = |made: SampleCall, word: fn(u64) -> Vec<u8>| {
        let pointers = [0x5000, 0x6000, 0].map(word).concat();
        made.entry(0, b"/bin/ls\0")
            .entry(1, &pointers)
            .at(1, PieceTime::Entry, 0x5000, b"ls\0")
            .at(1, PieceTime::Entry, 0x6000, b"-l\0")
            .entry(2, &word(0))
    };
    execve(native("execve", &[0x1000, 0x2000, 0x3000], 0), |word| bytes![word])
        .prints("filename: \"/bin/ls\", argv: [\"ls\", \"-l\"], envp: []");
    execve(compat("execve", &[0x1000, 0x2000, 0x3000], 0), |word| bytes![word as u32])
        .prints("filename: \"/bin/ls\", argv: [\"ls\", \"-l\"], envp: []");
    // The strings of an environment are counted and not copied.
    let many = |count: u64| (1..=count).flat_map(|at| (at * 0x1000).to_le_bytes()).collect::<Vec<u8>>();
    let executed = |bytes: &[u8]| native("execve", &[0, 0x90_0000, 0x90_0000], 0).entry(2, bytes);
    executed(&[many(40), vec![0; 8]].concat()).prints("filename: NULL, argv: 0x900000, envp: [40 strings]");
    executed(&[many(1), vec![0; 8]].concat()).prints("filename: NULL, argv: 0x900000, envp: [1 string]");
    executed(&many(40)).with_length(328).prints("filename: NULL, argv: 0x900000, envp: [40 or more strings]");
    let shown: Vec<String> = (1..=32).map(|at| format!("{:#x}", at * 0x1000)).collect();
    let partly_read = with_memory(executed(&[many(40), vec![0; 8]].concat()).call, 2, PieceTime::Entry, 0x1000, &[], PieceState::Fault);
    SampleCall { call: partly_read }.prints(&format!("filename: NULL, argv: 0x900000, envp: [{}, ...]", shown.join(", ")));
}

#[test]
fn signal_sets_and_actions_are_printed() {
    let mask = |signals: &[u32]| bytes![signals.iter().fold(0u64, |mask, signal| mask | 1 << (signal - 1))];
    native("rt_sigprocmask", &[0, 0x1000, 0x2000, 8], 0)
        .entry(1, &mask(&[2, 15, 34]))
        .exit(2, &mask(&[]))
        .prints("how: BLOCK, nset: [INT, TERM, RT_2], oset: [], sigsetsize: 8");
    native("rt_sigprocmask", &[2, 0x1000, 0, 8], 0)
        .entry(1, &bytes![!(1u64 << 8 | 1 << 18)])
        .prints("how: SETMASK, nset: ~[KILL, STOP], sigsetsize: 8");
    native("rt_sigaction", &[17, 0x1000, 0x2000, 8], 0)
        .entry(1, &bytes![0x40_1000u64, 0x1400_0004u64, 0x7f00_1000u64, 1u64 << 1])
        .exit(2, &bytes![0u64, 0u64, 0u64, 0u64])
        .prints(
            "sig: CHLD, act: {.sa_handler: 0x401000, .sa_flags: SIGINFO|RESTORER|RESTART, .sa_restorer: 0x7f001000, .sa_mask: [INT]}, \
             oact: {.sa_handler: DFL, .sa_flags: 0, .sa_restorer: NULL, .sa_mask: []}, sigsetsize: 8",
        );
    compat("rt_sigaction", &[2, 0x1000, 0, 8], 0)
        .entry(1, &bytes![1u32, 0u32, 0u32, 0u64])
        .prints("sig: INT, act: {.sa_handler: IGN, .sa_flags: 0, .sa_restorer: NULL, .sa_mask: []}, sigsetsize: 8");
    compat("sigaltstack", &[0x1000, 0], 0)
        .entry(0, &bytes![0x8000u32, 0x8000_0001u32, 4096u32])
        .prints("uss: {.ss_sp: 0x8000, .ss_flags: ONSTACK|AUTODISARM, .ss_size: 4096}");
    native("pselect6", &[0, 0, 0, 0, 0, 0x1000], 0)
        .entry(5, &bytes![0x2000u64, 8u64])
        .at(5, PieceTime::Entry, 0x2000, &mask(&[2]))
        .prints("sig: {.p: [INT], .size: 8}");
}

#[test]
fn siginfo_and_sigevent_have_the_members_of_their_kind() {
    let info = |signal: u32, code: i32, rest: &[u8]| {
        let mut bytes = bytes![signal, 0u32, code, 0u32];
        bytes.extend_from_slice(rest);
        bytes.resize(128, 0);
        bytes
    };
    let waited = |info: &[u8]| native("waitid", &[1, 7, 0x1000, 4, 0], 0).exit(2, info);
    waited(&info(17, 1, &bytes![7u32, 1000u32, 3u32, 0u32, 5u64, 6u64])).prints(
        "which: PID, upid: 7 (x), infop: {.si_signo: CHLD, .si_code: CLD_EXITED, .si_pid: 7 (x), .si_uid: 1000, .si_status: 3, .si_utime: 5, \
         .si_stime: 6}, options: WEXITED",
    );
    let sent = |info: &[u8]| native("rt_sigqueueinfo", &[7, 10, 0x1000], 0).entry(2, info);
    sent(&info(10, -1, &bytes![8u32, 0u32, 0x1234u64]))
        .prints("pid: 7 (x), sig: USR1, uinfo: {.si_signo: USR1, .si_code: SI_QUEUE, .si_pid: 8, .si_uid: 0, .si_value: 0x1234}");
    sent(&info(10, 0, &bytes![8u32, 0u32]))
        .prints("pid: 7 (x), sig: USR1, uinfo: {.si_signo: USR1, .si_code: SI_USER, .si_pid: 8, .si_uid: 0}");
    sent(&info(11, 1, &bytes![0xdead_0000u64]))
        .prints("pid: 7 (x), sig: USR1, uinfo: {.si_signo: SEGV, .si_code: SEGV_MAPERR, .si_addr: 0xdead0000}");
    sent(&info(7, 4, &bytes![0xdead_0000u64, 12u16]))
        .prints("pid: 7 (x), sig: USR1, uinfo: {.si_signo: BUS, .si_code: BUS_MCEERR_AR, .si_addr: 0xdead0000, .si_addr_lsb: 12}");
    sent(&info(11, 4, &bytes![0xdead_0000u64, 0u64, 9u32]))
        .prints("pid: 7 (x), sig: USR1, uinfo: {.si_signo: SEGV, .si_code: SEGV_PKUERR, .si_addr: 0xdead0000, .si_pkey: 9}");
    let mut failed = info(10, -1, &bytes![8u32, 0u32, 0u64]);
    failed[4] = 2;
    sent(&failed).prints(
        "pid: 7 (x), sig: USR1, uinfo: {.si_signo: USR1, .si_errno: ENOENT, .si_code: SI_QUEUE, .si_pid: 8, .si_uid: 0, .si_value: 0}",
    );
    sent(&info(10, 77, &[])).prints("pid: 7 (x), sig: USR1, uinfo: {.si_signo: USR1, .si_code: 77}");
    waited(&[0; 128]).prints("which: PID, upid: 7 (x), infop: {.si_signo: 0}, options: WEXITED");
    let mut narrow = bytes![17u32, 0u32, 2u32, 7u32, 0u32, 9u32, 5u32, 6u32];
    narrow.resize(128, 0);
    compat("waitid", &[1, 7, 0x1000, 4, 0], 0).exit(2, &narrow).prints(
        "which: PID, upid: 7 (x), infop: {.si_signo: CHLD, .si_code: CLD_KILLED, .si_pid: 7 (x), .si_uid: 0, .si_status: 9, .si_utime: 5, \
         .si_stime: 6}, options: WEXITED",
    );
    native("timer_create", &[1, 0x1000, 0x2000], 0)
        .entry(1, &[&bytes![5u64, 10u32, 4u32, 7u32][..], &[0; 44]].concat())
        .exit(2, &bytes![3u32])
        .prints(
            "which_clock: MONOTONIC, timer_event_spec: {.sigev_value: 0x5, .sigev_signo: USR1, .sigev_notify: THREAD_ID, \
             .sigev_notify_thread_id: 7 (x)}, created_timer_id: [3]",
        );
    compat("mq_notify", &[3, 0x1000], 0)
        .entry(1, &[&bytes![5u32, 10u32, 0u32][..], &[0; 52]].concat())
        .prints("mqdes: 3, u_notification: {.sigev_value: 0x5, .sigev_signo: USR1, .sigev_notify: SIGNAL}");
}

#[test]
fn wait_statuses_usage_and_clone_arguments_are_printed() {
    let waited = |status: u32| native("wait4", &[u64::MAX, 0x1000, 0, 0], 7).exit(1, &bytes![status]);
    waited(0x300).prints("upid: -1, stat_addr: [{.exited: 3}]");
    waited(9).prints("upid: -1, stat_addr: [{.killed: KILL}]");
    waited(0x8b).prints("upid: -1, stat_addr: [{.killed: SEGV, .dumped: 1}]");
    waited(0x137f).prints("upid: -1, stat_addr: [{.stopped: STOP}]");
    waited(0x3_057f).prints("upid: -1, stat_addr: [{.stopped: TRAP, .event: CLONE}]");
    waited(0xffff).prints("upid: -1, stat_addr: [{.continued: 1}]");
    let rusage: Vec<u8> = (1..=18u64).flat_map(u64::to_le_bytes).collect();
    let text = "ru: {.ru_utime: {.tv_sec: 1, .tv_usec: 2}, .ru_stime: {.tv_sec: 3, .tv_usec: 4}, .ru_maxrss: 5, .ru_ixrss: 6, .ru_idrss: 7, \
                .ru_isrss: 8, .ru_minflt: 9, .ru_majflt: 10, .ru_nswap: 11, .ru_inblock: 12, .ru_oublock: 13, .ru_msgsnd: 14, .ru_msgrcv: 15, \
                .ru_nsignals: 16, .ru_nvcsw: 17, .ru_nivcsw: 18}";
    native("getrusage", &[0, 0x1000], 0).exit(1, &rusage).prints(&format!("who: SELF, {text}"));
    let narrow: Vec<u8> = (1..=18u32).flat_map(u32::to_le_bytes).collect();
    compat("getrusage", &[0, 0x1000], 0).exit(1, &narrow).prints(&format!("who: SELF, {text}"));
    let clone: Vec<u8> = bytes![0x100_1200u64, 0x5000u64, 0x6000u64, 0x7000u64, 17u64, 0u64, 0u64, 0u64, 0x8000u64, 2u64, 0u64];
    let cloned = native("clone3", &[0x1000, 88], 7)
        .entry(0, &clone)
        .at(0, PieceTime::Entry, 0x8000, &bytes![7u32, 8u32])
        .exit(0, &clone)
        .at(0, PieceTime::Exit, 0x5000, &bytes![4u32]);
    cloned.prints(
        "uargs: {.flags: FS|PIDFD|CHILD_SETTID, .pidfd: [4], .child_tid: 0x6000, .parent_tid: 0x7000, .exit_signal: CHLD, .stack: NULL, \
         .stack_size: 0, .tls: NULL, .set_tid: [7, 8], .set_tid_size: 2, .cgroup: 0}, size: 88",
    );
    // What is at the address of the pidfd is the tid, because there is no pidfd.
    let without: Vec<u8> = bytes![0x110_0200u64, 0x5000u64, 0u64, 0x5000u64, 17u64, 0u64, 0u64, 0u64];
    let cloned = native("clone3", &[0x1000, 64], 7).entry(0, &without).exit(0, &without).at(0, PieceTime::Exit, 0x5000, &bytes![7u32]);
    cloned.prints(
        "uargs: {.flags: FS|PARENT_SETTID|CHILD_SETTID, .pidfd: 0x5000, .child_tid: NULL, .parent_tid: [7 (x)], .exit_signal: CHLD, \
         .stack: NULL, .stack_size: 0, .tls: NULL}, size: 64",
    );
    native("clone3", &[0x1000, 64], 7).entry(0, &clone[..64]).prints(
        "uargs: {.flags: FS|PIDFD|CHILD_SETTID, .pidfd: 0x5000, .child_tid: 0x6000, .parent_tid: 0x7000, .exit_signal: CHLD, .stack: NULL, \
         .stack_size: 0, .tls: NULL}, size: 64",
    );
}
