//! Names of registers, and the frame that a function's variables are counted from.

use crate::probe::value::Base;
use crate::stack::symbols::elf::Machine;
use gimli::{CfaRule, Register};

/// A register's name in fetch arguments, by its DWARF number; `None` for those that the kernel does not keep (`regs_query_register_offset` in arch/*/kernel/ptrace.c).
pub fn register(machine: Machine, number: Register) -> Option<String> {
    const X86_64: [&str; 8] = ["ax", "dx", "cx", "bx", "si", "di", "bp", "sp"];
    const I386: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
    let number = number.0;
    match (machine, number) {
        (Machine::X86_64, 0..8) => Some(X86_64[usize::from(number)].to_owned()),
        (Machine::X86_64, 8..16) => Some(format!("r{number}")),
        (Machine::I386, 0..8) => Some(I386[usize::from(number)].to_owned()),
        (Machine::Aarch64, 0..31) => Some(format!("x{number}")),
        (Machine::Aarch64, 31) => Some("sp".to_owned()),
        _ => None,
    }
}

/// Where the frame is: the caller's stack pointer after the return (the canonical frame address).
#[derive(Clone, Debug)]
pub struct Frame {
    pub base: Base,
    pub offset: i64,
}

impl Frame {
    /// By the unwind table's rule; `None` where that is an expression, or there is none.
    pub fn of_rule(rule: &CfaRule<usize>, machine: Machine) -> Option<Frame> {
        let CfaRule::RegisterAndOffset { register: number, offset } = rule else { return None };
        Some(Frame { base: Base::register(&register(machine, *number)?), offset: *offset })
    }
}
