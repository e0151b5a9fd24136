//! The selection of calls: names, groups, patterns, filters, durations, delays, limits.

use crate::line::{self, Result};
use crate::machine::Machine;
use crate::trace::{Trace, trace, workload};
use std::collections::BTreeSet;

fn names(trace: &Trace) -> BTreeSet<String> {
    let lines = trace.lines();
    line::calls(&lines).into_iter().map(|(_, call)| call.name.clone()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn names_globs_groups_patterns_and_exceptions_select_calls() {
    let Some(machine) = Machine::shared() else { return };
    let cat = |options: &[&str]| names(&trace(&machine, options, &["cat", "/dev/null"]).succeeded());
    assert_eq!(cat(&["-e", "openat,close"]), set(&["close", "openat"]));
    assert_eq!(cat(&["-e", "openat", "-e", "close"]), set(&["close", "openat"]), "repeated -e add up");
    assert_eq!(cat(&["-e", "/^(openat|close)$/"]), set(&["close", "openat"]));
    assert_eq!(cat(&["-e", "trace=exit_*"]), set(&["exit_group"]));
    let file = cat(&["-e", "%file"]);
    assert!(file.contains("openat") && file.contains("execve") && !file.contains("read") && !file.contains("close"), "{file:?}");
    let rest = cat(&["-e", "%file,!execve"]);
    assert!(rest.contains("openat") && !rest.contains("execve"), "{rest:?}");
    let all = cat(&[]);
    let without = cat(&["-e", "!brk,mmap"]);
    assert!(all.contains("brk") && !without.contains("brk"), "{without:?}");
    assert!(without.is_superset(&set(&["close", "execve", "exit_group"])), "a list that begins with ! starts from all: {without:?}");
}

#[test]
fn an_alias_of_the_user_selects_its_events() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-e", "getppid/name=asks/,sched:sched_process_exec/name=starts/"], "calls getppid 1 3").succeeded();
    assert_eq!(trace.count("asks"), 3, "{}", trace.text);
    assert!(trace.text.contains(" starts(filename:") && !trace.text.contains("getppid"), "{}", trace.text);
}

#[test]
fn tracepoints_and_syscalls_are_in_order_of_time() {
    let Some(machine) = Machine::shared() else { return };
    let trace =
        workload(&machine, &["-e", "sched:sched_process_exec,lseek/nr=2/", "--time-format", "monotonic"], "calls lseek 1 10").succeeded();
    assert_eq!(trace.tags(), [1, 2], "nr=2 ends after two");
    assert!(trace.text.contains("sched:sched_process_exec("), "{}", trace.text);
    let starts: Vec<u64> = trace.lines().iter().map(line::Line::start_ns).collect();
    assert!(starts.is_sorted(), "{}", trace.text);
}

#[test]
fn filters_compare_arguments_returns_and_symbols() {
    let Some(machine) = Machine::shared() else { return };
    let tags = |filter: &str| workload(&machine, &["-e", "lseek", "--filter", filter], "calls lseek 1 100").succeeded().tags();
    assert_eq!(tags("offset == 17"), [17]);
    assert_eq!(tags("offset >= 10 && offset < 13 || offset == 99"), [10, 11, 12, 99]);
    assert_eq!(tags("errno == EBADF && offset > 98"), [99, 100]);
    assert_eq!(tags("whence == SEEK_SET && offset <= 1"), [1]);
    assert_eq!(tags("ret >= 0"), [0; 0]);
}

/// The part of the condition that the kernel decides and the part that rtrace decides make the whole condition
/// together.
#[cfg(feature = "bpf")]
#[test]
fn filters_compare_text_and_numbers() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let cat = |events: &str, filter: &str| {
        let options = ["--engine", "bpf", "-e", events, "--filter", filter];
        let trace = trace(&machine, &options, &["cat", "/etc/passwd", "/etc/group", "/dev/null"]).succeeded();
        assert_eq!(trace.conserved().lost, 0);
        assert!(trace.stderr.contains("plan: decided in the kernel, for "), "{}", trace.stderr);
        let lines = trace.lines();
        let paths = ["/etc/passwd", "/etc/group", "/dev/null", "/etc/ld.so.cache", "libc.so"];
        let seen = |path: &&str| line::calls(&lines).iter().any(|(_, call)| call.args.contains(path));
        paths.into_iter().filter(seen).collect::<Vec<_>>()
    };
    for events in ["openat", "*"] {
        assert_eq!(cat(events, r#"filename ~ "/etc/*""#), ["/etc/passwd", "/etc/group", "/etc/ld.so.cache"]);
        assert_eq!(cat(events, r#"filename == "/etc/group" || filename == "/dev/null""#), ["/etc/group", "/dev/null"]);
        assert_eq!(cat(events, r#"filename ~ "/etc/*" && filename !~ "*.cache" && ret > 0"#), ["/etc/passwd", "/etc/group"]);
        assert_eq!(cat(events, r#"filename !~ "/etc/*" && flags & RDONLY && !(flags & CLOEXEC) && comm == "cat""#), ["/dev/null"]);
        assert_eq!(cat(events, r#"filename == "/etc/passwd" && (ret < 0 || duration > 10m)"#), [""; 0]);
    }
}

#[test]
fn failure_selects_failed_calls() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["--failure"], "calls lseek 1 50").succeeded();
    assert_eq!(trace.tags().len(), 50);
    let lines = trace.lines();
    for (line, call) in line::calls(&lines) {
        assert!(matches!(&call.result, Result::Returned(r) if r.starts_with('-')), "{}", line.text);
    }
}

#[test]
fn duration_selects_long_calls() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["--duration", "15ms", "-e", "poll"], "spans sleep 1 30").succeeded();
    let lines = trace.lines();
    let timeouts: BTreeSet<u64> = line::calls(&lines).iter().filter_map(|(_, call)| call.number("timeout_msecs")).collect();
    assert!(timeouts.is_superset(&(15..=30).collect()), "{timeouts:?}");
    assert!(line::calls(&lines).iter().all(|(line, _)| line.duration.is_some_and(|ms| ms >= 15.0)), "{}", trace.text);
}

/// The result is the same if the kernel decides and if rtrace decides.
#[test]
fn calls_that_are_not_shown_are_counted() {
    let Some(machine) = Machine::shared() else { return };
    for options in [["--failure", "-e", "getppid"], ["--duration=1s", "-e", "getppid"]] {
        let trace = workload(&machine, &options, "calls getppid 1 1000").succeeded();
        let verdict = trace.conserved();
        assert_eq!((verdict.printed, verdict.held_back, verdict.lost), (0, 1000, 0), "{}", trace.text);
        assert!(trace.stderr.contains("1000 calls were traced but not shown"), "{}", trace.stderr);
    }
}

#[test]
fn delay_skips_the_first_calls() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-D", "500ms", "-e", "poll"], "spans sleep 1 60").succeeded();
    let lines = trace.lines();
    let timeouts: BTreeSet<u64> = line::calls(&lines).iter().filter_map(|(_, call)| call.number("timeout_msecs")).collect();
    assert!(!timeouts.contains(&1), "the first comes at once: {timeouts:?}");
    assert!(timeouts.contains(&60), "the last comes after more than a second: {timeouts:?}");
}

#[test]
fn max_events_limits_the_lines() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["--max-events", "10", "-e", "lseek"], "calls lseek 1 5000").succeeded();
    assert_eq!(trace.tags(), (1..=10).collect::<Vec<_>>());
    assert_eq!(trace.issued("lseek"), 5000, "the command runs on unharmed");
}

#[test]
fn numbers_without_a_name_are_printed() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &[], "unknown").succeeded();
    assert_eq!(trace.conserved().lost, 0);
    assert_eq!(trace.count("syscall_999"), 1, "{}", trace.text);
    assert_eq!(trace.count("getppid"), 1, "x32's bit is no part of the number:\n{}", trace.text);
}

#[test]
fn no_inherit_traces_only_the_commands_first_thread() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["--no-inherit", "-e", "lseek,exit_group"], "forks 5").succeeded();
    assert_eq!(trace.tags(), [0; 0], "{}", trace.text);
    assert_eq!(trace.count("exit_group"), 1);
}

/// If nothing matched, a notice says how many calls there were, and which names are similar.
#[test]
fn a_notice_says_that_nothing_matched() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-e", "getpgid"], "calls getppid 1 10").succeeded();
    assert!(line::calls(&trace.lines()).is_empty(), "{}", trace.text);
    let note = trace.stderr.lines().find(|line| line.contains("nothing matched getpgid"));
    let note = note.unwrap_or_else(|| panic!("no note in\n{}", trace.stderr));
    assert!(note.contains("getpid"), "a near name: {note}");
}
