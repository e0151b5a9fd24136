//! The first and the last call of a program, and the calls on both sides of an exec.

use crate::line::{self, Call, Line, Result, What};
use crate::machine::{self, Machine};
use crate::trace::{Trace, trace, workload};
use std::collections::HashMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

fn calls_by_thread(lines: &[Line]) -> HashMap<i32, Vec<Call>> {
    let mut threads: HashMap<i32, Vec<Call>> = HashMap::new();
    for (line, call) in line::calls(lines) {
        threads.entry(line.tid).or_default().push(call);
    }
    threads
}

fn untouched(trace: Trace) -> Trace {
    assert_eq!(trace.conserved().lost, 0);
    trace
}

#[test]
fn the_first_line_is_the_commands_own_execve() {
    let Some(machine) = Machine::shared() else { return };
    let trace = untouched(workload(&machine, &[], "tag 1").succeeded());
    let lines = trace.lines();
    let execve = lines[0].call().unwrap_or_else(|| panic!("{}", lines[0].text));
    assert_eq!(execve.name, "execve", "{}", lines[0].text);
    assert_eq!(execve.result, Result::Returned("0".into()));
    assert_eq!(execve.arg("filename"), Some(format!("\"{}\"", machine::workload()).as_str()));
    assert_eq!(lines[0].comm, "workload");
    assert_eq!(line::calls(&lines).iter().filter(|(_, call)| call.name == "execve").count(), 1);
}

#[test]
fn the_call_after_an_exec_is_the_first_of_the_loader() {
    let Some(machine) = Machine::shared() else { return };
    let trace = untouched(workload(&machine, &[], "exec leader").succeeded());
    let lines = trace.lines();
    let calls = line::calls(&lines);
    let after: Vec<&str> = calls.windows(2).filter(|pair| pair[0].1.name == "execve").map(|pair| pair[1].1.name.as_str()).collect();
    assert_eq!(after, ["brk", "brk"], "the dynamic loader begins with brk(NULL)");
    assert_eq!(trace.tags(), [1, 2]);
}

#[test]
fn exit_group_is_the_last_call_of_every_thread_or_of_its_leader() {
    let Some(machine) = Machine::alone() else { return };
    let trace = untouched(workload(&machine, &[], "forks 1000").succeeded());
    let lines = trace.lines();
    let threads = calls_by_thread(&lines);
    assert_eq!(threads.len(), 1001);
    for (tid, calls) in threads {
        let last = &calls[calls.len() - 1];
        assert_eq!((last.name.as_str(), &last.result), ("exit_group", &Result::Never), "{tid}: {last:?}");
        assert_eq!(calls.iter().filter(|call| call.name == "exit_group").count(), 1);
    }
}

/// When a program gains privileges by its execve, the kernel removes perf events from its task, but not BPF programs.
#[test]
fn a_set_user_id_program_is_traced_or_reported() {
    let Some(machine) = Machine::shared() else { return };
    let program = machine.copy_of(&machine::workload(), "set-user-id");
    std::fs::set_permissions(&program, Permissions::from_mode(0o4755)).expect("the copy is ours");
    let trace = untouched(trace(&machine, &["--run-as", "nobody"], &["sh", "-c", "$dir/set-user-id tag 5; true"]).succeeded());
    let is_traced = trace.tags() == [5];
    assert_ne!(is_traced, trace.text.contains("+++ not traced any more"), "{}", trace.text);
    assert!(is_traced || machine::engine() != "bpf");
    let children = trace.lines().iter().filter(|line| line.comm == "set-user-id" && line.text.contains("+++")).count();
    assert_eq!(children, 1, "it ends once:\n{}", trace.text);
}

#[test]
fn threads_that_end_by_exit_have_an_exit_line() {
    let Some(machine) = Machine::shared() else { return };
    let trace = untouched(workload(&machine, &[], "threads 200").succeeded());
    let lines = trace.lines();
    let threads = calls_by_thread(&lines);
    assert_eq!(threads.len(), 201);
    let ends = threads.values().filter(|calls| calls.last().is_some_and(|call| call.name == "exit" && call.result == Result::Never));
    assert_eq!(ends.count(), 200);
}

/// The execve enters with one tid and returns with another, and it ends the threads that wait in a call.
#[test]
fn an_exec_by_a_thread_is_one_call() {
    let Some(machine) = Machine::shared() else { return };
    let trace = untouched(workload(&machine, &[], "exec thread").succeeded());
    assert_eq!(trace.tags(), [1, 2]);
    let lines = trace.lines();
    let calls = line::calls(&lines);
    let execs: Vec<_> = calls.iter().filter(|(_, call)| call.name == "execve").collect();
    assert_eq!(execs.len(), 2, "the command's own and the thread's");
    assert!(execs.iter().all(|(_, call)| call.result == Result::Returned("0".into())), "{execs:?}");
    let (second, _) = execs[1];
    assert!(second.duration.is_some(), "its entry was seen, under the thread's own tid: {}", second.text);
    let sleepers: Vec<_> = calls.iter().filter(|(_, call)| call.name == "poll" && call.number("timeout_msecs") == Some(60_000)).collect();
    assert_eq!(sleepers.len(), 3);
    assert!(sleepers.iter().all(|(_, call)| !matches!(call.result, Result::Returned(_))), "{sleepers:?}");
}

#[test]
fn each_task_has_a_line_that_says_how_it_ended() {
    let Some(machine) = Machine::shared() else { return };
    let ends = |options: &[&str], words: &str| -> Vec<String> {
        let trace = workload(&machine, options, words);
        let ends = trace.lines().into_iter().filter_map(|line| match line.what {
            What::Ended(how) => Some(how),
            _ => None,
        });
        ends.collect()
    };
    assert_eq!(ends(&["--signals"], "exit 42"), ["exited with 42"]);
    // The parent makes no such call, so all of them are the child's.
    assert_eq!(ends(&["--signals", "-e", "lseek"], "forks 3"), ["exited with 0"; 3]);
    assert_eq!(ends(&["--signals", "-e", "lseek,exit_group"], "forks 3"), ["exited with 0"; 4]);
}
