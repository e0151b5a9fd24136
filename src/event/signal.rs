//! Signals and their siginfo_t.

use super::{Stack, TaskId};
use std::sync::Arc;

/// A signal that is delivered to a task, is ignored, or kills the task. Members of siginfo_t that are not known are
/// `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signal {
    /// `si_signo`
    pub number: i32,
    /// `si_errno`
    pub errno: Option<i32>,
    /// `si_code`: together with the number it determines which other members siginfo_t has.
    pub code: Option<i32>,
    /// The members of siginfo_t that depend on the number and the code.
    pub info: SigInfo,
    /// The sending task, if a task sent the signal.
    pub sender: Option<TaskId>,
    /// [`SigInfo::pid`] is certainly a number as [`TaskId`] has it. A receiver in another pid namespace gets another
    /// number.
    pub pids_are_known: bool,
    /// What the signal does to the task.
    pub disposition: Disposition,
    /// Where the task was when the signal was delivered to it, if call chains are recorded.
    pub stack: Option<Arc<Stack>>,
}

/// What a signal does to its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disposition {
    /// The kernel's default action, which does not kill the process.
    #[default]
    Default,
    /// The signal kills the process.
    Kills,
    /// A function of the program handles it.
    Handled,
    /// The signal has no effect.
    Ignored,
}

impl Disposition {
    /// Returns the disposition for `sa_handler`. Whether the default action kills the process depends on the signal.
    pub fn of_handler(handler: u64) -> Disposition {
        match handler as usize {
            libc::SIG_DFL => Disposition::Default,
            libc::SIG_IGN => Disposition::Ignored,
            _ => Disposition::Handled,
        }
    }
}

/// The members of siginfo_t (include/uapi/asm-generic/siginfo.h, sigaction(2)) after the first three. Each kind of
/// signal has some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SigInfo {
    /// The process that sent the signal or that it is about, numbered by the receiver's pid namespace; 0 if it has no
    /// number there. If only the sender's number in the initial pid namespace is known, this is that number, unless the
    /// receiver is known to be in another namespace.
    pub pid: Option<i32>,
    /// The user, numbered by the receiver's user namespace.
    pub uid: Option<u32>,
    /// A child's exit status, or the signal that changed its state.
    pub status: Option<i32>,
    /// CPU time of a child in user mode, in clock ticks (USER_HZ).
    pub utime: Option<i64>,
    /// CPU time of a child in the kernel, in clock ticks (USER_HZ).
    pub stime: Option<i64>,
    /// The address of a fault.
    pub address: Option<u64>,
    /// The ID of the POSIX timer.
    pub timer: Option<i32>,
    /// How often the timer expired since its signal was sent (timer_getoverrun(2)).
    pub overrun: Option<i32>,
    /// `si_value`, the value that the sender passed, as a pointer.
    pub value: Option<u64>,
    /// The poll events (`POLL*`).
    pub band: Option<i64>,
    /// The descriptor that the poll events happened on.
    pub fd: Option<i32>,
    /// The address after the call that a seccomp filter refused.
    pub call_address: Option<u64>,
    /// The number of that call.
    pub call: Option<i32>,
    /// The ABI of that call (`AUDIT_ARCH_*`).
    pub arch: Option<u32>,
}

impl SigInfo {
    /// Decodes the members that a signal with this code has from the kernel's own siginfo_t (kernel_siginfo, without
    /// its padding; siginfo_layout() in kernel/signal.c).
    pub fn decode(number: i32, code: i32, info: &[u8; 48]) -> SigInfo {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| info[at + i]));
        let half = |at: usize| word(at) as u32;
        let (pid, uid) = (Some(half(16) as i32), Some(half(20)));
        let none = SigInfo::default();
        match (code, number) {
            (libc::SI_USER | libc::SI_TKILL, _) => SigInfo { pid, uid, ..none },
            (libc::SI_TIMER, _) => SigInfo { timer: pid, overrun: Some(half(20) as i32), value: Some(word(24)), ..none },
            (libc::SI_SIGIO, _) | (1..0x80, libc::SIGIO) => SigInfo { band: Some(word(16) as i64), fd: Some(half(24) as i32), ..none },
            (..0, _) => SigInfo { pid, uid, value: Some(word(24)), ..none },
            (1..0x80, libc::SIGCHLD) => {
                let (utime, stime) = (Some(word(32) as i64), Some(word(40) as i64));
                SigInfo { pid, uid, status: Some(half(24) as i32), utime, stime, ..none }
            }
            (1..0x80, libc::SIGILL | libc::SIGTRAP | libc::SIGBUS | libc::SIGFPE | libc::SIGSEGV) => {
                SigInfo { address: Some(word(16)), ..none }
            }
            (1..0x80, libc::SIGSYS) => SigInfo { call_address: Some(word(16)), call: Some(half(24) as i32), arch: Some(half(28)), ..none },
            _ => none,
        }
    }

    /// Returns whether no member is known.
    pub fn is_empty(&self) -> bool {
        *self == SigInfo::default()
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
        let ids = SigInfo { pid: Some(7), uid: Some(1000), ..SigInfo::default() };
        assert_eq!(SigInfo::decode(libc::SIGTERM, libc::SI_USER, &bytes), ids);
        assert_eq!(SigInfo::decode(libc::SIGTERM, libc::SI_TKILL, &bytes), ids);
        assert_eq!(SigInfo::decode(34, libc::SI_QUEUE, &bytes), SigInfo { value, ..ids });
        let child = SigInfo { status: Some(3), utime: Some(0), stime: Some(0), ..ids };
        assert_eq!(SigInfo::decode(libc::SIGCHLD, libc::CLD_EXITED, &bytes), child);
        let fault = SigInfo::decode(libc::SIGSEGV, 1, &bytes);
        assert_eq!(fault, SigInfo { address: Some(7 | 1000 << 32), ..SigInfo::default() });
        let timer = SigInfo { timer: Some(7), overrun: Some(1000), value, ..SigInfo::default() };
        assert_eq!(SigInfo::decode(libc::SIGALRM, libc::SI_TIMER, &bytes), timer);
        assert_eq!(SigInfo::decode(libc::SIGSYS, 1, &bytes).call, Some(3));
        assert!(SigInfo::decode(libc::SIGINT, libc::SI_KERNEL, &bytes).is_empty());
        assert!(SigInfo::decode(libc::SIGTERM, 1, &bytes).is_empty());
    }
}
