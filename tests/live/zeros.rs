//! Arguments of value zero are shown where zero has a meaning, and left out where nearly every caller passes zero.

use crate::machine::Machine;
use crate::trace::trace;

/// Returns the calls of a command, without time stamps, tasks and the blanks before the return.
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
fn zero_lengths_statuses_signals_and_flags_are_shown() {
    let Some(machine) = Machine::shared() else { return };
    let script = format!("truncate -s 0 {0}; head -c 1 {0}; kill -0 $$; exit 0", machine.path("empty"));
    let calls = calls(&machine, &["-e", "openat,ftruncate,kill,exit_group,read,lseek"], &script);
    assert_has(&calls, "length: 0) = 0");
    assert_has(&calls, "flags: RDONLY");
    assert_has(&calls, ", sig: 0) = 0");
    assert_has(&calls, "exit_group(error_code: 0) = ?");
}

#[test]
fn a_default_zero_is_shown_only_on_request() {
    let Some(machine) = Machine::shared() else { return };
    for (options, addr, flags) in [(&[][..], false, false), (&["--show-zeros"], true, true)] {
        let options = [&["-e", "mmap,newfstatat,wait4"], options].concat();
        let calls = calls(&machine, &options, "ls / >/dev/null; true");
        assert_eq!(calls.iter().any(|call| call.starts_with("mmap(addr: NULL")), addr, "{}", calls.join("\n"));
        assert_eq!(calls.iter().any(|call| call.contains("options: 0") || call.contains("options: 0x0")), flags, "{}", calls.join("\n"));
    }
}
