use super::super::row::Syscall;
use super::super::samples::{self, *};
use super::*;
use crate::event::{Abi, EventIndex, Fault, FdPlace, Loss, MapRef, PieceState, SigInfo, Signal, TaskEnd, TaskId};
use crate::kernel::format::Format;
use crate::session::{EventSpec, EventTable, Role, Terms};
use crate::show::TimeFormat;
use crate::stack::name::Nameless;
use proptest::prelude::*;
use std::sync::Arc;

/// Returns the lines of calls.
fn lines(show: &Show, calls: impl IntoIterator<Item = (Call, Option<&'static Syscall>)>) -> String {
    let mut style = Perf::new(show, &Session::default(), false);
    let mut out = Vec::new();
    for (call, row) in calls {
        let event = event(Time(1_000_050_000), EventKind::Call(Box::new(call.clone())));
        style.call(&mut out, &event, &call, &Decoded::with_row(&call, row, Context::new(&samples::comms, 32)));
    }
    String::from_utf8(out).unwrap()
}

fn line(row: &'static Syscall, call: Call) -> String {
    lines(&show(), [(call, Some(row))])
}

/// Returns the call's part of its line, without time, duration and task.
fn body(row: &'static Syscall, call: Call) -> String {
    line(row, call).strip_prefix("     0.000 ( 0.019 ms): sh/20131 ").unwrap().trim_end().to_owned()
}

fn event_line(show: &Show, event: &Event) -> String {
    let mut out = Vec::new();
    Perf::new(show, &Session::default(), false).event(
        &mut out,
        event,
        &StyleContext { session: &Session::default(), comm: &samples::comms, cgroup: &|_| None, names: &Nameless },
    );
    String::from_utf8(out).unwrap()
}

const CWD: u64 = -100i64 as u64;

fn opened(path: &[u8]) -> Call {
    with_file(with_piece(call([CWD, 0x7fff_1000, 0o2000000, 0, 0, 0], 3), 1, path, PieceState::Ok), FdPlace::Return, "/etc/passwd")
}

#[test]
fn the_result_of_a_call_is_aligned_to_its_column() {
    assert_eq!(
        line(&OPENAT, opened(b"/etc/passwd\0")),
        "     0.000 ( 0.019 ms): sh/20131 openat(dfd: CWD, filename: \"/etc/passwd\", flags: RDONLY|CLOEXEC)      = 3</etc/passwd>\n"
    );
    let equals = |line: String| line.split_once("sh/20131 ").unwrap().1.find("= ").unwrap();
    assert_eq!(equals(line(&GETPPID, call([0; 6], 7))), 70);
    assert_eq!(equals(line(&OPENAT, opened(b"/123456789\0"))), 70);
    assert_eq!(body(&OPENAT, opened("/gr\u{fc}n-9/123\0".as_bytes())).find("= "), Some(71), "a character is a column, of two bytes here");
    let long = body(&OPENAT, opened(b"/a/rather/long/path/that/passes/the/column\0"));
    assert!(long.contains("CLOEXEC) = 3"), "{long}");
}

#[test]
fn arguments_and_returns_are_printed_by_their_kind() {
    assert_eq!(body(&GETPPID, call([0; 6], 7)), format!("{:70}= 7 (x)", "getppid()"));
    assert_eq!(
        body(&READ, call([0, 0x7fff_dead_beef, 832, 0, 0, 0], 832)),
        format!("{:70}= 832", "read(fd: 0, buf: 0x7fffdeadbeef, count: 832)")
    );
    assert_eq!(
        body(&OPENAT, call([CWD, 0, 0o101, 0o644, 0, 0], 5)),
        format!("{:70}= 5", "openat(dfd: CWD, filename: NULL, flags: WRONLY|CREAT, mode: 0644)")
    );
    assert_eq!(
        body(&LSEEK, call([3, 0, 0, 0, 0, 0], 0)),
        format!("{:70}= 0", "lseek(fd: 3, offset: 0, whence: SET)"),
        "SET is zero, and a name"
    );
    assert_eq!(
        body(&LSEEK, call([3, 0, 77, 0, 0, 0], -22)),
        format!("{:70}= -1 EINVAL (Invalid argument)", "lseek(fd: 3, offset: 0, whence: 0x4d)")
    );
    assert_eq!(body(&MPROTECT, call([0x1000, 4096, 0, 0, 0, 0], 0)), format!("{:70}= 0", "mprotect(start: 0x1000, len: 4096, prot: NONE)"));
    assert_eq!(
        body(&MPROTECT, call([0x1000, 4096, 0x13, 0, 0, 0], 0)),
        format!("{:70}= 0", "mprotect(start: 0x1000, len: 4096, prot: READ|WRITE|0x10)")
    );
    assert_eq!(body(&KILL, call([7, 10, 0, 0, 0, 0], 0)), format!("{:70}= 0", "kill(pid: 7 (x), sig: USR1)"));
    assert_eq!(body(&KILL, call([8, 34, 0, 0, 0, 0], 0)), format!("{:70}= 0", "kill(pid: 8, sig: RT_2)"));
    assert_eq!(
        body(&POLL, call([0x1000, 2, 5, 0, 0, 0], 0)),
        format!("{:70}= 0 (Timeout)", "poll(ufds: 0x1000, nfds: 2, timeout_msecs: 5)")
    );
    assert_eq!(
        body(&MMAP, call([0, 4096, 0x22, 0, 0, 0], 0x7f59_1da0_e000)),
        format!("{:70}= 0x7f591da0e000", "mmap(len: 4096, flags: 0x22)")
    );
    assert_eq!(
        body(&MKNOD, call([0x1000, 0o20644, 0x801, 0, 0, 0], 0)),
        format!("{:70}= 0", "mknod(filename: 0x1000, mode: 020644, dev: 8:1)")
    );
    let cut = with_piece(call([1, 0x1000, 900, 0, 0, 0], 900), 1, b"0123456789012345678901234567890123456789", PieceState::Cut);
    assert_eq!(body(&WRITE, cut), "write(fd: 1, buf: \"01234567890123456789012345678901\"..., count: 900)  = 900");
}

#[test]
fn errors_have_name_and_text() {
    let failed = |ret| body(&GETPPID, call([0; 6], ret)).split_off(70);
    assert_eq!(failed(-2), "= -1 ENOENT (No such file or directory)");
    assert_eq!(failed(-512), "= ? ERESTARTSYS (To be restarted)");
    assert_eq!(failed(-516), "= ? ERESTART_RESTARTBLOCK (To be restarted by restart_syscall)");
    assert_eq!(failed(-4000), "= -1 (unknown error 4000)");
}

#[test]
fn zeros_names_and_prefixes_are_printed_on_request() {
    let zeros = Show { zeros: true, ..show() };
    let text = |show: &Show, row, call| lines(show, [(call, Some(row))]).split_off(33).trim_end().to_owned();
    assert_eq!(
        text(&zeros, &OPENAT, call([CWD, 0, 0, 0, 0, 0], 3)),
        format!("{:70}= 3", "openat(dfd: CWD, filename: NULL, flags: RDONLY)")
    );
    assert_eq!(text(&zeros, &KILL, call([0; 6], 0)), format!("{:70}= 0", "kill(pid: 0, sig: 0)"));
    let nameless = Show { arg_names: false, ..show() };
    assert_eq!(
        text(&nameless, &READ, call([3, 0x1000, 0, 0, 0, 0], 0)),
        format!("{:70}= 0", "read(3, 0x1000, 0)"),
        "without names, zeros are needed to tell the position of an argument"
    );
    let prefixed = Show { prefixes: true, ..show() };
    assert_eq!(
        text(&prefixed, &OPENAT, call([CWD, 0, 0o101, 0o600, 0, 0], 3)),
        "openat(dfd: AT_FDCWD, filename: NULL, flags: O_WRONLY|O_CREAT, mode: 0600) = 3"
    );
    assert_eq!(text(&prefixed, &KILL, call([1, 9, 0, 0, 0, 0], 0)), format!("{:70}= 0", "kill(pid: 1, sig: SIGKILL)"));
    let unaligned = Show { alignment: 0, ..show() };
    assert_eq!(text(&unaligned, &GETPPID, call([0; 6], 1)), "getppid() = 1");
}

#[test]
fn columns_before_the_call_are_printed_on_request() {
    let head = |show: &Show| lines(show, [(call([0; 6], 1), Some(&GETPPID))]).split("getppid").next().unwrap().to_owned();
    assert_eq!(head(&Show { cpu: true, ..show() }), "     0.000 [003] ( 0.019 ms): sh/20131 ");
    assert_eq!(head(&Show { comm: false, ..show() }), "     0.000 ( 0.019 ms): 20131 ");
    assert_eq!(head(&Show { durations: false, ..show() }), "     0.000 sh/20131 ");
    assert_eq!(head(&Show { timestamps: false, ..show() }), "( 0.019 ms): sh/20131 ");
    assert_eq!(head(&Show { timestamps: false, durations: false, ..show() }), "sh/20131 ");
    assert_eq!(head(&Show { time: TimeFormat::Monotonic, ..show() }), "     1.000000000 ( 0.019 ms): sh/20131 ");
}

#[test]
fn a_call_in_flight_is_shown_and_continued() {
    let begun = Call { exit: ExitState::Pending, ..call([7, 15, 0, 0, 0, 0], 0) };
    let done = Call { shown_pending: true, ..call([7, 15, 0, 0, 0, 0], -3) };
    let long = Call { exit: ExitState::Pending, ..opened(b"/a/rather/long/path/that/passes/the/column\0") };
    assert_eq!(
        lines(&show(), [(begun, Some(&KILL)), (done, Some(&KILL)), (long, Some(&OPENAT))]),
        [
            format!("     0.000 (         ): sh/20131 {:66} ...\n", "kill(pid: 7 (x), sig: TERM)"),
            format!("     0.000 ( 0.019 ms): sh/20131 {:70}= -1 ESRCH (No such process)\n", " ... [continued]: kill(pid: 7 (x), sig: TERM)"),
            "     0.000 (         ): sh/20131 openat(dfd: CWD, filename: \"/a/rather/long/path/that/passes/the/column\", flags: RDONLY|CLOEXEC) ...\n".to_owned(),
        ]
        .concat()
    );
}

#[test]
fn parts_of_a_call_that_were_not_seen_are_question_marks() {
    let unseen = Call { entry: EntryState::Unseen, args: None, ..call([0; 6], 0) };
    assert_eq!(line(&KILL, unseen.clone()), format!("         ? (         ): sh/20131 {:70}= 0\n", "kill(?)"));
    assert_eq!(line(&GETPPID, unseen), format!("         ? (         ): sh/20131 {:70}= 0\n", "getppid()"));
    let lost = Call { exit: ExitState::Unseen, ..call([7, 15, 0, 0, 0, 0], 0) };
    assert_eq!(line(&KILL, lost), format!("     0.000 (         ): sh/20131 {:70}= ? (exit not seen)\n", "kill(pid: 7 (x), sig: TERM)"));
    let gone = Call { exit: ExitState::Never, ..call([3, 0, 0, 0, 0, 0], 0) };
    assert_eq!(line(&EXIT_GROUP, gone), format!("     0.000 (         ): sh/20131 {:70}= ?\n", "exit_group(error_code: 3)"));
    let nobody = Event { comm: None, ..event(Time(5), EventKind::Exit(TaskEnd::Unknown)) };
    assert_eq!(event_line(&show(), &nobody), "     0.000 (         ): ?/20131 +++ exited with ? +++\n");
}

#[test]
fn unknown_syscalls_are_printed_with_number_and_registers() {
    let unknown = Call { nr: 9999, ..call([1, 0, u64::MAX, 0, 0, 0x10], -38) };
    let text = lines(&show(), [(unknown, None)]);
    assert_eq!(
        text,
        format!(
            "     0.000 ( 0.019 ms): sh/20131 {:70}= -1 ENOSYS (Function not implemented)\n",
            "syscall_9999(0x1, 0, 0xffffffffffffffff, 0, 0, 0x10)"
        )
    );
    let negative = Call { nr: -1, args: None, entry: EntryState::Unseen, ..call([0; 6], -38) };
    assert!(lines(&show(), [(negative, None)]).contains("syscall_-1(?)"));
}

#[test]
fn control_characters_in_text_are_escaped() {
    let hostile = Event { comm: Some(Arc::from(&b"a\nb\x1b]0;\xff"[..])), ..event(Time(5), EventKind::Exit(TaskEnd::Exited(0))) };
    assert_eq!(event_line(&show(), &hostile), "     0.000 (         ): a\\nb\\x1b]0;\\xff/20131 +++ exited with 0 +++\n");
    let path =
        with_file(with_piece(call([3, 0x1000, 0, 0, 0, 0], 0), 1, b"\"\n\x1b[31m\xc3\0", PieceState::Ok), FdPlace::Arg(0), "/tmp/\u{1b}>x");
    assert_eq!(body(&OPENAT, path), r#"openat(dfd: 3</tmp/\x1b\x3ex>, filename: "\"\n\x1b[31m\xc3", flags: RDONLY) = 0"#);
}

#[test]
fn signals_exits_and_lost_records_have_lines() {
    let shown = |what| event_line(&show(), &event(Time(2_000_000), what)).replace("     2.000 (         ): ", "");
    let signal = |number, errno, code| {
        let (errno, code) = (Some(errno), Some(code));
        shown(EventKind::Signal(Box::new(Signal { number, errno, code, ..Signal::default() })))
    };
    assert_eq!(signal(17, 0, 1), "sh/20131 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---\n");
    assert_eq!(signal(34, 5, 77), "sh/20131 --- SIGRT_2 {si_signo=SIGRT_2, si_errno=5, si_code=77} ---\n");
    let info = SigInfo { pid: Some(7), uid: Some(0), value: Some(42), ..SigInfo::default() };
    let queued = Signal { number: 10, errno: Some(0), code: Some(-1), info, pids_are_known: true, ..Signal::default() };
    let text = |pid: &str| {
        format!("sh/20131 --- SIGUSR1 {{si_signo=SIGUSR1, si_code=SI_QUEUE, si_pid={pid}, si_uid=0, si_int=42, si_ptr=0x2a}} ---\n")
    };
    assert_eq!(shown(EventKind::Signal(Box::new(queued.clone()))), text("7 (x)"));
    assert_eq!(shown(EventKind::Signal(Box::new(Signal { pids_are_known: false, ..queued }))), text("7"));
    assert_eq!(
        shown(EventKind::Signal(Box::new(Signal { number: 15, ..Signal::default() }))),
        "sh/20131 --- SIGTERM {si_signo=SIGTERM} ---\n"
    );
    assert_eq!(shown(EventKind::Exit(TaskEnd::Exited(3))), "sh/20131 +++ exited with 3 +++\n");
    let killed = |signal, core_dumped| shown(EventKind::Exit(TaskEnd::Killed { signal, core_dumped }));
    assert_eq!(killed(9, None), "sh/20131 +++ killed by SIGKILL +++\n");
    assert_eq!(killed(11, Some(false)), "sh/20131 +++ killed by SIGSEGV +++\n");
    assert_eq!(killed(11, Some(true)), "sh/20131 +++ killed by SIGSEGV (core dumped) +++\n");
    assert_eq!(shown(EventKind::Fork { child: TaskId::default(), flags: None }), "", "no line of its own");
    assert_eq!(shown(EventKind::Lost(Loss { records: Some(1), after: None })), "LOST 1 record on CPU 3 before 2.000\n");
    let mut style = Perf::new(&show(), &Session::default(), false);
    let mut out = Vec::new();
    style.event(
        &mut out,
        &event(Time(1_000_000), EventKind::Exit(TaskEnd::Exited(0))),
        &StyleContext { session: &Session::default(), comm: &samples::comms, cgroup: &|_| None, names: &Nameless },
    );
    style.event(
        &mut out,
        &event(Time(9_000_000), EventKind::Lost(Loss { records: Some(12), after: Some(Time(3_500_000)) })),
        &StyleContext { session: &Session::default(), comm: &samples::comms, cgroup: &|_| None, names: &Nameless },
    );
    assert!(String::from_utf8(out).unwrap().ends_with("\n     9.000 (         ): LOST 12 records on CPU 3 between 3.500 and 9.000\n"));
}

#[test]
fn page_faults_have_instruction_and_address() {
    let map = |path: &str, offset, executable| Some(MapRef { path: Arc::from(path.as_bytes()), offset, executable });
    let fault = Fault {
        major: true,
        ip: 0x7f00_1234,
        address: 0x7f00_5678,
        ip_at: map("/lib/libc.so.6", 0x1234, true),
        address_at: map("/data", 0x5678, false),
        stack: None,
    };
    let shown = |fault: Fault| event_line(&show(), &event(Time(2), EventKind::Fault(Box::new(fault)))).split_off(33);
    assert_eq!(shown(fault.clone()), "majfault [/lib/libc.so.6+0x1234] => /data@0x5678 (d.)\n");
    assert_eq!(
        shown(Fault { address_at: map("/bin/x", 0, true), ip_at: None, major: false, ..fault.clone() }),
        "minfault [0x7f001234] => /bin/x@0x0 (x.)\n"
    );
    assert_eq!(
        shown(Fault { address_at: None, address: 1 << 63, ip_at: None, ..fault }),
        "majfault [0x7f001234] => 0x8000000000000000 (?k)\n"
    );
}

#[test]
fn tracepoints_have_their_fields() {
    let format = "name: sched_wakeup\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";
    let spec = EventSpec {
        name: "sched:sched_wakeup".into(),
        role: Role::Tracepoint,
        sample_type: 0,
        format: Some(Format::parse(format).unwrap()),
        shown: true,
        terms: Default::default(),
    };
    let hidden = EventSpec { shown: false, ..spec.clone() };
    let named = EventSpec { terms: Terms { name: Some("wake\n".into()), ..Terms::default() }, ..spec.clone() };
    let session = Session { events: EventTable { events: vec![spec, hidden, named], ..EventTable::default() }, ..Session::default() };
    let mut raw = vec![0; 36];
    raw[8..11].copy_from_slice(b"x\n\0");
    (raw[24], raw[28]) = (7, 120);
    let shown = |index, show: &Show, raw: &[u8]| {
        let mut out = Vec::new();
        let raised =
            event(Time(5), EventKind::Tracepoint { event: EventIndex(index), raw: raw.into(), stack: None, caller: None, call: None });
        Perf::new(show, &session, false).event(
            &mut out,
            &raised,
            &StyleContext { session: &session, comm: &samples::comms, cgroup: &|_| None, names: &Nameless },
        );
        String::from_utf8(out).unwrap()
    };
    assert_eq!(shown(0, &show(), &raw), "     0.000 (         ): sh/20131 sched:sched_wakeup(comm: \"x\\n\", pid: 7 (x), prio: 120)\n");
    assert!(shown(0, &Show { zeros: true, ..show() }, &raw).ends_with("prio: 120, target_cpu: 0)\n"));
    assert!(shown(0, &show(), &raw[..28]).ends_with("pid: 7 (x), prio: ?, target_cpu: ?)\n"), "a record that is too short");
    assert_eq!(shown(1, &show(), &raw), "", "the event is not shown");
    assert!(shown(2, &show(), &raw).contains(" wake\\n(comm: "));
    assert_eq!(shown(3, &show(), &raw), "", "no such event");
}

#[test]
fn colours_do_not_shift_columns() {
    let mut style = Perf::new(&show(), &Session::default(), true);
    let failed = call([0; 6], -1);
    let mut slow = failed.clone();
    slow.exit = ExitState::Returned { at: Time(1_002_000_000), ret: 1 };
    let mut out = Vec::new();
    for call in [failed, slow] {
        let event = event(Time(1), EventKind::Call(Box::new(call.clone())));
        style.call(&mut out, &event, &call, &Decoded::with_row(&call, Some(&GETPPID), Context::new(&samples::comms, 32)));
    }
    let blanks = " ".repeat(61);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        format!(
            "     0.000 (\x1b[33m 0.019 ms\x1b[0m): sh/20131 \x1b[36mgetppid\x1b[0m(){blanks}= \x1b[31m-1 EPERM (Operation not permitted)\x1b[0m\n     0.000 (\x1b[31m 2.000 ms\x1b[0m): sh/20131 \x1b[36mgetppid\x1b[0m(){blanks}= 1\n"
        )
    );
}

/// Returns the line of a call from its name on, with the row of its number and ABI.
fn by_number(abi: Abi, nr: i64, args: [u64; 6], ret: i64) -> String {
    let call = Call { abi, nr, ..call(args, ret) };
    event_line(&show(), &event(Time(1_000_050_000), EventKind::Call(Box::new(call)))).split_off(33).trim_end().to_owned()
}

#[test]
fn calls_are_printed_by_the_row_of_their_abi() {
    let native = |nr, args, ret| by_number(Abi::X86_64, nr, args, ret);
    assert_eq!(
        native(257, [CWD, 0x7fff_1000, 0o2000000, 0, 0, 0], 3),
        format!("{:70}= 3", "openat(dfd: CWD, filename: 0x7fff1000, flags: RDONLY|CLOEXEC)")
    );
    assert_eq!(native(0, [3, 0x1000, 832, 0, 0, 0], 832), format!("{:70}= 832", "read(fd: 3, buf: 0x1000, count: 832)"));
    assert_eq!(native(10, [0x1000, 4096, 0, 0, 0, 0], 0), format!("{:70}= 0", "mprotect(start: 0x1000, len: 4096, prot: NONE)"));
    assert_eq!(
        native(9, [0, 4096, 3, 0x22, u64::MAX, 0], 0x7f00_0000_1000),
        "mmap(len: 4096, prot: READ|WRITE, flags: PRIVATE|ANONYMOUS)           = 0x7f0000001000"
    );
    assert_eq!(native(8, [3, 0, 0, 0, 0, 0], 0), format!("{:70}= 0", "lseek(fd: 3, offset: 0, whence: SET)"));
    assert_eq!(native(90, [0x1000, 0o755, 0, 0, 0, 0], 0), format!("{:70}= 0", "chmod(filename: 0x1000, mode: 0755)"));
    assert_eq!(native(39, [0; 6], 7), format!("{:70}= 7 (x)", "getpid()"));
    assert!(by_number(Abi::I386, 5, [0x1000, 0, 0, 0, 0, 0], 3).starts_with("open(filename: 0x1000, flags: RDONLY)"));
    assert!(by_number(Abi::Aarch64, 63, [3, 0x1000, 1, 0, 0, 0], 1).starts_with("read(fd: 3, buf: 0x1000, count: 1)"));
    assert!(by_number(Abi::I386, 140, [1, 0, 2, 3, 4, 0], 0).contains("llseek("));
}

mod memory;

proptest! {
    /// Any registers, memory and return value yield one line of printable characters.
    #[test]
    fn any_call_is_one_line_of_printable_characters(
        nr in -2i64..600, abi in 0usize..4, args in proptest::array::uniform6(prop_oneof![any::<u64>(), 0u64..64]), ret in any::<i64>(),
        memory in proptest::collection::vec(any::<u8>(), 0..40), seen in any::<bool>(), zeros in any::<bool>(), prefixes in any::<bool>(),
    ) {
        let mut call = Call { abi: Abi::ALL[abi], nr, ..call(args, ret) };
        for arg in 0..6 {
            call = with_piece(call, arg, &memory, PieceState::Ok);
        }
        if !seen {
            (call.args, call.entry) = (None, EntryState::Unseen);
        }
        let line = event_line(&Show { zeros, prefixes, ..show() }, &event(Time(1), EventKind::Call(Box::new(call))));
        prop_assert!(line.ends_with('\n') && !line.trim_end_matches('\n').contains(char::is_control), "{line:?}");
        prop_assert!(line.contains('(') && line.contains("= "), "{line}");
    }
}
