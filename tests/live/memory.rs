//! The memory of the caller, as the BPF engine copies it: readable memory is complete, and unreadable memory is shown
//! as an address.

use crate::line;
use crate::machine::Machine;
use crate::trace::{Trace, workload};

/// Only the BPF engine reads memory.
const BPF: [&str; 4] = ["--engine", "bpf", "-e", "openat,write"];

/// Returns the paths of the failed opens, as printed.
fn paths(trace: &Trace) -> Vec<String> {
    let lines = trace.lines();
    let opens = line::calls(&lines).into_iter().filter(|(_, call)| call.name == "openat");
    let paths = opens.filter_map(|(_, call)| call.arg("filename").map(str::to_owned));
    paths.filter(|path| path.contains("nonexistent") || path.starts_with("0x")).collect()
}

fn scene(machine: &Machine, name: &str, count: u64) -> Trace {
    let trace = workload(machine, &BPF, &format!("memory {name} {count} {}", machine.dir().display())).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    trace
}

#[test]
fn strings_on_untouched_pages_are_complete() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let expected: Vec<String> = (0..64).map(|i| format!("\"/nonexistent/fresh-{i}\"")).collect();
    assert_eq!(paths(&scene(&machine, "fresh", 64)), expected);
}

#[test]
fn untouched_arguments_of_an_executed_program_are_shown() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    for events in ["execve", "*"] {
        let options = ["--engine", "bpf", "-e", events];
        let trace = workload(&machine, &options, &format!("memory arguments 3 {}", machine.dir().display())).succeeded();
        let expected = r#"argv: ["/nonexistent/fresh-0", "/nonexistent/fresh-1", "/nonexistent/fresh-2"], "#;
        assert!(trace.text.contains(expected), "{}", trace.text);
        std::fs::remove_file(machine.path("fresh")).expect("the program made it");
    }
}

#[test]
fn strings_that_end_at_the_end_of_a_mapping_are_complete() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = scene(&machine, "edge", 100);
    let expected: Vec<String> = (0..100).map(|i| format!("\"/nonexistent/edge-{i}\"")).collect();
    assert_eq!(paths(&trace), expected);
    let lines = trace.lines();
    let writes: Vec<&str> = lines.iter().map(|line| line.text.as_str()).filter(|text| text.contains("write(fd: -1, ")).collect();
    assert_eq!(writes.len(), 100);
    for (i, text) in writes.into_iter().enumerate() {
        let whole = format!("/nonexistent/edge-{i}\0");
        let count = i % 30 + 2;
        let end = &whole[whole.len().saturating_sub(count)..whole.len() - 1];
        assert!(text.contains(&format!("{end}\\x00\"")), "{count} bytes, {end:?}: {text}");
    }
}

#[test]
fn unreadable_memory_is_shown_as_an_address() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    assert_eq!(paths(&scene(&machine, "nowhere", 10)), ["0x10"; 10]);
}

/// Number 64 is getppid at the 32-bit entry, and semget at the 64-bit entry.
#[cfg(target_arch = "x86_64")]
#[test]
fn calls_by_the_32_bit_entry_have_their_own_names() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    // Events of single syscalls do not show these calls. With rt_sigreturn selected, rtrace traces all calls, because
    // an event of its own would lack the return.
    let trace = workload(&machine, &["--engine", "bpf", "-e", "getppid,semget,rt_sigreturn"], "int80 100").succeeded();
    assert_eq!(trace.conserved().lost, 0);
    assert_eq!((trace.count("getppid"), trace.count("semget")), (100, 0));
}
