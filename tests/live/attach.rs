//! `-p` and `-t`: tracing of an existing process and of the tasks that it creates, without any effect on it.

#[cfg(feature = "bpf")]
use crate::line::Result;
use crate::line::{self, Line};
use crate::machine::{self, Machine};
use crate::trace::{plain, start};
use rustix::process::{Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// A process of `workload attach`, which sleeps in poll.
pub struct Target(Child);

/// Returns the name of the program of this run that the user nobody executes. A second run of the tests has another.
fn comm_of_nobody() -> String {
    format!("nobody{}", std::process::id())
}

impl Target {
    pub fn new() -> Target {
        Target::start(Command::new(machine::workload()).arg("attach"))
    }

    /// Starts it with this number of additional threads.
    pub fn with_threads(count: u32) -> Target {
        Target::start(Command::new(machine::workload()).args(["attach", &count.to_string()]))
    }

    /// Starts it as another user, who may have no access to the directory of the build.
    fn of_nobody(machine: &Machine) -> Target {
        let program = machine.copy_of(&machine::workload(), &comm_of_nobody());
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

    /// Waits until it has ended.
    pub fn ends_well(&mut self) -> bool {
        self.0.wait().is_ok_and(|status| status.success())
    }

    /// Makes it begin its calls.
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

/// Waits for the first line of poll, which the target calls every 20 ms: everything is armed by then.
pub fn armed(lines: &[Line]) -> bool {
    lines.iter().any(|line| line.call().is_some_and(|call| call.name == "poll"))
}

#[test]
fn existing_and_new_threads_and_children_are_traced() {
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
fn no_inherit_traces_only_threads_that_exist_already() {
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
fn two_traces_of_one_process_both_see_all_calls() {
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
fn a_single_thread_is_traced() {
    let Some(machine) = Machine::shared() else { return };
    let mut target = Target::new();
    let mut run = start(&machine, &["-t", &target.pid(), "--no-inherit", "-e", "lseek,poll"], &[]);
    run.wait_for("poll", armed);
    target.go();
    assert_eq!(run.finish().succeeded().tags(), [5], "only the first thread's own call");
}

/// The user may start more processes later, so a trace that would also show those ends only by a signal.
#[test]
fn all_processes_of_a_user_are_traced() {
    let Some(machine) = Machine::shared() else { return };
    let (mut target, mut other) = (Target::of_nobody(&machine), Target::new());
    let mut run = start(&machine, &["-u", "nobody", "-e", "lseek,poll"], &[]);
    run.wait_for("poll", armed);
    other.go();
    assert!(other.0.wait().is_ok_and(|status| status.success()));
    target.go();
    if machine::engine() == "bpf" {
        run.wait_for("the last call", |lines| lines.iter().any(|line| line.comm == comm_of_nobody() && line.text.contains("offset: 5,")));
        kill_process(run.pid(), Signal::INT).expect("it runs");
    }
    let trace = run.finish().succeeded();
    let lines = trace.lines();
    let own = line::calls(&lines).into_iter().filter(|(line, call)| line.comm == comm_of_nobody() && call.name == "lseek");
    let mut tags: Vec<u64> = own.filter_map(|(_, call)| call.number("offset")).collect();
    tags.sort_unstable();
    assert_eq!(tags, [1, 2, 3, 4, 5], "{}", trace.text);
}

#[cfg(feature = "bpf")]
#[test]
fn a_call_is_traced_if_its_task_has_the_user_at_that_moment() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    // This is not the user of the test above, whose trace would contain these calls.
    let program = machine.copy_of(&machine::workload(), "workload");
    // A second run of the tests has other tags.
    let (inside, outside) = (u64::from(std::process::id()) * 2, u64::from(std::process::id()) * 2 + 1);
    let script = format!("setpriv --reuid=1 --clear-groups {program} tag {inside}; {program} tag {outside}");
    for events in ["lseek", "*"] {
        let trace = start(&machine, &["--engine", "bpf", "-u", "daemon", "-e", events], &["sh", "-c", &script]).finish().succeeded();
        assert_eq!(trace.conserved().lost, 0);
        let own: Vec<u64> = trace.tags().into_iter().filter(|tag| [inside, outside].contains(tag)).collect();
        assert_eq!(own, [inside], "{}", trace.text);
    }
}

/// A call that hangs is shown immediately, although the time at which it began is unknown.
#[cfg(feature = "bpf")]
#[test]
fn a_call_that_is_in_flight_when_rtrace_attaches_is_shown() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    for (events, whom) in [("read", "-p"), ("*", "-t"), ("read", "-a")] {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the program starts");
        let pid = cat.id() as i32;
        // On a busy machine, it takes its time to get there.
        let reads = format!("{} 0x0 ", libc::SYS_read);
        while !std::fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|call| call.starts_with(&reads)) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
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
fn a_pid_without_a_process_is_refused() {
    let Some(machine) = Machine::shared() else { return };
    let trace = plain(&machine, &["-p", "4194305"]);
    assert_eq!(trace.status, 125);
    assert!(trace.stderr.contains("4194305"), "{}", trace.stderr);
}
