//! Tests of probes on the kernel with names: arguments by BTF, lines and local variables by debug information. The
//! fetched values are compared with what the programs did.

use crate::kernel_probes::{assert_gone, events};
use crate::line::Line;
use crate::machine::{self, Machine};
use crate::needs::Need;
use crate::trace::{Trace, plain, start, trace, workload};
use regex::Regex;
use rustix::process::{Signal, kill_process};
use std::cell::RefCell;
use std::process::{Command, Stdio};

/// The sizes that `workload tcp` sends.
const SIZES: &str = "1 22 333 4444";

/// Returns the values of a field, in the order of the lines.
fn values(events: &[String], field: &str) -> Vec<String> {
    let pattern = Regex::new(&format!(r"[(, ]{field}: ([^,)]+)")).expect("the pattern is right");
    events.iter().filter_map(|event| Some(pattern.captures(event)?[1].to_owned())).collect()
}

/// Returns the local and the remote port, which the program prints.
fn ports(trace: &Trace) -> [u16; 2] {
    let said = trace.stdout.lines().find_map(|line| line.strip_prefix("connected ")?.split_once(" to "));
    let (from, to) = said.unwrap_or_else(|| panic!("no ports in {:?}\n{}", trace.stdout, trace.stderr));
    [from, to].map(|port| port.parse().expect("a port"))
}

#[test]
fn arguments_of_tcp_sendmsg_are_fetched() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes, Need::Types]) {
        return;
    }
    let events = events(&workload(&machine, &["--probe", "p tcp_sendmsg sk size"], &format!("tcp {SIZES}")).succeeded());
    let pattern = Regex::new(r"^probe:tcp_sendmsg\(sk: 0xff[0-9a-f]{14}, size: [0-9]+\)$").expect("the pattern is right");
    assert!(events.iter().all(|event| pattern.is_match(event)), "{events:?}");
    assert_eq!(values(&events, "size").join(" "), SIZES);
    let sockets = values(&events, "sk");
    assert!(sockets.iter().all(|socket| *socket == sockets[0]), "{events:?}");
    assert_gone();
}

#[test]
fn tcp_sendmsg_is_probed_in_all_processes() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes, Need::Types]) {
        return;
    }
    let sizes_of = |lines: &[Line], pid: u32| {
        let texts: Vec<String> = lines.iter().filter(|line| line.tid as u32 == pid).map(|line| line.text.clone()).collect();
        values(&texts, "size").join(" ")
    };
    // One sender is started after the other until rtrace traces one completely.
    let senders = RefCell::new(Vec::new());
    let mut run = start(&machine, &["--probe", "p tcp_sendmsg sk size", "-a"], &[]);
    run.wait_for("sends of a process", |lines| {
        let mut sender =
            Command::new(machine::workload()).arg("tcp").args(SIZES.split(' ')).stdout(Stdio::null()).spawn().expect("it starts");
        assert!(sender.wait().expect("it is our child").success());
        senders.borrow_mut().push(sender.id());
        senders.borrow().iter().any(|pid| sizes_of(lines, *pid) == SIZES)
    });
    kill_process(run.pid(), Signal::INT).expect("it runs");
    let lines = run.finish().succeeded().lines();
    let whole = senders.borrow().iter().filter(|pid| sizes_of(&lines, **pid) == SIZES).count();
    assert!(whole >= 1, "{lines:?}");
    assert_gone();
}

#[test]
fn members_of_arguments_are_fetched() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes, Need::Types]) {
        return;
    }
    let probe = "p tcp_sendmsg sk->__sk_common.skc_family from=sk->__sk_common.skc_num sk->__sk_common.skc_dport:x16 size";
    let trace = workload(&machine, &["--probe", probe], "tcp 55").succeeded();
    let ([from, to], swapped) = (ports(&trace), |port: u16| port.to_be());
    // 2 is AF_INET; the remote port is in network byte order.
    let expected = format!("sk___sk_common_skc_family: 2, from: {from}, sk___sk_common_skc_dport: {:#x}, size: 55", swapped(to));
    assert_eq!(events(&trace), [format!("probe:tcp_sendmsg({expected})")]);
}

#[test]
fn all_arguments_are_fetched() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes, Need::Types]) {
        return;
    }
    let events = events(&workload(&machine, &["--probe", "p tcp_sendmsg $arg*"], "tcp 7 8").succeeded());
    let pattern =
        Regex::new(r"^probe:tcp_sendmsg\(sk: 0xff[0-9a-f]{14}, msg: 0xff[0-9a-f]{14}, size: [78]\)$").expect("the pattern is right");
    assert!(events.len() == 2 && events.iter().all(|event| pattern.is_match(event)), "{events:?}");
}

/// Traces `cat` of these files with a probe on a line at which each name has been copied from user space; the second
/// trace names the same line by the source file. Each reading of the debug information takes half a minute on an
/// emulated machine.
fn traces_of_a_line(machine: &Machine, files: &[String; 2]) -> [Trace; 2] {
    let no_code = Regex::new(r"which is namei\.c:([0-9]+), has no code in [a-z_]+; line ([0-9]+) has").expect("the pattern is right");
    let at = |place: &str| {
        let probe = format!("p:names {place} name=result->name:string");
        trace(machine, &["--probe", &probe, "-e", "openat"], &["cat", &files[0], &files[1]])
    };
    // The function's name since Linux 7.0, and its older name.
    for function in ["do_getname", "getname_flags"] {
        // This line is behind the end of either function; the error message names the last line with code.
        let run = at(&format!("{function}:90"));
        let Some(words) = no_code.captures(&run.stderr) else { continue };
        let [asked, last] = [1, 2].map(|nth| words[nth].parse::<u32>().expect("digits"));
        // The last line may belong to the error path.
        for line in (1..=last).rev() {
            let by_function = at(&format!("{function}:{line}"));
            if by_function.status == 0 {
                return [by_function, at(&format!("namei.c:{}", asked - 90 + line))];
            }
        }
    }
    panic!("the name can be fetched at no line of the kernel");
}

#[test]
fn a_local_variable_is_fetched_at_a_line() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes, Need::DebugInformation]) {
        return;
    }
    let files = [machine.file("the first", 1), machine.file("the second", 2)];
    for trace in traces_of_a_line(&machine, &files).map(Trace::succeeded) {
        let names: Vec<String> =
            events(&trace).iter().filter_map(|event| Some(event.strip_prefix("probe:names(name: ")?.to_owned())).collect();
        let at = |file: &String| names.iter().position(|name| *name == format!("\"{file}\")"));
        let [first, second] = files.each_ref().map(at);
        assert!(first.is_some() && first < second, "{names:?}\n{}", trace.text);
        // Each call of openat copied its name.
        assert!(names.len() as u64 >= trace.count("openat"), "{}", trace.text);
        assert!(names.iter().all(|name| name.starts_with('"')), "{names:?}");
    }
    assert_gone();
}

#[test]
fn missing_debug_information_lists_the_searched_paths() {
    let Some(machine) = Machine::shared() else { return };
    if Need::DebugInformation.is_met() {
        return;
    }
    let run = plain(&machine, &["--probe", "p getname_flags:72 result->name", "--", "echo", "started"]);
    assert_eq!((run.status, run.stdout.as_str()), (125, ""), "{}", run.stderr);
    let words = [
        "--probe 'p getname_flags:72 result->name': getname_flags:72 cannot be resolved",
        "need its debug information",
        "/usr/lib/debug/boot/vmlinux-",
    ];
    for word in words.into_iter().chain(["/boot/vmlinux-", "in Debian it is in the package linux-image-"]) {
        assert!(run.stderr.contains(word), "no {word:?} in\n{}", run.stderr);
    }
}

#[test]
fn unknown_names_of_the_kernel_are_explained() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes, Need::Types]) {
        return;
    }
    for (probe, words) in [
        ("p tcp_sendmsg sk sise", "tcp_sendmsg has no argument sise; similar: size"),
        ("p tcp_sendmsg sk->__sk_comon", "has no member __sk_comon; similar: __sk_common"),
        ("p tcp_sendmsg sk.__sk_common", "sk is a pointer: write sk->__sk_common"),
        ("p tcp_sendmgs sk", "has no function tcp_sendmgs; similar: "),
        ("r tcp_sendmsg $retval->name", "retval is a number, so it has no member name"),
    ] {
        let run = plain(&machine, &["--probe", probe, "--", "true"]);
        assert!(run.status == 125 && run.stderr.contains(words), "{probe}: {}", run.stderr);
    }
}
