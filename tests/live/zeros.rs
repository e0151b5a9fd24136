//! Arguments that are zero: shown where zero says something, left out where it is what nearly every caller passes.

use crate::machine::Machine;
use crate::trace::trace;

/// The calls of a command, without stamps, tasks and the blanks before the return.
fn calls(machine: &Machine, options: &[&str], script: &str) -> Vec<String> {
    let trace = trace(machine, options, &["sh", "-c", script]).succeeded();
    let lines = trace.lines();
    let body = |text: &str| text.split_once("): ").and_then(|(_, rest)| rest.split_once(' ')).map(|(_, call)| call.to_owned());
    lines.iter().filter_map(|line| body(&line.text)).map(|call| call.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn assert_has(calls: &[String], wanted: &str) {
    assert!(calls.iter().any(|call| call.contains(wanted)), "{wanted}\n{}", calls.join("\n"));
}

#[test]
fn a_length_a_status_a_signal_and_read_only_are_shown() {
    let Some(machine) = Machine::shared() else { return };
    let script = format!("truncate -s 0 {0}; head -c 1 {0}; kill -0 $$; exit 0", machine.path("empty"));
    let calls = calls(&machine, &["-e", "openat,ftruncate,kill,exit_group,read,lseek"], &script);
    assert_has(&calls, "length: 0) = 0");
    assert_has(&calls, "flags: RDONLY");
    assert_has(&calls, ", sig: 0) = 0");
    assert_has(&calls, "exit_group(error_code: 0) = ?");
}

#[test]
fn a_zero_that_is_a_default_is_shown_on_request_alone() {
    let Some(machine) = Machine::shared() else { return };
    for (options, addr, flags) in [(&[][..], false, false), (&["--show-zeros"], true, true)] {
        let options = [&["-e", "mmap,newfstatat,wait4"], options].concat();
        let calls = calls(&machine, &options, "ls / >/dev/null; true");
        assert_eq!(calls.iter().any(|call| call.starts_with("mmap(addr: NULL")), addr, "{}", calls.join("\n"));
        assert_eq!(calls.iter().any(|call| call.contains("options: 0") || call.contains("options: 0x0")), flags, "{}", calls.join("\n"));
    }
}
