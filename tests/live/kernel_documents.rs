//! Tests of the examples in the kernel's documentation (Documentation/trace/kprobetrace.rst and fprobetrace.rst), with
//! the fields and values that it shows. Registers are those of x86-64. `do_sys_open` is replaced by `do_sys_openat2`,
//! which took its place in Linux 5.6.

use crate::kernel_probes::{assert_gone, assert_line_of, events};
use crate::line;
use crate::machine::Machine;
use crate::needs::Need;
use crate::probe_command::{Events, assert_contains};
use crate::trace::trace;
use regex::Regex;

/// Three reads of seven bytes; no other read has this size.
const DD: [&str; 6] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=7", "count=3", "status=none"];

/// Traces the three reads and asserts that each has an event that matches the pattern.
fn assert_reads(machine: &Machine, probe: &str, filter: &str, pattern: &str) {
    let trace = trace(machine, &["--probe", probe, "--filter", filter], &DD).succeeded();
    let pattern = Regex::new(&format!("^{pattern}$")).expect("the pattern is right");
    let events = events(&trace);
    assert!(
        events.len() == 3 && events.iter().all(|event| pattern.is_match(event)),
        "{pattern} for {probe} in\n{}\n{}",
        trace.text,
        trace.stderr
    );
    assert_gone();
}

#[cfg(target_arch = "x86_64")]
#[test]
fn four_arguments_of_do_sys_open_are_fetched() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    // touch opens with O_WRONLY, O_CREAT, O_NOCTTY, O_NONBLOCK, and the kernel adds O_LARGEFILE; the mode is rw-rw-rw-.
    let probe = "p:myprobe do_sys_openat2 dfd=%di filename=%si flags=+0(%dx) mode=+8(%dx)";
    let pattern = r"myprobe\(dfd: CWD, filename: 0x[0-9a-f]+, flags: 0x8941, mode: 0x1b6\)";
    assert_line_of(&machine, &["--probe", probe], &["touch", &machine.path("touched")], pattern);
    let text = probe.replace("=%si", "=+0(%si):ustring");
    let pattern = pattern.replace("0x[0-9a-f]+", &format!("\"{}\"", machine.path("touched")));
    assert_line_of(&machine, &["--probe", &text], &["touch", &machine.path("touched")], &pattern);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_documented_line_is_accepted() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let events = Events::new(&machine);
    let line = |name: &str| format!("{name} do_sys_open dfd=%ax filename=%dx flags=%cx mode=+4($stack)");
    events.stdout_of(&["add", &line(&format!("p:{}/myprobe", events.prefix))]);
    let shown = events.stdout_of(&["show", &format!("{}:myprobe", events.prefix)]);
    for (field, offset) in [("dfd", 16), ("filename", 24), ("flags", 32), ("mode", 40)] {
        let pattern = Regex::new(&format!(r" {field} +offset +{offset}, size +8")).expect("the pattern is right");
        assert!(pattern.is_match(&shown), "{shown}");
    }
    assert_contains(&shown, &[&line(&format!("p:{}/myprobe", events.prefix))]);
    // Compilers inline this function into its callers, so the probe need not be hit.
    trace(&machine, &["--probe", &line("p:myprobe"), "-e", "openat"], &["true"]).succeeded();
    assert_gone();
}

#[test]
fn the_return_value_of_do_sys_open_is_fetched() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes]) {
        return;
    }
    let trace = trace(&machine, &["--probe", "r:myretprobe do_sys_openat2 $retval"], &["cat", "/etc/passwd", "/nonexistent"]);
    let events = events(&trace);
    let returned = |value: &str| {
        Regex::new(&format!(r"^probe:myretprobe\([a-z0-9_.]*sys_open[a-z0-9_.]*\+0x[0-9a-f]+ <- do_sys_openat2, arg1: {value}\)$"))
    };
    let count = |value: &str| events.iter().filter(|event| returned(value).expect("the pattern is right").is_match(event)).count();
    // -2 is ENOENT; the documentation shows it as 0xfffffffffffffffe.
    assert_eq!((count("3") + count("-2"), count("-2")), (events.len(), 1), "{}", trace.text);
    assert!(count("3") >= 1, "{}", trace.text);
}

#[test]
fn filenames_match_the_openat_calls() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Kprobes]) || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let file = machine.file("opened", 1);
    let trace = trace(&machine, &["--probe", "p do_sys_openat2 filename=+0(%si):ustring", "-e", "openat"], &["cat", &file]).succeeded();
    let lines = trace.lines();
    let calls = line::calls(&lines).into_iter().filter(|(_, call)| call.name == "openat").count();
    let names: Vec<String> = events(&trace).into_iter().filter(|event| event.starts_with("probe:do_sys_openat2(filename: ")).collect();
    assert_eq!(names.len(), calls, "{}", trace.text);
    assert!(names.contains(&format!("probe:do_sys_openat2(filename: \"{file}\")")), "{}", trace.text);
}

fn assert_returns_of_vfs_read(need: Need, probe: &str) {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[need]) {
        return;
    }
    assert_reads(&machine, probe, "arg1 == 7", r"probe:vfs_read__return\([a-z0-9_.]*read\+0x[0-9a-f]+ <- vfs_read, arg1: 7\)");
}

#[test]
fn the_return_value_of_vfs_read_is_fetched() {
    assert_returns_of_vfs_read(Need::Kprobes, "r vfs_read $retval");
}

#[test]
fn the_return_value_of_vfs_read_is_fetched_by_ftrace() {
    assert_returns_of_vfs_read(Need::Fprobes, "f vfs_read%return $retval");
}

#[test]
fn arguments_of_vfs_read_are_fetched_by_ftrace() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Fprobes, Need::Types]) {
        return;
    }
    // As in the documentation, the number is decimal and the pointer hexadecimal.
    assert_reads(&machine, "f:myprobe vfs_read count pos", "count == 7", r"probe:myprobe\(count: 7, pos: 0xff[0-9a-f]{14}\)");
    let all = r"probe:vfs_read\(file: 0xff[0-9a-f]{14}, buf: 0x[0-7][0-9a-f]{11}, count: 7, pos: 0xff[0-9a-f]{14}\)";
    assert_reads(&machine, "f vfs_read $arg*", "count == 7", all);
}

#[test]
fn a_member_of_a_return_value_is_fetched() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Fprobes, Need::Types]) {
        return;
    }
    let file = machine.file("opened", 1);
    let pattern = format!(r#"getname_flags__return\([a-z0-9_.]+\+0x[0-9a-f]+ <- getname_flags, retval_name: "{file}"\)"#);
    // Due to inlining, openat does not call the function on some kernels, and statx on others.
    let both = format!("cat {file}; ls {file}");
    assert_line_of(&machine, &["--probe", "f getname_flags%return $retval->name:string"], &["sh", "-c", &both], &pattern);
}

/// Traces the context switches of a shell and its children. Returns the task of each switch, its comm, and the fetched
/// arguments.
fn switches(machine: &Machine, args: &str) -> Vec<(i32, String, String)> {
    let trace = trace(machine, &["--probe", &format!("t sched_switch {args}")], &["sh", "-c", "sleep 0.1; sleep 0.1"]).succeeded();
    let fetched = |text: &str| Some(text.split_once(" probe:sched_switch(")?.1.strip_suffix(')')?.to_owned());
    let lines = trace.lines().into_iter().filter_map(|line| Some((line.tid, line.comm, fetched(&line.text)?)));
    let switches: Vec<_> = lines.collect();
    assert!(switches.len() > 3, "{}\n{}", trace.text, trace.stderr);
    assert_gone();
    switches
}

#[test]
fn a_probe_on_a_tracepoint_fetches_members_of_tasks() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::Fprobes, Need::Types]) {
        return;
    }
    let fits = |pattern: &str, text: &str| Regex::new(&format!("^{pattern}$")).expect("the pattern is right").is_match(text);
    // The record is written by the task that is switched out.
    for (tid, _, fetched) in switches(&machine, "preempt prev_pid=prev->pid next_pid=next->pid") {
        assert!(fits(&format!(r"preempt: [01], prev_pid: {tid} \(.*\), next_pid: [0-9]+( \(.*\))?"), &fetched), "{tid}: {fetched}");
    }
    for (tid, comm, fetched) in switches(&machine, "prev->comm:string") {
        // A task may change its comm between the event and the printing of the line.
        assert!(
            fetched == format!("prev_comm: \"{comm}\"") || fetched == "prev_comm: \"sh\"" || fetched == "prev_comm: \"rtrace\"",
            "{tid}: {fetched}"
        );
    }
    for (_, _, fetched) in switches(&machine, "comm=next->comm:string next->start_time") {
        assert!(fits(r#"comm: "[^"]+", next_start_time: [0-9]+"#, &fetched), "{fetched}");
        assert!(fetched.contains("\"swapper/") == fetched.ends_with(" next_start_time: 0"), "{fetched}");
    }
    let task = "0xff[0-9a-f]{14}";
    for (_, _, fetched) in switches(&machine, "$arg*") {
        assert!(fits(&format!("preempt: [01], prev: {task}, next: {task}, prev_state: [0-9]+"), &fetched), "{fetched}");
    }
}
