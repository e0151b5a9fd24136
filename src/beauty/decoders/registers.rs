//! Decodes the registers of a traced task. The number of bytes tells of which ABI they are.

use super::super::memory::{Memory, MemoryReader};
use super::super::row::Struct;
use super::super::tables::structs;
use super::super::value::Value;
use crate::event::Abi;

/// Decodes the general registers that ptrace(2) reads and writes (`PTRACE_GETREGS`, `NT_PRSTATUS`).
pub fn user_regs<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let all = [&structs::USER_REGS_X86_64, &structs::USER_REGS_I386, &structs::USER_REGS_AARCH64];
    let native = match reader.abi() {
        Abi::X86_64 | Abi::X32 => &structs::USER_REGS_X86_64,
        Abi::I386 => &structs::USER_REGS_I386,
        Abi::Aarch64 => &structs::USER_REGS_AARCH64,
    };
    of_size(reader, memory, &all, native)
}

/// Decodes the registers for floating-point numbers (`PTRACE_GETFPREGS`, `NT_PRFPREG`).
pub fn user_fpregs<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let all = [&structs::USER_FPREGS_FXSAVE, &structs::USER_FPREGS_FSAVE, &structs::USER_FPREGS_SIMD];
    let native = match reader.abi() {
        Abi::X86_64 | Abi::X32 => &structs::USER_FPREGS_FXSAVE,
        Abi::I386 => &structs::USER_FPREGS_FSAVE,
        Abi::Aarch64 => &structs::USER_FPREGS_SIMD,
    };
    of_size(reader, memory, &all, native)
}

/// Decodes the struct that has as many bytes as the call specifies, or as far as it goes, the one of the caller's ABI.
fn of_size<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>, all: &[&'static Struct], native: &'static Struct) -> Value<'a> {
    let size = |of: &Struct| u64::from(of.sizes[reader.abi() as usize]);
    let of = all.iter().find(|of| size(of) == memory.wanted).copied().unwrap_or(native);
    reader.structure(of, memory)
}
