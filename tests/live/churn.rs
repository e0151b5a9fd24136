//! Processes with many threads, and processes whose threads or program change all the time.

use crate::attach::{Target, armed};
use crate::line::{self, Line};
use crate::machine::{self, Machine};
use crate::trace::{shell, start, start_shell};
use rustix::process::{Signal, kill_process};
use std::process::{Child, Command};

/// A process of `workload churn`, which is killed when this is dropped.
struct Churn(Child);

impl Churn {
    fn new(how: &str) -> Churn {
        Churn(Command::new(machine::workload()).args(["churn", how]).spawn().expect("the program starts"))
    }
}

impl Drop for Churn {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The trace has calls from the beginning of a thread or program, and calls up to its end.
fn both_tags(lines: &[Line]) -> bool {
    let has = |tag: u64| lines.iter().filter_map(Line::call).any(|call| call.name == "lseek" && call.number("offset") == Some(tag));
    has(1) && has(2)
}

fn every_attach_sees_calls(how: &str) {
    let Some(machine) = Machine::shared() else { return };
    let target = Churn::new(how);
    let pid = target.0.id().to_string();
    for _ in 0..12 {
        let mut run = start(&machine, &["-p", &pid, "-e", "lseek"], &[]);
        run.wait_for("calls", both_tags);
        kill_process(run.pid(), Signal::INT).expect("it runs");
        run.finish().succeeded().conserved();
    }
}

#[test]
fn threads_that_are_created_and_end_meanwhile_are_traced() {
    every_attach_sees_calls("threads");
}

#[test]
fn a_process_that_executes_itself_again_is_traced() {
    every_attach_sees_calls("exec");
}

#[test]
fn a_thread_that_executes_the_program_again_is_traced() {
    every_attach_sees_calls("exec-thread");
}

/// The BPF programs mark the tasks that they follow, so a thread needs no descriptor. rtrace nevertheless notices the
/// end of the last thread.
#[cfg_attr(not(feature = "bpf"), ignore = "rtrace is built without BPF")]
#[test]
fn more_threads_than_descriptors_are_traced() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let mut target = Target::with_threads(400);
    let script = format!("ulimit -n 300; exec $rtrace --engine bpf -v -p {} -e lseek,poll 2>&1", target.pid());
    let mut run = start_shell(&machine, &script);
    run.wait_for_stdout(|text| armed(&line::parse(text)));
    target.go();
    assert!(target.ends_well());
    let mut trace = run.finish();
    (trace.text, trace.stderr) = (trace.stdout.clone(), trace.stdout.clone());
    let trace = trace.succeeded();
    assert_eq!(trace.conserved().lost, 0);
    assert_eq!(trace.tags(), [1, 2, 3, 4, 5], "{}", trace.text);
}

/// A read of /proc/TID/stat makes the kernel add up all threads of the process (10 s for 10,000 threads), so rtrace
/// reads below /proc/PID/task.
#[cfg_attr(not(feature = "bpf"), ignore = "rtrace is built without BPF")]
#[test]
fn files_in_proc_are_read_below_the_threads_process() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let target = Target::with_threads(50);
    let threads: Vec<String> = std::fs::read_dir(format!("/proc/{}/task", target.pid()))
        .expect("it runs")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|tid| *tid != target.pid())
        .collect();
    assert!(threads.len() >= 50);
    let engine = machine::engine();
    for whom in ["-a".to_owned(), format!("-p {}", target.pid())] {
        let script =
            format!("$rtrace --engine bpf -q -e openat,readlink,readlinkat,statx -- $rtrace --engine {engine} {whom} -o $dir/inner true");
        let trace = shell(&machine, &script).succeeded();
        let of_thread = |tid: &&String| trace.stderr.contains(&format!("/task/{tid}/"));
        assert!(threads.iter().all(|tid| of_thread(&tid)), "every thread is looked at:\n{}", trace.stderr);
        let slow = threads.iter().find(|tid| trace.stderr.contains(&format!("\"/proc/{tid}/")));
        assert_eq!(slow, None, "{}", trace.stderr);
    }
}

/// The message names the limit that was reached, and not the file that could therefore not be opened.
#[test]
fn too_few_descriptors_for_tracepoints_are_reported() {
    let Some(machine) = Machine::shared() else { return };
    for engine in ["", "--engine tracepoint"] {
        let trace = shell(&machine, &format!("ulimit -n 20; exec $rtrace {engine} true"));
        assert_eq!(trace.status, 125, "{}", trace.stderr);
        assert!(trace.stderr.contains("only 20 files may be open at once") && trace.stderr.contains("ulimit -n"), "{}", trace.stderr);
    }
    let trace = shell(&machine, "ulimit -n 60; exec $rtrace --engine tracepoint -e 'syscalls:sys_enter_[a-m]*' true");
    assert_eq!(trace.status, 125, "{}", trace.stderr);
    assert!(trace.stderr.contains("only 60 files may be open at once"), "{}", trace.stderr);
}

#[cfg_attr(not(feature = "bpf"), ignore = "rtrace is built without BPF")]
#[test]
fn too_few_descriptors_for_bpf_are_reported() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = shell(&machine, "ulimit -n 40; $rtrace -e openat true; true");
    assert!(trace.stderr.contains("only 40 files may be open at once"), "{}", trace.stderr);
    assert!(!trace.stderr.contains("this kernel rejects rtrace's BPF programs"), "{}", trace.stderr);
}

/// rtrace raises its limit to the hard limit before it decides anything, and the command runs with the limit that
/// rtrace was started with.
#[test]
fn a_soft_limit_of_descriptors_is_raised_and_restored_for_the_command() {
    let Some(machine) = Machine::shared() else { return };
    let engine = machine::engine();
    let trace = shell(&machine, &format!("ulimit -Sn 20; exec $rtrace --engine {engine} -o $dir/lines sh -c 'ulimit -Sn'")).succeeded();
    assert_eq!((trace.stdout.trim(), trace.stderr.as_str()), ("20", ""));
}
