//! 32-bit programs: their calls have different numbers, and the kernel's events of single syscalls do not show them.

use crate::machine::Machine;
use crate::needs::{Need, unsupported};
use crate::trace::trace;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const LOADED_AT: u32 = 0x0804_8000;
const HEADERS: u32 = 52 + 32;

/// Returns the i386 code of a call: the number goes to eax, the arguments go to ebx, ecx, edx, esi, edi and ebp.
fn call(number: u32, args: [u32; 6]) -> Vec<u8> {
    const MOVES: [u8; 7] = [0xb8, 0xbb, 0xb9, 0xba, 0xbe, 0xbf, 0xbd];
    let words = std::iter::once(number).chain(args);
    let moves = MOVES.into_iter().zip(words).flat_map(|(opcode, word)| std::iter::once(opcode).chain(word.to_le_bytes()));
    moves.chain([0xcd, 0x80]).collect()
}

/// Returns a program that calls getsid(0).
pub fn getsid(machine: &Machine) -> Option<String> {
    program(machine, &call(147, [0; 6]))
}

/// Writes a static i386 program that runs this code and then calls exit(0).
fn program(machine: &Machine, code: &[u8]) -> Option<String> {
    program_with(machine, code, b"")
}

/// Writes such a program with data behind its code.
fn program_with(machine: &Machine, code: &[u8], data: &[u8]) -> Option<String> {
    let code = [code, &call(1, [0; 6]), data].concat();
    let size = HEADERS + code.len() as u32;
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0".to_vec();
    // These are the version, the entry point, the offsets of program headers and section headers, and the flags.
    [1, LOADED_AT + HEADERS, 52, 0, 0].iter().for_each(|word: &u32| file.extend(word.to_le_bytes()));
    // These are sizes and counts: those of this header, of one program header of 32 bytes, and of no section.
    [52, 32, 1, 0, 0, 0].iter().for_each(|half: &u16| file.extend(half.to_le_bytes()));
    // The program header is a PT_LOAD of the whole file, readable and executable.
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
fn calls_of_32_bit_programs_are_seen_where_all_calls_are_traced() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let Some(program) = getsid(&machine) else { return };
    let trace = trace(&machine, &["--engine", "bpf"], &["sh", "-c", &format!("{program}; {program}; {program}")]).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    assert_eq!(trace.count("getsid"), 3, "{}", trace.text);
}

/// rtrace reports that calls of the first 32-bit program are missing, and traces those of the second one.
#[test]
fn calls_of_32_bit_programs_are_traced_from_their_first_exec() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    if machine.lacks(&[Need::CountedProgramsOnSingleSyscalls]) {
        return;
    }
    let Some(program) = getsid(&machine) else { return };
    let script = format!("{program}; sleep 4; {program}; {program}; true");
    let trace = trace(&machine, &["--engine", "bpf", "-e", "getsid,execve"], &["sh", "-c", &script]).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    assert_eq!(trace.count("getsid"), 2, "{}", trace.text);
    assert_eq!(trace.count("execve"), 5, "from one ABI to the other, each once:\n{}", trace.text);
    assert!(trace.stderr.contains("1 32-bit programs lack their first calls"), "{}", trace.stderr);
}

/// An exec changes the meaning of the numbers, from 64 bits to 32 and back.
#[test]
fn calls_have_the_names_of_their_programs_abi() {
    let Some(machine) = Machine::shared() else { return };
    let seek = call(19, [u32::MAX, 0, 0, 0, 0, 0]);
    let execute = |path_at: u32| call(11, [path_at, 0, 0, 0, 0, 0]);
    let path_at = LOADED_AT + HEADERS + (seek.len() + execute(0).len() + call(1, [0; 6]).len()) as u32;
    let Some(program) = program_with(&machine, &[seek, execute(path_at)].concat(), b"/bin/true\0") else { return };
    let trace = trace(&machine, &[], &["sh", "-c", &format!("{program}; exec {program}")]).succeeded();
    assert_eq!(trace.conserved().lost, 0);
    let count = |what: &str| trace.text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(
        (count(" lseek(fd: -1, offset: 0, whence: SET)"), count(" execve("), count(" exit_group(error_code: 0)")),
        (2, 5, 2),
        "{}",
        trace.text
    );
    assert_eq!(trace.text.lines().filter(|line| line.contains(" execve(") && line.ends_with(" = 0")).count(), 5, "{}", trace.text);
    for foreign in ["readv(", "munmap(?)", "membarrier("] {
        assert_eq!(count(foreign), 0, "{foreign}\n{}", trace.text);
    }
}

/// In the 32-bit ABI, the offset of lseek has 32 bits, and each of the two offsets of fallocate takes two registers.
#[test]
fn filters_compare_what_the_lines_of_32_bit_programs_show() {
    let Some(machine) = Machine::shared() else { return };
    let seek = call(19, [u32::MAX, u32::MAX, 0, 0, 0, 0]);
    let allocate = call(324, [u32::MAX, 0, 0x1000, 0, 0x2000, 1]);
    let Some(program) = program(&machine, &[seek, allocate].concat()) else { return };
    for (filter, line) in [
        ("offset == -1", "lseek(fd: -1, offset: -1, whence: SET)"),
        ("offset < 0", "lseek(fd: -1, offset: -1, whence: SET)"),
        ("len == 0x100002000", "fallocate(fd: -1, offset: 4096, len: 4294975488)"),
        ("offset == 4096", "fallocate(fd: -1, offset: 4096, len: 4294975488)"),
    ] {
        let trace = trace(&machine, &["--filter", filter], &[&program]).succeeded();
        let lines: Vec<&str> = trace.text.lines().filter(|line| line.contains(" = ")).collect();
        assert!(matches!(lines[..], [one] if one.contains(line) && one.contains("EBADF")), "{filter}: {}{}", trace.text, trace.stderr);
        assert_eq!(trace.conserved().lost, 0);
    }
}
