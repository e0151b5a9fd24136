//! Selects calls by the numbers of their descriptors.

use crate::beauty::row::{ArgumentKind, Syscall};
use crate::event::Call;
use crate::show::descriptors::Descriptors;

/// Returns whether an argument of a call is a descriptor of the set.
pub fn match_call(of: &Descriptors, call: &Call, row: Option<&Syscall>) -> bool {
    let (Some(row), Some(registers)) = (row, &call.args) else { return false };
    let signature = row.signature_of(registers);
    let kinds = signature.args.iter().map(|argument| &argument.kind);
    kinds.zip(registers).any(|(kind, raw)| matches!(kind, ArgumentKind::Fd | ArgumentKind::DirFd) && of.contains(*raw as i32))
}
