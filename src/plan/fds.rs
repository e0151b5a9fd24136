//! Which calls must be armed so that descriptors can be followed.

use crate::beauty::row::Syscall;
use crate::beauty::tables::SYSCALLS;
use crate::syscall::behavior::may_change_descriptors;

/// The calls that may change a descriptor table.
pub fn changers() -> impl Iterator<Item = &'static Syscall> {
    SYSCALLS.iter().filter(|s| may_change_descriptors(s))
}

/// Whether all of them are armed.
pub fn complete(armed: &[&'static Syscall], everything: bool) -> bool {
    everything || (!armed.is_empty() && changers().all(|c| armed.iter().any(|a| a.name == c.name)))
}
