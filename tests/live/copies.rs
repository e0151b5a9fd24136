//! Strings and bytes that the kernel itself copies into its `syscalls:` events (from Linux 6.19 on), as the tracepoint
//! engine shows them.

use crate::line;
use crate::machine::Machine;
use crate::needs::Need;
use crate::trace::{Trace, workload};

const TRACEPOINT: [&str; 6] = ["--engine", "tracepoint", "-e", "openat,write", "--strings-by", "events"];

fn scene(machine: &Machine, name: &str, count: u64) -> Trace {
    let trace = workload(machine, &TRACEPOINT, &format!("memory {name} {count} {}", machine.dir().display())).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    trace
}

/// Returns one argument of each failed call of this name.
fn of_failed(trace: &Trace, name: &str, arg: &str) -> Vec<String> {
    let lines = trace.lines();
    let failed = line::calls(&lines).into_iter().filter(|(line, call)| call.name == name && line.text.contains("= -1 "));
    failed.filter_map(|(_, call)| call.arg(arg).map(str::to_owned)).collect()
}

/// Returns the last `count` of them: the failed calls of the loader come before those of the program.
fn last<T>(mut all: Vec<T>, count: usize) -> Vec<T> {
    all.split_off(all.len().saturating_sub(count))
}

#[test]
fn strings_on_untouched_pages_are_shown() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::CopiesInEvents]) {
        return;
    }
    let expected: Vec<String> = (0..64).map(|i| format!("\"/nonexistent/fresh-{i}\"")).collect();
    assert_eq!(last(of_failed(&scene(&machine, "fresh", 64), "openat", "filename"), 64), expected);
}

#[test]
fn strings_that_end_at_the_end_of_a_mapping_are_shown() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::CopiesInEvents]) {
        return;
    }
    let trace = scene(&machine, "edge", 100);
    let expected: Vec<String> = (0..100).map(|i| format!("\"/nonexistent/edge-{i}\"")).collect();
    assert_eq!(last(of_failed(&trace, "openat", "filename"), 100), expected);
    let writes = last(of_failed(&trace, "write", "buf"), 100);
    assert_eq!(writes.len(), 100);
    for (i, text) in writes.iter().enumerate() {
        let path = format!("/nonexistent/edge-{i}");
        let end = &path[path.len().saturating_sub(i % 30 + 1)..];
        assert!(text.ends_with(&format!("{end}\\x00\"")), "{end:?}: {text}");
    }
}

#[test]
fn unreadable_memory_is_shown_as_an_address() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::CopiesInEvents]) {
        return;
    }
    assert_eq!(last(of_failed(&scene(&machine, "nowhere", 10), "openat", "filename"), 10), ["0x10"; 10]);
}
