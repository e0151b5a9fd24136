//! All that one row of a CFI table says, for the few frames whose [`Rule`](super::rule::Rule) is not enough.

use gimli::{CfaRule, Register, RegisterRule, UnwindTableRow};

#[derive(Clone, Debug)]
pub struct FullRow {
    /// The frame is one that the kernel made: its caller was interrupted, and did not call.
    pub is_signal: bool,
    pub return_column: u16,
    pub cfa: CfaRule<usize>,
    registers: Box<[(Register, RegisterRule<usize>)]>,
}

impl FullRow {
    pub fn of_row(row: &UnwindTableRow<usize>, return_column: Register, is_signal: bool) -> Self {
        let registers = row.registers().cloned().collect();
        Self { is_signal, return_column: return_column.0, cfa: row.cfa().clone(), registers }
    }

    /// `None` is the default rule of the architecture.
    pub fn register(&self, number: u16) -> Option<&RegisterRule<usize>> {
        self.registers.iter().find(|(register, _)| register.0 == number).map(|(_, rule)| rule)
    }
}
