//! Calls that are in flight when rtrace attaches, or when the trace ends, with their arguments and stacks.

use crate::compiled::compiled;
use crate::line::{Line, Result};
use crate::machine::{self, Machine};
use crate::stacks::{Frame, frame};
use crate::trace::{Trace, shell_with_engine, start};
use rustix::process::{Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A program with two deadlocked threads.
struct Deadlocked(Child);

impl Deadlocked {
    fn start(program: &str) -> Deadlocked {
        let mut child = Command::new(program).stdout(Stdio::piped()).spawn().expect("it was compiled");
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().expect("it is a pipe")).read_line(&mut said).expect("it says when it is stuck");
        assert_eq!(said, "stuck\n");
        // Both threads are about to wait for each other.
        std::thread::sleep(Duration::from_millis(300));
        Deadlocked(child)
    }
}

impl Drop for Deadlocked {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Traces a process for some time.
fn attached(machine: &Machine, options: &[&str], pid: u32) -> Trace {
    let pid = pid.to_string();
    let run = start(machine, &[options, &["-p", &pid]].concat(), &[]);
    std::thread::sleep(Duration::from_millis(1500));
    kill_process(run.pid(), Signal::INT).expect("it runs");
    run.finish().succeeded()
}

/// Returns the frames under each line of a call in flight.
fn stacks_in_flight(trace: &Trace) -> Vec<(String, Vec<Frame>)> {
    let lines: Vec<&str> = trace.text.lines().collect();
    let in_flight = lines.iter().enumerate().filter(|(_, line)| line.ends_with(" ..."));
    in_flight.map(|(at, line)| ((*line).to_owned(), lines[at + 1..].iter().map_while(|line| frame(line)).collect())).collect()
}

#[test]
fn deadlocked_threads_show_where_they_wait() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = compiled(&machine, "cc", &["-O2", "-g", "-pthread"], "stacks/deadlock.c", "deadlock") else { return };
    for options in [&["-e", "futex"][..], &["-e", "futex", "--pending"]] {
        let target = Deadlocked::start(&program);
        let trace = attached(&machine, &[options, &["--call-graph", "dwarf"]].concat(), target.0.id());
        let found = stacks_in_flight(&trace);
        assert_eq!(found.len(), 3, "two wait for a mutex, one for a thread\n{}\n{}", trace.text, trace.stderr);
        for chain in [["take_second", "first_then_second"], ["take_first", "second_then_first"]] {
            let is_there = found.iter().any(|(_, frames)| {
                let names: Vec<&str> = frames.iter().map(|frame| frame.name.as_str()).collect();
                names.windows(2).any(|pair| pair == chain)
            });
            assert!(is_there, "{chain:?}\n{}", trace.text);
        }
        if machine::engine() == "bpf" {
            let ends = ["start_thread", "_start"];
            assert!(found.iter().all(|(_, frames)| frames.iter().any(|frame| ends.contains(&frame.name.as_str()))), "{}", trace.text);
        }
        assert_eq!(trace.conserved().lost, 0);
    }
}

/// The time at which the call began is unknown.
#[test]
fn a_call_in_which_a_process_sleeps_is_shown_with_its_arguments() {
    let Some(machine) = Machine::shared() else { return };
    let mut sleep = Command::new("sleep").arg("60").spawn().expect("the program starts");
    std::thread::sleep(Duration::from_millis(300));
    let trace = attached(&machine, &[], sleep.id());
    sleep.kill().expect("it runs");
    sleep.wait().expect("it is ours");
    let lines: Vec<Line> = trace.lines();
    assert_eq!(lines.len(), 1, "{}", trace.text);
    let call = lines[0].call().expect("it is a call");
    assert_eq!((call.name.as_str(), &call.result, lines[0].time.as_ref()), ("clock_nanosleep", &Result::Pending, None), "{}", trace.text);
    assert!(lines[0].text.contains("rqtp: {.tv_sec: 60"), "{}", lines[0].text);
    assert_eq!(trace.conserved().lost, 0);
}

/// The process has read nothing of it since then, so it is what the kernel reads, too.
#[test]
fn what_the_call_points_to_in_which_a_process_waits_is_shown_whether_it_returns_or_not() {
    let Some(machine) = Machine::shared() else { return };
    let fifo = machine.path("waited-for");
    let script = format!(
        r#"mkfifo {fifo}; cat {fifo} >/dev/null & reader=$!; sleep .5
        traced() {{ $rtrace $engine -e openat -o $dir/log "$@" -p $reader & tracer=$!; }}
        traced; sleep 1; kill -TERM $tracer; wait $tracer; cat $dir/log
        traced --style strace; sleep 1; echo >{fifo}; wait $tracer; cat $dir/log"#
    );
    let run = shell_with_engine(&machine, &script);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let [waits, returned, exited] = lines[..] else { panic!("{}\n{}", run.stdout, run.stderr) };
    assert!(waits.contains(&format!("openat(dfd: CWD, filename: \"{fifo}\", flags: RDONLY)")) && waits.ends_with(" ..."), "{waits}");
    assert!(returned.ends_with(&format!(" openat(AT_FDCWD, \"{fifo}\", O_RDONLY) = 3")), "{returned}");
    assert!(exited.ends_with(" +++ exited with 0 +++"), "{exited}");
}

/// The stack of a hanging command is shown when the user interrupts the trace.
#[test]
fn an_interrupted_command_that_hangs_shows_its_stack() {
    let Some(machine) = Machine::shared() else { return };
    if machine::engine() != "bpf" {
        // With tracepoints, the stack of a call is copied when it returns.
        return;
    }
    let Some(program) = compiled(&machine, "cc", &["-O2", "-g", "-pthread"], "stacks/deadlock.c", "deadlock") else { return };
    // The first signal is forwarded to the command, which ignores it, and the second one ends the trace.
    let command = format!("trap '' INT TERM; {program} & sleep 3; kill -KILL $!");
    let mut run = start(&machine, &["-e", "futex", "--call-graph", "dwarf"], &["sh", "-c", &command]);
    run.wait_for_output("stuck\n");
    std::thread::sleep(Duration::from_millis(300));
    kill_process(run.pid(), Signal::INT).expect("it runs");
    kill_process(run.pid(), Signal::TERM).expect("it runs");
    let trace = run.finish();
    assert!(trace.text.contains("take_second") && trace.text.contains("take_first"), "{}\n{}", trace.text, trace.stderr);
}

/// The first process of a pid namespace waits for all others long after its exit was recorded. A trace that attaches at
/// that time finds it asleep in a call.
#[test]
fn a_task_that_was_already_ending_is_in_the_account() {
    let Some(machine) = Machine::shared() else { return };
    let targets: &[&str] = if machine::engine() == "bpf" { &["-a", "-p $first"] } else { &["-a"] };
    for target in targets {
        let script = format!(
            r#"rm -f $dir/go $dir/held; $workload held $dir/go >$dir/held & workload=$!
            until grep -qs "^held" $dir/held; do sleep .05; done; first=$(sed -n 's/held //p' $dir/held)
            $rtrace $engine -v {target} -e exit_group -o $dir/lines sh -c 'touch $dir/go; until grep -q gone $dir/held; do sleep .05; done; sleep .3'
            status=$?; wait $workload; cat $dir/lines; echo "first $first"; exit $status"#
        );
        let trace = shell_with_engine(&machine, &script);
        assert_eq!(trace.conserved().lost, 0, "{target}");
        // A trace of the whole machine shows the exits of other tests' programs too.
        let first = trace.text.lines().find_map(|line| line.strip_prefix("first ")).expect("the script says it");
        let exit = format!("workload/{first} exit_group(error_code: 7) ");
        let ending = trace.text.lines().filter(|line| line.contains(&exit)).collect::<Vec<_>>();
        if machine::engine() == "bpf" {
            assert!(matches!(ending[..], [line] if line.ends_with(" = ?")), "{target}: {ending:?}\n{}", trace.text);
        }
        assert!(!trace.stderr.contains("does not add up"), "{target}: {}", trace.stderr);
    }
}
