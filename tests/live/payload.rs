//! The memory that calls point to, as the BPF engine copies it: each call has its own data, exact to the byte.

use crate::line;
use crate::machine::Machine;
use crate::trace::{Trace, trace, workload};
use regex::Regex;

/// Runs a scene and returns its calls without those of the program's start: `NAME(ARGS)`, with `ADDRESS` for addresses.
/// Runs with `--full`, so that structs have all members.
fn scene(machine: &Machine, name: &str, selection: &str, more: &[&str]) -> (Trace, Vec<String>) {
    let options = [&["--engine", "bpf", "--full", "-e", selection], more].concat();
    let trace = workload(machine, &options, &format!("payload {name}")).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    let address = Regex::new("0x[0-9a-f]{7,}").expect("it is one");
    let lines = trace.lines();
    let calls = line::calls(&lines).into_iter().map(|(_, call)| format!("{}({})", call.name, address.replace_all(&call.args, "ADDRESS")));
    let calls = calls.collect();
    (trace, calls)
}

#[test]
fn the_value_of_an_argument_decides_what_is_copied() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (_, calls) = scene(&machine, "variants", "fcntl,prctl,futex,ioctl", &[]);
    let lock = ".l_whence: SET, .l_start: 3, .l_len: 7, .l_pid: 0}";
    let file = "3</memfd:payload (deleted)>";
    let expected = [
        format!("fcntl(fd: {file}, cmd: SETLK, arg: {{.l_type: WRLCK, {lock})"),
        format!("fcntl(fd: {file}, cmd: GETLK, arg: {{.l_type: WRLCK => UNLCK, {lock})"),
        format!("fcntl(fd: {file}, cmd: DUPFD, arg: 40)"),
        "prctl(option: SET_NAME, arg2: \"known\")".to_owned(),
        "prctl(option: GET_NAME, arg2: \"known\")".to_owned(),
        "futex(uaddr: ADDRESS, op: WAIT|PRIVATE_FLAG, val: 1, utime: {.tv_sec: 0, .tv_nsec: 1000})".to_owned(),
        "futex(uaddr: ADDRESS, op: WAKE|PRIVATE_FLAG, val: 1)".to_owned(),
        format!("ioctl(fd: {file}, cmd: FIONREAD, arg: [0])"),
        format!("ioctl(fd: {file}, cmd: 0xc5a01, arg: ADDRESS)"),
        format!("ioctl(fd: {file}, cmd: 0x400c5a01, arg: \"twelve bytes\")").replace("0x400c5a01", "ADDRESS"),
        format!("ioctl(fd: {file}, cmd: 0x800c5a01, arg: ADDRESS)").replace("0x800c5a01", "ADDRESS"),
    ];
    assert_eq!(calls, expected);
}

#[test]
fn a_descriptor_that_a_variant_returns_has_its_file() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (trace, _) = scene(&machine, "variants", "fcntl", &[]);
    assert!(trace.text.contains("= 40</memfd:payload (deleted)>"), "{}", trace.text);
}

/// Each of these buffers ends at the end of its mapping.
#[test]
fn no_byte_more_than_the_call_names_is_read() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let selection = "msgsnd,set_mempolicy,openat2,pselect6,sched_setattr,mincore,setsockopt,setxattrat,writev,getgroups";
    let (_, calls) = scene(&machine, "exact", selection, &[]);
    let expected = [
        "msgsnd(msqid: -1, msgp: {.mtype: 1, .mtext: \"hello\"}, msgsz: 5)",
        "set_mempolicy(mode: 0x63, nmask: [0, 2], maxnode: 65)",
        "openat2(dfd: CWD, filename: \"/nonexistent\", how: {.flags: RDONLY, .mode: 0, .resolve: 0}, usize: 24)",
        "pselect6(n: -1, sig: {.p: [USR1], .size: 8})",
        "sched_setattr(pid: -1, uattr: {.size: 48, .sched_policy: NORMAL, .sched_flags: 0, .sched_nice: 7, .sched_priority: 0, \
         .sched_runtime: 0, .sched_deadline: 0, .sched_period: 0})",
        "mincore(start: ADDRESS, len: 8193, vec: [0, 0, 0])",
        "setsockopt(fd: -1, level: SOCKET, optname: RCVTIMEO_OLD, optval: {.tv_sec: 5, .tv_usec: 6}, optlen: 16)",
        "setxattrat(dfd: CWD, pathname: \"/nonexistent\", name: \"user.name\", uargs: {.value: \"value\", .size: 5, .flags: 0}, usize: 16)",
        "writev(fd: -1, vec: [{.iov_base: \"value\", .iov_len: 5}, {.iov_base: \"alue\", .iov_len: 4}], vlen: 2)",
        "getgroups(gidsetsize: 0)",
    ];
    assert_eq!(calls, expected);
}

#[test]
fn messages_have_their_buffers_and_control_data() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (_, calls) = scene(&machine, "messages", "sendmmsg,recvmmsg,recvfrom", &[]);
    let part = |text: &str, bytes: usize| format!("{{.iov_base: \"{text}\", .iov_len: {bytes}}}");
    let message = |parts: &[String], length: &str| {
        let (count, parts) = (parts.len(), parts.join(", "));
        let rest = ".msg_control: NULL, .msg_controllen: 0, .msg_flags: 0";
        format!("{{.msg_hdr: {{.msg_name: NULL, .msg_namelen: 0, .msg_iov: [{parts}], .msg_iovlen: {count}, {rest}}}, .msg_len: {length}}}")
    };
    let sent = [
        message(&[part("first", 5)], "0 => 5"),
        message(&[part("sec", 3), part("ond", 3)], "0 => 6"),
        message(&[part("truncated", 9)], "0 => 9"),
    ];
    let received = [message(&[part("first", 16)], "0 => 5"), message(&[part("second", 16)], "0 => 6")];
    assert!(calls[0].ends_with(&format!(", mmsg: [{}], vlen: 3)", sent.join(", "))), "{}", calls[0]);
    assert!(calls[1].ends_with(&format!(", mmsg: [{}], vlen: 2, flags: DONTWAIT)", received.join(", "))), "{}", calls[1]);
    assert!(calls[2].ends_with(", ubuf: \"trun\", size: 4, flags: TRUNC)"), "{}", calls[2]);
}

#[test]
fn the_readable_part_of_a_short_buffer_is_shown() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let (_, calls) = scene(&machine, "border", "write", &["--filter", "fd == -1"]);
    let buffer = |text: &str| format!("write(fd: -1, buf: \"{text}\"..., count: 8000)");
    assert_eq!(calls, [buffer("a"), buffer("abcde"), buffer("abcdefghijklmnopqrstuvwxyzabcdef")]);
}

/// Structs and pointers have the layout of 32-bit programs.
#[cfg(target_arch = "x86_64")]
#[test]
fn data_of_the_32_bit_entry_is_read_in_the_32_bit_layout() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    // With rt_sigreturn selected, rtrace traces all calls; events of single syscalls do not show these calls.
    let (_, calls) = scene(&machine, "compat", "writev,fcntl,nanosleep,rt_sigreturn", &[]);
    let expected = [
        "writev(fd: -1, vec: [{.iov_base: \"first\", .iov_len: 5}, {.iov_base: \"second\", .iov_len: 6}], vlen: 2)",
        "fcntl(fd: -1, cmd: SETLK, arg: {.l_type: WRLCK, .l_whence: SET, .l_start: 3, .l_len: 7, .l_pid: 0})",
        "nanosleep(rqtp: {.tv_sec: 0, .tv_nsec: 1000})",
    ];
    assert_eq!(calls, expected);
}

/// Returns the text that the program writes: `00000 00001 ...`.
fn counted(from: usize, bytes: usize) -> String {
    let text: String = (0..20_000).map(|i| format!("{i:05} ")).collect();
    text[from..from + bytes].to_owned()
}

/// The data of the first argument with memory does not fit into one record.
#[test]
fn long_data_is_complete_up_to_the_limit() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let selection = "write,writev,finit_module,read";
    let (trace, calls) = scene(&machine, "large", selection, &["--string-limit", "65536"]);
    let iovec: Vec<String> = (0..10).map(|i| format!("{{.iov_base: \"{}\", .iov_len: 10000}}", counted(i * 10_000, 10_000))).collect();
    assert!(calls.contains(&format!("write(fd: -1, buf: \"{}\", count: 65536)", counted(0, 65_536))), "{calls:.300?}");
    assert!(calls.contains(&format!("writev(fd: -1, vec: [{}], vlen: 10)", iovec.join(", "))), "{calls:.300?}");
    assert!(calls.contains(&format!("finit_module(fd: -1, uargs: \"{}\")", counted(0, 30_000))), "{calls:.300?}");
    assert!(calls.contains(&format!("read(fd: 3</dev/zero>, buf: \"{}\", count: 50000)", "\\x00".repeat(50_000))), "{calls:.300?}");
    assert!(!trace.stderr.contains("is cut"), "{}", trace.stderr);
    let (_, calls) = scene(&machine, "large", selection, &["--string-limit", "5000"]);
    assert!(calls.contains(&format!("write(fd: -1, buf: \"{}\"..., count: 65536)", counted(0, 5000))), "{calls:.300?}");
    assert!(calls.contains(&format!("finit_module(fd: -1, uargs: \"{}\"...)", counted(0, 5000))), "{calls:.300?}");
    // One byte more than a string in the first piece, of which the last byte is its NUL.
    let (_, calls) = scene(&machine, "large", selection, &["--string-limit", "4096"]);
    assert!(calls.contains(&format!("finit_module(fd: -1, uargs: \"{}\"...)", counted(0, 4096))), "{calls:.300?}");
}

/// Deferred copies that find no room shorten the data of their call; the call itself is printed or counted as lost.
#[test]
fn lost_deferred_copies_lose_no_call() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let copies = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=1000", "status=none"];
    let options = ["--engine", "bpf", "-e", "read,write", "--string-limit", "65536", "-m", "64K"];
    // If rtrace is not scheduled while dd runs, all calls after the first ones are lost, and none is truncated.
    let is_truncated = |_| {
        let trace = trace(&machine, &options, &copies).succeeded();
        trace.conserved().lost > 0 && trace.stderr.contains("times the data of a call is truncated")
    };
    assert!((0..20).any(is_truncated), "no call has lost a part of its data");
}
