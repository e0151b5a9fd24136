//! The calls from which nothing follows for what is shown later: those that neither create tasks nor descriptors, nor
//! change the state of a task that rtrace follows.

use crate::beauty::row::{Return, Syscall};
use crate::beauty::tables::SYSCALLS;
use crate::event::Abi;
use crate::syscall::special::Special;
use std::sync::LazyLock;

/// By ABI and number: whether nothing follows from the call.
static STATELESS: LazyLock<[Vec<bool>; 4]> = LazyLock::new(|| {
    let mut all: [Vec<bool>; 4] = Default::default();
    for row in SYSCALLS.iter().filter(|row| has_no_effect(row)) {
        for (numbers, number) in all.iter_mut().zip(row.numbers) {
            let Some(at) = number.map(|number| number as usize) else { continue };
            if numbers.len() <= at {
                numbers.resize(at + 1, false);
            }
            numbers[at] = true;
        }
    }
    all
});

/// Returns whether nothing follows from a call with this number (x32's without bit 30). Numbers without a row may do
/// anything.
#[inline]
pub fn is_stateless(abi: Abi, nr: i32) -> bool {
    usize::try_from(nr).ok().and_then(|nr| STATELESS[abi as usize].get(nr)).is_some_and(|is| *is)
}

fn has_no_effect(row: &Syscall) -> bool {
    row.does == Special::Plain && row.signatures().all(|signature| !matches!(signature.returns, Return::Fd | Return::Pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_only_move_data_or_wait_are_stateless() {
        let of = |name: &str| {
            let row = SYSCALLS.iter().find(|row| row.name == name).unwrap();
            is_stateless(Abi::X86_64, row.numbers[0].unwrap() as i32)
        };
        let without = ["read", "write", "pread64", "lseek", "poll", "epoll_wait", "futex", "nanosleep", "newfstatat", "mprotect", "brk"];
        assert_eq!(without.iter().copied().filter(|name| !of(name)).collect::<Vec<_>>(), [""; 0]);
        let with = [
            "openat",
            "close",
            "dup2",
            "fcntl",
            "socket",
            "accept4",
            "clone",
            "fork",
            "vfork",
            "execve",
            "exit",
            "exit_group",
            "unshare",
            "setns",
            "getpid",
            "wait4",
            "memfd_create",
            "prctl",
            "rt_sigreturn",
            "epoll_create1",
            "io_uring_setup",
        ];
        assert_eq!(with.iter().copied().filter(|name| of(name)).collect::<Vec<_>>(), [""; 0]);
        assert!(!is_stateless(Abi::X86_64, -1) && !is_stateless(Abi::I386, i32::MAX));
    }
}
