//! The end of a run: exit statuses, signals, and children that outlive the command.

use crate::line;
use crate::machine::Machine;
use crate::names::left_by;
use crate::trace::{overrun, plain, shell, start, start_on_a_terminal, start_workload, trace, workload};
use rustix::process::{Signal, kill_process};
use std::io::Write;

fn status(machine: &Machine, options: &[&str], command: &[&str]) -> i32 {
    trace(machine, options, command).status
}

#[test]
fn rtrace_exits_with_the_commands_status() {
    let Some(machine) = Machine::shared() else { return };
    for options in [&[][..], &["-s"], &["-e", "lseek"], &["-o", "/dev/null"]] {
        assert_eq!(status(&machine, options, &["sh", "-c", "exit 42"]), 42, "{options:?}");
        assert_eq!(status(&machine, options, &["sh", "-c", "kill -9 $$"]), 137, "{options:?}");
        assert_eq!(status(&machine, options, &["sh", "-c", "kill -TERM $$"]), 143, "{options:?}");
    }
}

#[test]
fn a_command_that_cannot_be_found_or_executed_is_refused() {
    let Some(machine) = Machine::shared() else { return };
    let absent = plain(&machine, &["--", "no-such-command-here"]);
    assert_eq!(absent.status, 127);
    assert!(absent.stderr.contains("no-such-command-here"), "{}", absent.stderr);
    let text = machine.file("not-executable", 10);
    let denied = plain(&machine, &["--", &text]);
    assert_eq!(denied.status, 126);
    assert!(denied.stderr.contains("not-executable"), "{}", denied.stderr);
    let lines = line::parse(&denied.stderr);
    let calls: Vec<String> = line::calls(&lines).into_iter().map(|(_, call)| call.name).collect();
    assert!(calls.iter().all(|name| name == "execve"), "rtrace's own calls after it are not the command's: {calls:?}");
}

#[test]
fn a_command_whose_execve_fails_is_refused() {
    let Some(machine) = Machine::shared() else { return };
    for (options, why) in [(["--chdir", "/no/such/place"], "change to the directory"), (["--run-as", "no-such-user"], "no-such-user")] {
        let refused = plain(&machine, &[&options[..], &["--", "echo", "started"]].concat());
        assert_eq!((refused.status, refused.stdout.as_str()), (126, ""), "{}", refused.stderr);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
}

#[test]
fn strict_reports_lost_calls_by_its_status() {
    let Some(machine) = Machine::alone() else { return };
    let lossy = overrun(&machine, &["--strict", "-m", "8K", "-e", "lseek"], "calls lseek 4 50000");
    assert!(lossy.conserved().lost > 0, "the ring held everything");
    assert_eq!(lossy.status, 124);
    let whole = workload(&machine, &["--strict", "-e", "lseek"], "calls lseek 1 100");
    assert_eq!((whole.status, whole.conserved().lost), (0, 0));
}

#[test]
fn the_trace_waits_for_background_children() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["-e", "lseek"], "outlive 300 7");
    assert_eq!(trace.status, 7);
    assert_eq!(trace.tags(), [1], "{}", trace.text);
}

#[test]
fn no_wait_ends_the_trace_with_the_command() {
    let Some(machine) = Machine::shared() else { return };
    let trace = workload(&machine, &["--no-wait", "-e", "lseek"], "outlive 3000 7");
    assert_eq!(trace.status, 7);
    assert_eq!(trace.tags(), [0; 0], "{}", trace.text);
    assert_eq!(trace.verdict().lost, 0);
}

const TRAPS_INT: &str = "trap 'echo trapped; exit 5' INT; echo up; while :; do sleep 0.05; done";

/// The terminal sends SIGINT to both processes. rtrace does not forward it, because the command would get it twice.
#[test]
fn ctrl_c_interrupts_the_command_once() {
    let Some(machine) = Machine::shared() else { return };
    for mode in [&[][..], &["-s"]] {
        let (mut run, mut terminal) = start_on_a_terminal(&machine, mode, &["sh", "-c", TRAPS_INT]);
        run.wait_for_output("up\n");
        terminal.write_all(b"\x03").expect("the terminal is open");
        let trace = run.finish();
        assert_eq!((trace.status, trace.stdout.as_str()), (5, "up\ntrapped\n"), "{}", trace.stderr);
    }
}

/// A signal that is sent to rtrace alone is meant for the command.
#[test]
fn an_interrupt_to_rtrace_is_forwarded_to_the_command() {
    let Some(machine) = Machine::shared() else { return };
    let mut run = start(&machine, &[], &["sh", "-c", TRAPS_INT]);
    run.wait_for_output("up\n");
    kill_process(run.pid(), Signal::INT).expect("it runs");
    let trace = run.finish();
    assert_eq!((trace.status, trace.stdout.as_str()), (5, "up\ntrapped\n"), "{}", trace.stderr);
}

/// Every line is there and none is cut off, whichever signal ends rtrace.
#[test]
fn signals_to_rtrace_lose_nothing() {
    let Some(machine) = Machine::shared() else { return };
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut run = start_workload(&machine, &["-S", "-e", "poll"], "spans sleep 2 2000");
        run.wait_for("a few polls", |lines| line::calls(lines).len() > 10);
        kill_process(run.pid(), signal).expect("it runs");
        let trace = run.finish();
        assert!(trace.text.ends_with('\n'), "{signal:?}: the last line is cut short:\n{}", trace.text);
        assert!(trace.text.contains("Summary of events"), "{signal:?}: no summary:\n{}", trace.text);
        assert_eq!(trace.conserved().lost, 0, "{signal:?}");
    }
}

#[test]
fn a_closed_output_pipe_does_not_stop_the_command() {
    let Some(machine) = Machine::shared() else { return };
    let script = r#"{ "$rtrace" -v -e lseek -- "$workload" calls lseek 1 200000; echo $? >"$dir/status"; } 2>&1 >"$dir/out" | head -n 1"#;
    let first = shell(&machine, script).succeeded();
    assert!(first.stdout.starts_with("plan: "), "{first:?}");
    let read = |name: &str| std::fs::read_to_string(machine.path(name)).unwrap_or_default();
    assert_eq!(read("out"), "issued lseek 200000\n", "the command ran on");
    assert_eq!(read("status"), "0\n", "and ended well");
}

#[test]
fn no_event_or_file_is_left_after_a_run() {
    let Some(machine) = Machine::alone() else { return };
    let run = start_workload(&machine, &[], "tag 1");
    let pid = run.pid();
    run.finish().succeeded();
    assert_eq!(left_by(pid), [""; 0]);
}
