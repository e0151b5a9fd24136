//! Processes with many threads, and those that are never the same for long.

use crate::attach::{Target, armed};
use crate::line::{self, Line};
use crate::machine::{self, Machine};
use crate::trace::{shell, start, start_shell};
use rustix::process::{Signal, kill_process};
use std::process::{Child, Command};

/// `workload churn`, until it is dropped.
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

/// Calls of both kinds: of a thread or program from its beginning, or to its end.
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
fn threads_that_come_and_go() {
    every_attach_sees_calls("threads");
}

#[test]
fn a_program_that_starts_itself_anew() {
    every_attach_sees_calls("exec");
}

#[test]
fn a_thread_that_starts_the_program_anew() {
    every_attach_sees_calls("exec-thread");
}

/// The BPF programs know whom they follow, so that a thread needs no descriptor. The end of the last is noticed all the same.
#[cfg_attr(not(feature = "bpf"), ignore = "rtrace is built without BPF")]
#[test]
fn more_threads_than_descriptors() {
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

/// The kernel adds up all threads of a process for whoever asks for one by /proc/TID (10,000 threads: 10 s).
#[cfg_attr(not(feature = "bpf"), ignore = "rtrace is built without BPF")]
#[test]
fn threads_are_looked_at_as_parts_of_their_process() {
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

/// What runs out is named, and not what could not be read for that.
#[test]
fn too_few_descriptors() {
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
fn too_few_descriptors_for_bpf() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = shell(&machine, "ulimit -n 36; $rtrace -e openat true; true");
    assert!(trace.stderr.contains("only 36 files may be open at once"), "{}", trace.stderr);
    assert!(!trace.stderr.contains("this kernel takes no BPF programs"), "{}", trace.stderr);
}

/// rtrace takes what the hard limit gives before it decides anything; the command has what rtrace was started with.
#[test]
fn a_soft_limit_hinders_nobody_and_is_the_commands() {
    let Some(machine) = Machine::shared() else { return };
    let engine = machine::engine();
    let trace = shell(&machine, &format!("ulimit -Sn 20; exec $rtrace --engine {engine} -o $dir/lines sh -c 'ulimit -Sn'")).succeeded();
    assert_eq!((trace.stdout.trim(), trace.stderr.as_str()), ("20", ""));
}
