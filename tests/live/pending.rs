//! Long calls: the lines that show them in flight, and the lines that show them completely at their end.

use crate::line::{Line, Result};
use crate::machine::{self, Machine};
use crate::trace::{Trace, shell, trace, workload};
use regex::Regex;

/// Returns the lines of calls that took at least 300 milliseconds or were in flight.
fn slow(trace: &Trace) -> Vec<Line> {
    let is_slow = |line: &Line| {
        line.call().is_some_and(|call| call.result == Result::Pending || call.continued) || line.duration.is_some_and(|ms| ms >= 300.0)
    };
    trace.lines().into_iter().filter(is_slow).collect()
}

fn assert_matches(line: &Line, pattern: &str) {
    assert!(Regex::new(pattern).expect("the pattern is right").is_match(&line.text), "{pattern}\n{}", line.text);
}

/// The complete lines of the four slow calls of `workload slow`.
fn ends() -> [&'static str; 4] {
    match machine::engine() {
        "bpf" => [
            r#"read\(fd: \d+<pipe:\[\d+\]>, buf: "the-payload\\n", count: 100\) += 12$"#,
            r"epoll_wait\(epfd: \d+<anon_inode:\[eventpoll\]>, events: \[\{\.events: IN, \.data: 0x2a\}\], maxevents: 1, timeout: -1\) += 1$",
            r"wait4\(upid: \d+ \(.*\), stat_addr: \[\{\.exited: 3\}\]\) += \d+ \(.*\)$",
            r"futex\(uaddr: 0x[0-9a-f]+, .*val: 7, utime: \{\.tv_sec: 0, \.tv_nsec: [49]00000000\}\) += -1 ETIMEDOUT \(.*\)$",
        ],
        _ => [
            r"read\(fd: \d+.*, buf: 0x[0-9a-f]+, count: 100\) += 12$",
            r"epoll_wait\(epfd: \d+.*, events: 0x[0-9a-f]+, maxevents: 1, timeout: -1\) += 1$",
            r"wait4\(upid: \d+ \(.*\), stat_addr: 0x[0-9a-f]+\) += \d+ \(.*\)$",
            r"futex\(uaddr: 0x[0-9a-f]+, .*val: 7, utime: 0x[0-9a-f]+\) += -1 ETIMEDOUT \(.*\)$",
        ],
    }
}

/// Returns the slow lines of the program's threads that call one of these.
fn of_program(trace: &Trace) -> Vec<Line> {
    let names = ["read", "epoll_wait", "wait4", "futex"];
    let is_meant = |line: &Line| line.comm == "workload" && line.call().is_some_and(|call| names.contains(&call.name.as_str()));
    slow(trace).into_iter().filter(is_meant).collect()
}

#[test]
fn a_file_has_one_complete_line_for_each_slow_call() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-e", "read,epoll_wait,wait4,futex"], "slow 400").succeeded();
    let lines = of_program(&trace);
    assert_eq!(lines.len(), 4, "{}", trace.text);
    for (line, end) in lines.iter().zip(ends()) {
        assert_matches(line, &format!("workload/\\d+ {end}"));
    }
    assert_eq!(trace.conserved().lost, 0);
}

#[test]
fn the_line_that_ends_a_call_in_flight_has_all_arguments() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["--pending", "-e", "read,epoll_wait,wait4,futex"], "slow 900").succeeded();
    let lines = of_program(&trace);
    assert_eq!(lines.len(), 8, "{}", trace.text);
    for (pair, end) in lines.chunks(2).zip(ends()) {
        assert_matches(&pair[0], &format!("workload/\\d+ {}\\(.*\\) +\\.\\.\\.$", end.split('\\').next().expect("it is a name")));
        assert_matches(&pair[1], &format!("workload/\\d+  \\.\\.\\. \\[continued\\]: {end}"));
    }
    assert_eq!(trace.conserved().lost, 0);
}

#[test]
fn a_call_that_is_selected_at_its_end_has_one_complete_line() {
    let Some(machine) = Machine::shared() else { return };
    for (options, expected) in [
        (&["--pending", "--filter", "ret == 12"][..], &[0][..]),
        (&["--pending", "--failure"], &[3]),
        // With --pending, a call that takes longer than that is shown in flight.
        (&["--duration", "300"], &[0, 1, 2, 3]),
        (&["--pending", "--filter", "duration > 300ms && ret == 1"], &[1]),
    ] {
        let options = [&["-e", "read,epoll_wait,wait4,futex"], options].concat();
        let trace = workload(&machine, &options, "slow 400").succeeded();
        let lines = of_program(&trace);
        assert_eq!(lines.len(), expected.len(), "{options:?}\n{}", trace.text);
        for (line, end) in lines.iter().zip(expected) {
            assert_matches(line, &format!("workload/\\d+ {}", ends()[*end]));
        }
        assert_eq!(trace.conserved().lost, 0);
    }
}

/// Lines of calls in flight are written only to outputs that somebody watches.
#[test]
fn calls_in_flight_are_shown_to_a_pipe_and_not_to_a_file() {
    let Some(machine) = Machine::shared() else { return };
    let engine = machine::engine();
    for (to, options, pending) in [("| cat", "", 1), ("| cat", "--no-pending", 0), ("", "", 0), ("", "--pending", 1)] {
        let run = format!("$rtrace --engine {engine} {options} -e clock_nanosleep sleep 1.5 2>&1 >$dir/out {to} >$dir/lines");
        let text = match to {
            "" => format!("$rtrace --engine {engine} {options} -e clock_nanosleep sleep 1.5 2>$dir/lines"),
            _ => run,
        };
        let done = shell(&machine, &text);
        let lines = std::fs::read_to_string(machine.path("lines")).expect("it is written");
        let of_sleep: Vec<&str> = lines.lines().filter(|line| line.contains("clock_nanosleep(")).collect();
        assert_eq!(of_sleep.len(), pending + 1, "{text}\n{lines}{}", done.stderr);
        assert_eq!(of_sleep.iter().filter(|line| line.ends_with(" ...")).count(), pending, "{lines}");
        let last = of_sleep.last().expect("there is one");
        assert_eq!(last.contains("[continued]"), pending == 1, "{lines}");
        assert!(last.contains("which_clock: ") && last.ends_with("= 0"), "{lines}");
    }
}

#[test]
fn a_call_that_is_open_at_the_end_has_one_line() {
    let Some(machine) = Machine::shared() else { return };
    for options in [&[][..], &["--pending"], &["--duration", "300"], &["--filter", "duration > 300ms"]] {
        let options = [&["--no-wait", "-e", "clock_nanosleep"], options].concat();
        let trace = trace(&machine, &options, &["sh", "-c", "sleep 3 & sleep .6"]).succeeded();
        let open: Vec<Line> =
            trace.lines().into_iter().filter(|line| line.call().is_some_and(|call| call.result == Result::Pending)).collect();
        // With --pending, the sleep has a line in flight too.
        let open: Vec<&Line> = open.iter().filter(|line| is_open_to_the_end(&trace, line)).collect();
        assert_eq!(open.len(), 1, "{options:?}\n{}{}", trace.text, trace.stderr);
        assert_matches(open[0], r"sleep/\d+ clock_nanosleep\(which_clock: .*rqtp: .*\) +\.\.\.$");
        assert_eq!(trace.conserved().lost, 0);
    }
}

/// No later line completes the call.
fn is_open_to_the_end(trace: &Trace, pending: &Line) -> bool {
    !trace.lines().iter().any(|line| line.tid == pending.tid && line.call().is_some_and(|call| call.continued))
}

/// The kernel completes the sleep before it delivers the signal.
#[test]
fn a_slow_call_that_a_signal_ends_has_one_complete_line() {
    let Some(machine) = Machine::shared() else { return };
    let trace = trace(&machine, &["-e", "clock_nanosleep"], &["sh", "-c", "sleep 60 & sleep .4; kill -KILL $!; wait $!; true"]);
    let lines = trace.lines();
    let interrupted: Vec<&Line> = lines.iter().filter(|line| line.call().is_some_and(|call| call.result == Result::Never)).collect();
    assert_eq!(interrupted.len(), 1, "{}", trace.text);
    assert_matches(interrupted[0], r"sleep/\d+ clock_nanosleep\(which_clock: .*rqtp: .*\) += \? ERESTART_RESTARTBLOCK \(.*\)$");
    assert_eq!(trace.conserved().lost, 0);
}
