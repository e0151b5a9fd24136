//! 32-bit programs: their calls have numbers of their own, and the kernel's events of single syscalls do not show them.

use crate::machine::Machine;
use crate::needs::{Need, unsupported};
use crate::trace::trace;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A static i386 program: getsid(0), exit(0).
fn program(machine: &Machine) -> Option<String> {
    const LOADED_AT: u32 = 0x0804_8000;
    const HEADERS: u32 = 52 + 32;
    let code = [0xb8, 147, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80, 0xb8, 1, 0, 0, 0, 0xcd, 0x80];
    let size = HEADERS + code.len() as u32;
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0".to_vec();
    // Version, entry, program headers, section headers, flags.
    [1, LOADED_AT + HEADERS, 52, 0, 0].iter().for_each(|word: &u32| file.extend(word.to_le_bytes()));
    // Sizes and counts: the header's, one program header of 32 bytes, no section.
    [52, 32, 1, 0, 0, 0].iter().for_each(|half: &u16| file.extend(half.to_le_bytes()));
    // PT_LOAD from 0 to there, readable and executable.
    [1, 0, LOADED_AT, LOADED_AT, size, size, 5, 0x1000].iter().for_each(|word: &u32| file.extend(word.to_le_bytes()));
    file.extend(code);
    let path = machine.path("thirty-two");
    std::fs::write(&path, file).expect("the test's directory is writable");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("the file is ours");
    if Command::new(&path).status().is_ok_and(|status| status.success()) {
        return Some(path);
    }
    unsupported("no 32-bit programs");
    None
}

#[test]
fn all_calls_are_seen_where_all_are_looked_at() {
    let Some(machine) = Machine::shared() else { return };
    let Some(program) = program(&machine) else { return };
    let trace = trace(&machine, &["--engine", "bpf"], &["sh", "-c", &format!("{program}; {program}; {program}")]).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    assert_eq!(trace.count("getsid"), 3, "{}", trace.text);
}

/// Of the first one it is said that its calls are missing; by the time of the second they are looked at.
#[test]
fn beside_events_of_single_syscalls_they_are_looked_at_as_soon_as_there_is_one() {
    let Some(machine) = Machine::shared() else { return };
    if machine.lacks(&[Need::CountedProgramsOnSingleSyscalls]) {
        return;
    }
    let Some(program) = program(&machine) else { return };
    let script = format!("{program}; sleep 4; {program}; {program}; true");
    let trace = trace(&machine, &["--engine", "bpf", "-e", "getsid,execve"], &["sh", "-c", &script]).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    assert_eq!(trace.count("getsid"), 2, "{}", trace.text);
    assert_eq!(trace.count("execve"), 5, "from one ABI to the other, each once:\n{}", trace.text);
    assert!(trace.stderr.contains("1 32-bit programs were begun whose first calls are missing"), "{}", trace.stderr);
}
