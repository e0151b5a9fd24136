//! A signal, and what comes with it.

use super::TaskId;

/// A signal as its task is given it, or would be if it did not end it or were ignored. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signal {
    /// `si_signo`
    pub number: i32,
    /// `si_errno`
    pub errno: Option<i32>,
    /// `si_code`: what the other members mean follows from it and the number.
    pub code: Option<i32>,
    pub members: Members,
    /// Who sent it, if a task did.
    pub sender: Option<TaskId>,
    /// [`Members::pid`] is certainly a number as [`TaskId`] has it. A receiver in another pid namespace is told another
    /// one.
    pub pids_are_known: bool,
    pub fate: Fate,
}

/// What becomes of a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// What the kernel does by default, which does not end the process.
    #[default]
    Default,
    /// It ends the process.
    Kills,
    /// A function of the program handles it.
    Handled,
    Ignored,
}

impl Fate {
    /// By `sa_handler`; whether the default action ends the process depends on the signal.
    pub fn of_handler(handler: u64) -> Fate {
        match handler as usize {
            libc::SIG_DFL => Fate::Default,
            libc::SIG_IGN => Fate::Ignored,
            _ => Fate::Handled,
        }
    }
}

/// The members of siginfo_t (include/uapi/asm-generic/siginfo.h, sigaction(2)) behind the first three. Each kind of
/// signal has some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// The process that sent it or that it is about, as the receiver's pid namespace numbers it; 0 if it has no number
    /// there. A sender of which only the first namespace's number is
    /// known has that, unless the receiver is known to be in another one.
    pub pid: Option<i32>,
    /// The user, as the receiver's user namespace numbers it.
    pub uid: Option<u32>,
    /// A child's exit status, or the signal that changed its state.
    pub status: Option<i32>,
    /// Clock ticks (USER_HZ) that a child had in user mode and in the kernel.
    pub utime: Option<i64>,
    pub stime: Option<i64>,
    /// Where a fault was.
    pub address: Option<u64>,
    /// The timer, and how often it expired since its last signal.
    pub timer: Option<i32>,
    pub overrun: Option<i32>,
    /// What the sender gave with it, as a pointer.
    pub value: Option<u64>,
    /// What happened on which descriptor.
    pub band: Option<i64>,
    pub fd: Option<i32>,
    /// The call that was refused: from where, which, in which ABI (`AUDIT_ARCH_*`).
    pub call_address: Option<u64>,
    pub call: Option<i32>,
    pub arch: Option<u32>,
}

impl Members {
    /// Those that a signal with this code has, from the kernel's own siginfo_t (kernel_siginfo, without its padding;
    /// siginfo_layout() in kernel/signal.c).
    pub fn of(number: i32, code: i32, info: &[u8; 48]) -> Members {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| info[at + i]));
        let half = |at: usize| word(at) as u32;
        let (pid, uid) = (Some(half(16) as i32), Some(half(20)));
        let none = Members::default();
        match (code, number) {
            (libc::SI_USER | libc::SI_TKILL, _) => Members { pid, uid, ..none },
            (libc::SI_TIMER, _) => Members { timer: pid, overrun: Some(half(20) as i32), value: Some(word(24)), ..none },
            (libc::SI_SIGIO, _) | (1..0x80, libc::SIGIO) => Members { band: Some(word(16) as i64), fd: Some(half(24) as i32), ..none },
            (..0, _) => Members { pid, uid, value: Some(word(24)), ..none },
            (1..0x80, libc::SIGCHLD) => {
                let (utime, stime) = (Some(word(32) as i64), Some(word(40) as i64));
                Members { pid, uid, status: Some(half(24) as i32), utime, stime, ..none }
            }
            (1..0x80, libc::SIGILL | libc::SIGTRAP | libc::SIGBUS | libc::SIGFPE | libc::SIGSEGV) => {
                Members { address: Some(word(16)), ..none }
            }
            (1..0x80, libc::SIGSYS) => Members { call_address: Some(word(16)), call: Some(half(24) as i32), arch: Some(half(28)), ..none },
            _ => none,
        }
    }

    /// Nothing is known of them.
    pub fn are_unknown(&self) -> bool {
        *self == Members::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(words: [(usize, u32); 4]) -> [u8; 48] {
        let mut info = [0; 48];
        words.iter().for_each(|(at, word)| info[*at..at + 4].copy_from_slice(&word.to_le_bytes()));
        info
    }

    #[test]
    fn each_code_has_its_members() {
        let bytes = info([(16, 7), (20, 1000), (24, 3), (28, 1)]);
        let value = Some(3 | 1 << 32);
        let ids = Members { pid: Some(7), uid: Some(1000), ..Members::default() };
        assert_eq!(Members::of(libc::SIGTERM, libc::SI_USER, &bytes), ids);
        assert_eq!(Members::of(libc::SIGTERM, libc::SI_TKILL, &bytes), ids);
        assert_eq!(Members::of(34, libc::SI_QUEUE, &bytes), Members { value, ..ids });
        let child = Members { status: Some(3), utime: Some(0), stime: Some(0), ..ids };
        assert_eq!(Members::of(libc::SIGCHLD, libc::CLD_EXITED, &bytes), child);
        let fault = Members::of(libc::SIGSEGV, 1, &bytes);
        assert_eq!(fault, Members { address: Some(7 | 1000 << 32), ..Members::default() });
        let timer = Members { timer: Some(7), overrun: Some(1000), value, ..Members::default() };
        assert_eq!(Members::of(libc::SIGALRM, libc::SI_TIMER, &bytes), timer);
        assert_eq!(Members::of(libc::SIGSYS, 1, &bytes).call, Some(3));
        assert!(Members::of(libc::SIGINT, libc::SI_KERNEL, &bytes).are_unknown());
        assert!(Members::of(libc::SIGTERM, 1, &bytes).are_unknown());
    }
}
