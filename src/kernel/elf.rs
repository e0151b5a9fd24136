//! The ABI of a program's system calls, by the first bytes of an ELF file, or by the auxiliary vector of a process.

use super::machine::NATIVE_ABI;
use crate::event::{Abi, TaskId};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The kind of a program file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// An ELF file for this ABI.
    Elf(Abi),
    /// An ELF file for a machine that rtrace does not support.
    OtherMachine { machine: u16 },
    /// A script, whose ABI is that of its interpreter.
    Script,
    /// Another file, or a kernel thread.
    Unknown,
}

impl Program {
    /// Whether its system calls have other numbers than the machine's native ABI.
    pub fn is_compat(self) -> bool {
        matches!(self, Program::Elf(Abi::I386 | Abi::X32))
    }
}

/// Reads the kind of a program file.
///
/// # Errors
/// Fails if the file cannot be opened or read.
pub fn program(path: &Path) -> io::Result<Program> {
    let mut header = [0u8; 20];
    let mut file = File::open(path)?;
    let mut filled = 0;
    while filled < header.len() {
        match file.read(&mut header[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(classify(&header[..filled]))
}

/// Reads the kind of the program that a process executes, by its auxiliary vector (man 3 getauxval). Its file is not
/// opened, because rtrace would be blocked if the server of its file system did not answer.
///
/// # Errors
/// Fails if there is no such process, or it may not be inspected.
pub fn program_of(pid: i32) -> io::Result<Program> {
    program_of_thread(TaskId { pid, tid: pid })
}

/// Determines the ABI by the width of the vector's words, and by the entries that only one ABI has (`ARCH_DLINFO_IA32`
/// and `ARCH_DLINFO_X32` in arch/x86/include/asm/elf.h). Kernel threads have no vector.
fn classify_running(auxv: &[u8]) -> Program {
    const SYSINFO: u32 = 32;
    const SYSINFO_EHDR: u32 = 33;
    const TYPES_MAX: u64 = 1 << 16;
    if auxv.is_empty() {
        return Program::Unknown;
    }
    let wide = |entry: &[u8; 16]| u64::from_ne_bytes(std::array::from_fn(|at| entry[at])) < TYPES_MAX;
    let (entries, rest) = auxv.as_chunks();
    if rest.is_empty() && entries.iter().all(wide) {
        return Program::Elf(NATIVE_ABI);
    }
    if NATIVE_ABI != Abi::X86_64 {
        const ARM: u16 = 40;
        return Program::OtherMachine { machine: ARM };
    }
    let types = |wanted: u32| auxv.as_chunks().0.iter().any(|[a, b, c, d, ..]: &[u8; 8]| u32::from_ne_bytes([*a, *b, *c, *d]) == wanted);
    Program::Elf(if types(SYSINFO_EHDR) && !types(SYSINFO) { Abi::X32 } else { Abi::I386 })
}

/// Reads the kind of the program that a thread executes. The vector of a first thread that ended before the others is
/// empty.
///
/// # Errors
/// Fails as [`program_of`].
pub fn program_of_thread(task: TaskId) -> io::Result<Program> {
    std::fs::read(format!("/proc/{}/task/{}/auxv", task.pid, task.tid)).map(|auxv| classify_running(&auxv))
}

/// Determines the kind by the identification bytes and `e_machine` (man 5 elf).
fn classify(header: &[u8]) -> Program {
    if header.starts_with(b"#!") {
        return Program::Script;
    }
    let [0x7f, b'E', b'L', b'F', class, data, ..] = *header else { return Program::Unknown };
    let Some(&[low, high]) = header.get(18..20) else { return Program::Unknown };
    let machine = if data == 2 { u16::from_be_bytes([low, high]) } else { u16::from_le_bytes([low, high]) };
    const CLASS_32: u8 = 1;
    const CLASS_64: u8 = 2;
    match (machine, class) {
        (3, CLASS_32) => Program::Elf(Abi::I386),
        (62, CLASS_32) => Program::Elf(Abi::X32),
        (62, CLASS_64) => Program::Elf(Abi::X86_64),
        (183, CLASS_64) => Program::Elf(Abi::Aarch64),
        _ => Program::OtherMachine { machine },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(class: u8, machine: u16) -> Vec<u8> {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', class, 1, 1, 0];
        bytes.resize(18, 0);
        bytes.extend(machine.to_le_bytes());
        bytes
    }

    #[test]
    fn class_and_machine_determine_the_abi() {
        assert_eq!(classify(&header(2, 62)), Program::Elf(Abi::X86_64));
        assert_eq!(classify(&header(1, 62)), Program::Elf(Abi::X32));
        assert_eq!(classify(&header(1, 3)), Program::Elf(Abi::I386));
        assert_eq!(classify(&header(2, 183)), Program::Elf(Abi::Aarch64));
        assert_eq!(classify(&header(2, 243)), Program::OtherMachine { machine: 243 });
        assert_eq!(classify(b"#!/bin/sh"), Program::Script);
        assert!(Program::Elf(Abi::I386).is_compat() && !Program::Elf(Abi::X86_64).is_compat());
    }

    #[test]
    fn truncated_and_other_files_are_unknown() {
        let whole = header(2, 62);
        for length in 0..whole.len() {
            assert_eq!(classify(&whole[..length]), Program::Unknown);
        }
        assert_eq!(classify(&[0; 20]), Program::Unknown);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn auxiliary_vectors_determine_the_abi() {
        let narrow = |entries: &[[u32; 2]]| entries.iter().flatten().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let page_size = [6, 4096];
        assert_eq!(classify_running(&narrow(&[[32, 0xf7fb_3570], [33, 0xf7fb_3000], page_size, [0, 0]])), Program::Elf(Abi::I386));
        assert_eq!(classify_running(&narrow(&[page_size, [0, 0]])), Program::Elf(Abi::I386), "without a vDSO");
        assert_eq!(classify_running(&narrow(&[[33, 0xf7fb_3000], page_size, [0, 0]])), Program::Elf(Abi::X32));
        assert_eq!(classify_running(&[]), Program::Unknown, "a kernel thread");
        assert!((0..64).all(|length| classify_running(&vec![0xff; length]) != Program::Elf(Abi::X86_64)));
    }

    #[test]
    fn this_test_program_has_the_native_abi() {
        assert_eq!(program_of(std::process::id() as i32).unwrap(), Program::Elf(NATIVE_ABI));
        assert!(program(Path::new("/nonexistent")).is_err());
    }
}
