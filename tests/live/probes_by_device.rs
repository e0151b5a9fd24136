//! Tests of probes without arguments that the kernel's PMUs create: if no child inherits them, the kernel creates them
//! when their perf events are opened. Their lines are the same as with tracefs.

use crate::machine::Machine;
use crate::probes::{assert_gone, events, left, program};
use crate::trace::{Trace, start, trace};
use rustix::process::{Signal, kill_process};

/// The text by which `-v` reports such an event.
const OPENED: &str = "created by perf_event_open (not in tracefs)";

/// Asserts that the probe's lines are the same in tracefs (tracing a command and its children) and by the PMU (tracing
/// all processes), and returns them.
fn assert_same(machine: &Machine, probe: &str, program: &str) -> Vec<String> {
    let in_tracefs = trace(machine, &["--probe", probe], &[program]).succeeded();
    let by_device = trace(machine, &["-a", "--probe", probe], &[program]).succeeded();
    assert!(!in_tracefs.stderr.contains(OPENED) && by_device.stderr.contains(OPENED), "{}\n{}", in_tracefs.stderr, by_device.stderr);
    assert_eq!(events(&by_device), events(&in_tracefs), "{probe}");
    let said = |run: &Trace| run.stderr.lines().find(|line| line.contains(" 5 issued, 5 received, 0 lost")).map(str::to_owned);
    assert!(said(&by_device).is_some() && said(&by_device) == said(&in_tracefs), "{}\n{}", in_tracefs.stderr, by_device.stderr);
    events(&by_device)
}

#[test]
fn the_pmu_yields_the_same_lines_as_tracefs() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    assert_eq!(assert_same(&machine, &format!("p {program}:handle"), &program), ["probe_calls:handle()"; 5]);
    let returns = assert_same(&machine, &format!("r {program}:handle"), &program);
    assert!(returns.iter().all(|line| line.starts_with("probe_calls:handle__return(") && line.ends_with(" <- handle)")), "{returns:?}");
    assert_eq!(assert_same(&machine, &format!("p:mine/entered {program}:handle"), &program), ["mine:entered()"; 5]);
    assert_gone(&program, None);
}

#[test]
fn inherited_and_fetching_probes_are_in_tracefs() {
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
fn no_event_of_the_pmu_is_left_after_sigkill() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    for kind in ["p", "r"] {
        let mut run = start(&machine, &["-a", "--probe", &format!("{kind} {program}:handle")], &[&program, "10", "1000"]);
        let pid = run.pid();
        run.wait_for("line of a probe", |lines| !lines.is_empty());
        assert_eq!(left(&program), [""; 0], "nothing is in tracefs while the run lasts");
        kill_process(pid, Signal::KILL).expect("it is ours");
        run.finish();
        assert_gone(&program, Some(pid));
    }
}

#[test]
fn the_pmu_yields_the_same_stacks_as_tracefs() {
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
