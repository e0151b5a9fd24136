//! A complete row of a CFI table, for the few frames whose [`Rule`](super::rule::Rule) is not enough.

use gimli::{CfaRule, Register, RegisterRule, UnwindTableRow};

/// The rules of one row of a CFI table: that of the CFA, and those of all registers.
#[derive(Clone, Debug)]
pub struct FullRow {
    /// Whether the kernel built the frame to deliver a signal: its caller was interrupted and did not call.
    pub is_signal: bool,
    /// The DWARF number of the return address column.
    pub return_column: u16,
    /// The rule of the CFA (canonical frame address): a register and an offset, or a DWARF expression.
    pub cfa: CfaRule<usize>,
    registers: Box<[(Register, RegisterRule<usize>)]>,
}

impl FullRow {
    /// Returns a copy of a row of a table. `return_column` is the return address register of its CIE.
    pub fn of_row(row: &UnwindTableRow<usize>, return_column: Register, is_signal: bool) -> Self {
        let registers = row.registers().cloned().collect();
        Self { is_signal, return_column: return_column.0, cfa: row.cfa().clone(), registers }
    }

    /// Returns the rule of a register, by its DWARF number. `None` means the default rule of the architecture.
    pub fn register(&self, number: u16) -> Option<&RegisterRule<usize>> {
        self.registers.iter().find(|(register, _)| register.0 == number).map(|(_, rule)| rule)
    }
}
