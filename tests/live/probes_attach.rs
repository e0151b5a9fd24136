//! Tests of probes in running tasks: a process, one of its threads, all processes.

use crate::machine::Machine;
use crate::probes::{assert_gone, events, program};
use crate::trace::{Running, start};
use rustix::process::{Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The program `calls serve`, which has a second thread.
struct Target {
    child: Child,
    thread: String,
    /// How often the program was told to make its calls.
    rounds: u32,
}

impl Target {
    fn new(program: &str) -> Target {
        let mut child =
            Command::new(program).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().expect("it is a pipe")).read_line(&mut ready).expect("the program reports that it is ready");
        let thread = ready.trim().strip_prefix("ready ").expect("the program prints its thread's ID").to_owned();
        Target { child, thread, rounds: 0 }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Lets each of its tasks make one call.
    fn go(&mut self) {
        self.rounds += 1;
        self.child.stdin.as_mut().expect("it is a pipe").write_all(b".").expect("the program reads");
    }

    /// Lets it make its calls until rtrace prints lines, and then once more.
    fn serve(&mut self, run: &mut Running) {
        loop {
            self.go();
            std::thread::sleep(Duration::from_millis(200));
            if run.has_lines() {
                return self.go();
            }
            assert!(self.rounds < 600, "rtrace prints no lines");
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn running_tasks_are_probed() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let probe = format!("p {program}:handle text=+0(%di):ustring round=%si:s32");
    let mut target = Target::new(&program);
    let (pid, thread) = (target.pid(), target.thread.clone());
    for (options, whose) in [
        (&["-p", &pid][..], &["main", "thread", "child"][..]),
        (&["-p", &pid, "--no-inherit"], &["main", "thread"]),
        (&["-t", &thread], &["thread"]),
        (&["-t", &pid], &["main"]),
        (&["-a"], &["main", "thread", "child"]),
    ] {
        let mut run = start(&machine, &[options, &["--probe", &probe]].concat(), &[]);
        target.serve(&mut run);
        let last = |of: &str| format!("(text: \"{of}\", round: {})", target.rounds);
        let all: Vec<String> = whose.iter().map(|of| last(of)).collect();
        run.wait_for("last round", |lines| all.iter().all(|one| lines.iter().any(|line| line.text.ends_with(one.as_str()))));
        kill_process(run.pid(), Signal::INT).expect("it runs");
        let run = run.finish().succeeded();
        let round = format!("round: {})", target.rounds);
        let seen: Vec<String> = events(&run).into_iter().filter(|event| event.ends_with(&round)).collect();
        assert_eq!(seen, all.iter().map(|args| format!("probe_calls:handle{args}")).collect::<Vec<_>>(), "{options:?}");
        assert_gone(&program, None);
    }
}

/// For one thread, the kernel creates a return probe when its perf event is opened.
#[test]
fn returns_of_one_thread_are_probed_by_the_pmu() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let mut target = Target::new(&program);
    let mut run = start(&machine, &["-t", &target.thread, "--probe", &format!("r {program}:handle")], &[]);
    target.serve(&mut run);
    run.wait_for("second line", |lines| lines.len() > 1);
    kill_process(run.pid(), Signal::INT).expect("it runs");
    let run = run.finish().succeeded();
    assert!(run.stderr.contains("created by perf_event_open"), "{}", run.stderr);
    let events = events(&run);
    assert!(events.iter().all(|event| event.starts_with("probe_calls:handle__return(waiting+0x")), "{events:?}");
    assert!(run.lines().iter().all(|line| line.text.contains(&format!("calls/{} ", target.thread))), "{}", run.text);
}
