//! `-p` and `-t`: a process that is there already, what it makes later, and leaving it in peace.

use crate::line::Line;
#[cfg(feature = "bpf")]
use crate::line::Result;
use crate::machine::{self, Machine};
use crate::trace::{plain, start};
use rustix::process::{Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// `workload attach`, idling in poll.
pub struct Target(Child);

impl Target {
    pub fn new() -> Target {
        Target::start(Command::new(machine::workload()).arg("attach"))
    }

    /// With so many more threads.
    pub fn with_threads(count: u32) -> Target {
        Target::start(Command::new(machine::workload()).args(["attach", &count.to_string()]))
    }

    /// The same as another user, who may not see the build's directory.
    fn of_nobody(machine: &Machine) -> Target {
        let program = machine.path("workload");
        std::fs::copy(machine::workload(), &program).expect("the test's directory is writable");
        Target::start(Command::new("setpriv").args(["--reuid=65534", "--clear-groups", &program, "attach"]))
    }

    fn start(command: &mut Command) -> Target {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut ready = String::new();
        let stdout = child.stdout.as_mut().expect("it is a pipe");
        BufReader::new(stdout).read_line(&mut ready).expect("the program says that it is up");
        assert!(ready.starts_with("ready "), "{ready:?}");
        Target(child)
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Waits for its end.
    pub fn ends_well(&mut self) -> bool {
        self.0.wait().is_ok_and(|status| status.success())
    }

    /// Lets it make its calls.
    pub fn go(&mut self) {
        self.0.stdin.take().expect("it is a pipe").write_all(b"go\n").expect("the program reads");
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The target polls every 20 ms: the first such line says that everything is armed.
pub fn armed(lines: &[Line]) -> bool {
    lines.iter().any(|line| line.call().is_some_and(|call| call.name == "poll"))
}

#[test]
fn follows_old_and_new_threads_and_children() {
    let Some(machine) = Machine::shared() else { return };
    for events in ["lseek,poll", "*"] {
        let mut target = Target::new();
        let mut run = start(&machine, &["-p", &target.pid(), "-e", events], &[]);
        run.wait_for("poll", armed);
        target.go();
        assert!(target.0.wait().is_ok_and(|status| status.success()));
        let trace = run.finish().succeeded();
        assert_eq!(trace.conserved().lost, 0);
        assert_eq!(trace.tags(), [1, 2, 3, 4, 5], "{}", trace.text);
    }
}

#[test]
fn no_inherit_keeps_to_the_threads_that_are_there() {
    let Some(machine) = Machine::shared() else { return };
    let mut target = Target::new();
    let mut run = start(&machine, &["-p", &target.pid(), "--no-inherit", "-e", "lseek,poll"], &[]);
    run.wait_for("poll", armed);
    target.go();
    let trace = run.finish().succeeded();
    assert_eq!(trace.tags(), [1, 5], "{}", trace.text);
}

#[test]
fn ctrl_c_ends_rtrace_and_not_the_target() {
    let Some(machine) = Machine::shared() else { return };
    let mut target = Target::new();
    let mut run = start(&machine, &["-p", &target.pid(), "-e", "lseek,poll"], &[]);
    run.wait_for("poll", armed);
    kill_process(run.pid(), Signal::INT).expect("it runs");
    let trace = run.finish().succeeded();
    trace.conserved();
    target.go();
    assert!(target.0.wait().is_ok_and(|status| status.success()), "the target runs on unharmed");
}

#[test]
fn a_command_is_only_the_timer() {
    let Some(machine) = Machine::shared() else { return };
    let mut target = Target::new();
    let trace = start(&machine, &["-p", &target.pid(), "-e", "execve,poll"], &["sh", "-c", "sleep 0.3; exit 3"]).finish().succeeded();
    assert!(trace.count("poll") > 0);
    assert_eq!(trace.count("execve"), 0, "the timer is not traced:\n{}", trace.text);
    target.go();
}

#[test]
fn two_at_once_both_see_all() {
    let Some(machine) = Machine::shared() else { return };
    let mut target = Target::new();
    let mut runs = [0, 1].map(|_| start(&machine, &["-p", &target.pid(), "-e", "lseek,poll"], &[]));
    runs.iter_mut().for_each(|run| run.wait_for("poll", armed));
    target.go();
    for run in runs {
        assert_eq!(run.finish().succeeded().tags(), [1, 2, 3, 4, 5]);
    }
}

#[test]
fn a_thread_alone() {
    let Some(machine) = Machine::shared() else { return };
    let mut target = Target::new();
    let mut run = start(&machine, &["-t", &target.pid(), "--no-inherit", "-e", "lseek,poll"], &[]);
    run.wait_for("poll", armed);
    target.go();
    assert_eq!(run.finish().succeeded().tags(), [5], "only the first thread's own call");
}

/// A user may have more processes later, so that only somebody else ends the trace where these would be seen too.
#[test]
fn a_users_processes() {
    let Some(machine) = Machine::shared() else { return };
    let (mut target, mut other) = (Target::of_nobody(&machine), Target::new());
    let mut run = start(&machine, &["-u", "nobody", "-e", "lseek,poll"], &[]);
    run.wait_for("poll", armed);
    other.go();
    assert!(other.0.wait().is_ok_and(|status| status.success()));
    target.go();
    if machine::engine() == "bpf" {
        run.wait_for("the last call", |lines| lines.iter().any(|line| line.text.contains("offset: 5,")));
        kill_process(run.pid(), Signal::INT).expect("it runs");
    }
    let trace = run.finish().succeeded();
    assert_eq!(trace.tags(), [1, 2, 3, 4, 5], "{}", trace.text);
}

#[cfg(feature = "bpf")]
#[test]
fn whoever_is_of_the_user_at_the_call() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    // Not the user of the test before, who would see these calls.
    let program = machine.path("workload");
    std::fs::copy(machine::workload(), &program).expect("the test's directory is writable");
    let script = format!("setpriv --reuid=1 --clear-groups {program} tag 8101; {program} tag 8102");
    for events in ["lseek", "*"] {
        let trace = start(&machine, &["--engine", "bpf", "-u", "daemon", "-e", events], &["sh", "-c", &script]).finish().succeeded();
        assert_eq!(trace.conserved().lost, 0);
        assert_eq!(trace.tags(), [8101], "{}", trace.text);
    }
}

/// What hangs is seen at once, though nobody knows since when.
#[cfg(feature = "bpf")]
#[test]
fn a_call_that_is_in_flight_already() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    for (events, whom) in [("read", "-p"), ("*", "-t"), ("read", "-a")] {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the program starts");
        let pid = cat.id() as i32;
        std::thread::sleep(std::time::Duration::from_millis(300));
        let id = pid.to_string();
        let words = if whom == "-a" { vec!["-a"] } else { vec![whom, &id] };
        let mut run = start(&machine, &[&["--pending", "--engine", "bpf", "-e", events], &words[..]].concat(), &[]);
        let of_cat = |line: &&Line| line.tid == pid && line.call().is_some_and(|call| call.name == "read");
        let pending = |line: &Line| of_cat(&line) && line.time.is_none() && line.call().is_some_and(|call| call.result == Result::Pending);
        run.wait_for("the call in flight", |lines| lines.iter().any(pending));
        cat.stdin.take().expect("it is a pipe").write_all(b"three").expect("the program reads");
        run.wait_for("its end", |lines| lines.iter().filter(of_cat).count() >= 2);
        assert!(cat.wait().is_ok_and(|status| status.success()));
        if whom == "-a" {
            kill_process(run.pid(), Signal::INT).expect("it runs");
        }
        let trace = run.finish().succeeded();
        let lines = trace.lines();
        let reads: Vec<&Line> = lines.iter().filter(of_cat).collect();
        let continued = reads[1].call().expect("it is a call");
        assert!(reads[0].text.contains("fd: 0"), "{}", reads[0].text);
        assert!(continued.continued && continued.result == Result::Returned("5".to_owned()), "{}", reads[1].text);
        assert!(reads[1].duration.is_none(), "it is not known: {}", reads[1].text);
        assert_eq!(trace.conserved().lost, 0);
    }
}

#[test]
fn a_process_that_is_not_there() {
    let Some(machine) = Machine::shared() else { return };
    let trace = plain(&machine, &["-p", "4194305"]);
    assert_eq!(trace.status, 125);
    assert!(trace.stderr.contains("4194305"), "{}", trace.stderr);
}
