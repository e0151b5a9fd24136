//! The ABI of a program's system calls, by the auxiliary vector of a process.

use super::machine::NATIVE_ABI;
use crate::event::{Abi, TaskId};
use std::io;

/// The kind of program that a process executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A program for this ABI.
    Elf(Abi),
    /// A program for a machine that rtrace does not support (32-bit ARM).
    OtherMachine,
    /// A kernel thread.
    Unknown,
}

impl Program {
    /// Whether its system calls have other numbers than the machine's native ABI.
    pub fn is_compat(self) -> bool {
        matches!(self, Program::Elf(Abi::I386 | Abi::X32))
    }
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
        return Program::OtherMachine;
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(!Program::Elf(NATIVE_ABI).is_compat() && Program::Elf(Abi::I386).is_compat());
    }
}
