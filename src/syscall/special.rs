//! What follows from what a call does to the state that is followed (`does=` of its row).
//!
//! Entries and exits are paired by this for every call, decoded or not.

pub use crate::beauty::row::Special;
use crate::beauty::tables::SYSCALLS;
use crate::event::Abi;

impl Special {
    /// The argument that holds the path of the program to be executed.
    pub fn path_argument(self) -> Option<u8> {
        match self {
            Special::Execve => Some(0),
            Special::Execveat => Some(1),
            _ => None,
        }
    }

    /// The caller's stack is that of the call only where it begins: it does not return, or returns to another place or program.
    pub fn has_stack_at_entry(self) -> bool {
        use Special::{Execve, Execveat, Exit, ExitGroup, SigReturn};
        matches!(self, Exit | ExitGroup | Execve | Execveat | SigReturn)
    }

    /// The number that the first call that does this has in an ABI (x32's without bit 30).
    pub fn number(self, abi: Abi) -> Option<u32> {
        SYSCALLS.iter().find(|row| row.does == self).and_then(|row| row.numbers[abi as usize])
    }
}
