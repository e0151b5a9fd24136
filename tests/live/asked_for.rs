//! Every event that the user selects has its lines, even if rtrace needs the same event for itself.

use crate::machine::Machine;
use crate::trace::{Trace, trace, workload};

/// The number of children that `workload` creates in these tests; each of them calls lseek and exits.
const CHILDREN: usize = 5;

/// Each event that a plan arms for its own use, and how often the test program causes it: a process executes a program
/// and creates five children, all of which exit.
const OF_FORKS: [(&str, usize); 12] = [
    ("syscalls:sys_enter_execve", 1),
    ("syscalls:sys_exit_execve", 1),
    ("syscalls:sys_enter_lseek", CHILDREN),
    ("syscalls:sys_exit_lseek", CHILDREN),
    ("syscalls:sys_enter_exit_group", CHILDREN + 1),
    ("sched:sched_process_exec", 1),
    ("sched:sched_process_exit", CHILDREN + 1),
    ("sched:sched_process_fork", CHILDREN),
    ("task:task_newtask", CHILDREN),
    ("signal:signal_generate", 0),
    ("syscalls:sys_enter_exit", 0),
    ("syscalls:sys_exit_exit_group", 0),
];

fn lines_of(trace: &Trace, event: &str) -> usize {
    trace.text.lines().filter(|line| line.contains(&format!(" {event}("))).count()
}

/// The account of the calls and the account of every event add up.
fn adds_up(trace: &Trace) {
    assert!(!trace.stderr.contains("does not add up"), "{}", trace.stderr);
    let verdict = trace.verdict();
    assert_eq!(verdict.printed + verdict.lost + verdict.held_back, verdict.issued, "{verdict:?}\n{}", trace.stderr);
}

#[test]
fn an_event_that_rtrace_needs_itself_is_shown() {
    let Some(machine) = Machine::shared() else { return };
    for (event, times) in OF_FORKS {
        let trace = workload(&machine, &["-e", event], &format!("forks {CHILDREN}")).succeeded();
        assert_eq!(lines_of(&trace, event), times, "{event}\n{}", trace.text);
        assert!(!trace.stderr.contains("does not add up"), "{}", trace.stderr);
    }
}

/// The event and the calls are shown together: with calls that use the same tracepoint, with all calls, with summaries
/// and with descriptors.
#[test]
fn an_event_and_the_calls_it_is_needed_for_are_both_shown() {
    let Some(machine) = Machine::shared() else { return };
    let events: Vec<&str> = OF_FORKS.iter().map(|(event, _)| *event).collect();
    let events = events.join(",");
    for more in [&["-e", "lseek,execve,exit_group"][..], &["-e", "*"], &["-e", "lseek,exit_group", "--fd-paths", "--signals"], &["--sched"]]
    {
        let options = [more, &["-e", &events]].concat();
        let trace = workload(&machine, &options, &format!("forks {CHILDREN}")).succeeded();
        for (event, times) in OF_FORKS {
            assert_eq!(lines_of(&trace, event), times, "{event} with {more:?}\n{}", trace.text);
        }
        if more[0] == "-e" {
            assert_eq!(trace.tags().len(), CHILDREN, "{more:?}\n{}", trace.text);
            assert_eq!(trace.count("exit_group"), CHILDREN as u64 + 1, "{more:?}\n{}", trace.text);
            adds_up(&trace);
        }
    }
}

/// The user selects the raw_syscalls events, which are shown for each call, although rtrace traces only some calls.
#[test]
fn events_of_all_calls_are_shown_beside_some_calls() {
    let Some(machine) = Machine::shared() else { return };
    for more in [&[][..], &["-e", "lseek"], &["-e", "*"], &["-e", "lseek,read/call-graph=fp/"]] {
        let options = [more, &["-e", "raw_syscalls:sys_enter,raw_syscalls:sys_exit,syscalls:sys_enter_lseek"]].concat();
        let trace = workload(&machine, &options, "tag 7").succeeded();
        let (enters, exits) = (lines_of(&trace, "raw_syscalls:sys_enter"), lines_of(&trace, "raw_syscalls:sys_exit"));
        assert_eq!(lines_of(&trace, "syscalls:sys_enter_lseek"), 1, "{more:?}");
        assert!(enters > 20, "{more:?}: {enters} entries");
        // exit_group does not return, so it has no exit event.
        assert_eq!(exits + 1, enters, "{more:?}\n{}", trace.text);
        assert_eq!(trace.tags().len(), usize::from(!more.is_empty()), "{more:?}");
        if !more.is_empty() {
            adds_up(&trace);
        }
    }
}

#[test]
fn events_of_signals_and_run_time_are_shown_beside_the_features_that_need_them() {
    let Some(machine) = Machine::shared() else { return };
    let script = "trap 'echo caught' USR1; kill -USR1 $$; i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
    for more in [&[][..], &["--signals"], &["--sched"], &["--sched", "-e", "kill"]] {
        let events = "signal:signal_deliver,signal:signal_generate,sched:sched_stat_runtime";
        let trace = trace(&machine, &[more, &["-e", events]].concat(), &["sh", "-c", script]).succeeded();
        for event in ["signal:signal_deliver", "signal:signal_generate"] {
            assert_eq!(lines_of(&trace, event), 1, "{event} with {more:?}\n{}", trace.text);
        }
        assert!(lines_of(&trace, "sched:sched_stat_runtime") > 0, "{more:?}\n{}", trace.text);
        assert!(!trace.stderr.contains("does not add up"), "{}", trace.stderr);
    }
}

/// The user's filter on an event does not hide that event from rtrace: the end of the command is still known.
#[test]
fn a_filter_of_an_event_does_not_change_other_lines() {
    let Some(machine) = Machine::shared() else { return };
    let options = ["-e", "syscalls:sys_enter_exit_group", "--filter", "error_code == 4"];
    let trace = trace(&machine, &options, &["sh", "-c", "(exit 4); (exit 3); exit 5"]);
    assert_eq!((trace.status, lines_of(&trace, "syscalls:sys_enter_exit_group")), (5, 1), "{}", trace.text);
    // No line of the other tasks is shown, so their exit lines are left out too.
    let ends: Vec<&str> = trace.text.lines().filter_map(|line| Some(line.split_once("+++ ")?.1)).collect();
    assert_eq!(ends, ["exited with 4 +++"], "{}", trace.text);
}

#[test]
fn an_event_that_rtrace_needs_itself_can_be_a_switch() {
    let Some(machine) = Machine::shared() else { return };
    for (on, off) in
        [("syscalls:sys_enter_execve", "syscalls:sys_exit_execve"), ("sched:sched_process_exec", "syscalls:sys_enter_exit_group")]
    {
        for engine_arms_it in ["getppid", "getppid,execve,exit_group", "*"] {
            let options = ["-e", engine_arms_it, "--switch-on", on];
            let all = workload(&machine, &options, "calls getppid 1 20").succeeded();
            assert_eq!(all.count("getppid"), 20, "{options:?}\n{}", all.text);
            adds_up(&all);
            let options = ["-e", engine_arms_it, "--switch-on", on, "--switch-off", off, "--show-on-off-events"];
            let part = workload(&machine, &options, "calls getppid 1 20").succeeded();
            assert_eq!((lines_of(&part, on), lines_of(&part, off)), (1, 1), "{options:?}\n{}", part.text);
            assert!(part.text.lines().last().is_some_and(|line| line.contains(off)), "{options:?}\n{}", part.text);
            adds_up(&part);
        }
    }
}
