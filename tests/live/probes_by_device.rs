//! Probes without arguments: the kernel makes them when their events are opened, where nobody inherits these. They show what they would show by tracefs.

use crate::machine::Machine;
use crate::probes::{assert_gone, events, left, program};
use crate::trace::{Trace, start, trace};
use rustix::process::{Signal, kill_process};

/// What `-v` says of such an event.
const OPENED: &str = "made by opening it (nothing of it is in tracefs)";

/// The probe's lines, which are the same in tracefs and by the device: of a command with all that it starts, and of everything that runs.
fn assert_same(machine: &Machine, probe: &str, program: &str) -> Vec<String> {
    let in_tracefs = trace(machine, &["--probe", probe], &[program]).succeeded();
    let by_device = trace(machine, &["-a", "--probe", probe], &[program]).succeeded();
    assert!(!in_tracefs.stderr.contains(OPENED) && by_device.stderr.contains(OPENED), "{}\n{}", in_tracefs.stderr, by_device.stderr);
    assert_eq!(events(&by_device), events(&in_tracefs), "{probe}");
    let said = |run: &Trace| run.stderr.lines().find(|line| line.contains(" 5 issued, 5 came, 0 lost")).map(str::to_owned);
    assert!(said(&by_device).is_some() && said(&by_device) == said(&in_tracefs), "{}\n{}", in_tracefs.stderr, by_device.stderr);
    events(&by_device)
}

#[test]
fn the_same_lines_as_by_tracefs() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    assert_eq!(assert_same(&machine, &format!("p {program}:handle"), &program), ["probe_calls:handle()"; 5]);
    let returns = assert_same(&machine, &format!("r {program}:handle"), &program);
    assert!(returns.iter().all(|line| line.starts_with("probe_calls:handle__return(") && line.ends_with(" <- handle)")), "{returns:?}");
    assert_eq!(assert_same(&machine, &format!("p:mine/entered {program}:handle"), &program), ["mine:entered()"; 5]);
    assert_gone(&program, None);
}

#[test]
fn what_is_inherited_or_fetches_is_in_tracefs() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let plain = format!("p {program}:handle");
    let fetching = format!("p {program}:handle number=%si:s32");
    for (options, opened) in [
        (&["--probe", plain.as_str()][..], false),
        (&["--no-inherit", "--probe", &plain], true),
        (&["-a", "--probe", &fetching], false),
        (&["-a", "--probe", &plain, "--filter", "common_pid > 0"], false),
        (&["-C", "0", "--probe", &plain], true),
    ] {
        let run = trace(&machine, options, &[&program, "3"]).succeeded();
        assert_eq!(run.stderr.contains(OPENED), opened, "{options:?}: {}", run.stderr);
        if !options.contains(&"-C") {
            assert_eq!(events(&run).len(), 3, "{options:?}: {}", run.text);
        }
    }
}

#[test]
fn nothing_is_left_of_a_killed_run() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    for kind in ["p", "r"] {
        let mut run = start(&machine, &["-a", "--probe", &format!("{kind} {program}:handle")], &[&program, "10", "1000"]);
        let pid = run.pid();
        run.wait_for("line of a probe", |lines| !lines.is_empty());
        assert_eq!(left(&program), [""; 0], "nor is anything there while it runs");
        kill_process(pid, Signal::KILL).expect("it is ours");
        run.finish();
        assert_gone(&program, Some(pid));
    }
}

#[test]
fn stacks_are_those_of_the_program() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let probe = format!("p {program}:handle");
    let frames = |options: &[&str]| {
        let run = trace(&machine, &[options, &["--call-graph", "dwarf", "--probe", &probe]].concat(), &[&program]).succeeded();
        assert_eq!(run.stderr.contains(OPENED), options.contains(&"-a"), "{}", run.stderr);
        run.text.lines().skip(1).map_while(crate::stacks::frame).map(|frame| frame.name).collect::<Vec<_>>()
    };
    let by_device = frames(&["-a"]);
    assert_eq!(by_device[..3], ["handle", "middle", "main"]);
    assert_eq!(by_device, frames(&[]));
}
