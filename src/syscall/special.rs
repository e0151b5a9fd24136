//! The effects of a call on the tracked state (`does=` of its row).
//!
//! Entries and exits are paired with this for every call, whether rtrace decodes its arguments or not.

pub use crate::beauty::row::Special;
use crate::beauty::tables::SYSCALLS;
use crate::event::Abi;

impl Special {
    /// Returns the argument that holds the path of the program to execute.
    pub fn path_argument(self) -> Option<u8> {
        match self {
            Special::Execve => Some(0),
            Special::Execveat => Some(1),
            _ => None,
        }
    }

    /// Returns whether the caller's stack belongs to the call only at its entry, because the call does not return, or
    /// returns to another place or program.
    pub fn has_stack_at_entry(self) -> bool {
        use Special::{Execve, Execveat, Exit, ExitGroup, SigReturn};
        matches!(self, Exit | ExitGroup | Execve | Execveat | SigReturn)
    }

    /// Returns the number in an ABI (x32's without bit 30) of the first syscall with this effect.
    pub fn number(self, abi: Abi) -> Option<u32> {
        SYSCALLS.iter().find(|row| row.does == self).and_then(|row| row.numbers[abi as usize])
    }
}
