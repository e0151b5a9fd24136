//! Seccomp filters that ask another process what a call returns (seccomp(2), seccomp_unotify(2)).
//!
//! The filter is installed once, by a task for itself, and all tasks that it creates inherit it. Nobody can remove it.
//! The kernel asks before the tracepoint of the call's entry, so a call that is answered here has no entry record.

use crate::event::Abi;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// __X32_SYSCALL_BIT (arch/x86/include/uapi/asm/unistd.h).
const X32_BIT: u32 = 1 << 30;
/// The offsets of `nr` and `arch` in struct seccomp_data.
const NR_AT: u32 = 0;
const ARCH_AT: u32 = 4;
/// AUDIT_ARCH_* (include/uapi/linux/audit.h) and the ABIs that each stands for.
const ARCHES: [(u32, &[Abi]); 3] = [(0xc000_003e, &[Abi::X86_64, Abi::X32]), (0x4000_0003, &[Abi::I386]), (0xc000_00b7, &[Abi::Aarch64])];
/// SECCOMP_IOCTL_NOTIF_* (include/uapi/linux/seccomp.h).
const RECEIVE: libc::Ioctl = request(3, size_of::<libc::seccomp_notif>(), 0);
const SEND: libc::Ioctl = request(3, size_of::<libc::seccomp_notif_resp>(), 1);
const IS_VALID: libc::Ioctl = request(1, size_of::<u64>(), 2);

/// Returns the number of an ioctl of seccomp: the direction, the size of its argument in bytes, and its own number
/// (include/uapi/asm-generic/ioctl.h).
const fn request(direction: u64, bytes: usize, number: u64) -> libc::Ioctl {
    (direction << 30 | (bytes as u64) << 16 | (b'!' as u64) << 8 | number) as libc::Ioctl
}

/// A filter: the kernel asks the supervisor about some calls and lets all others pass.
#[derive(Debug)]
pub struct Filter(Vec<libc::sock_filter>);

impl Filter {
    /// Returns the filter that asks about these calls: ABI and number, in any order.
    pub fn new(calls: impl IntoIterator<Item = (Abi, u32)>) -> Filter {
        let calls: Vec<(Abi, u32)> = calls.into_iter().collect();
        let mut code = vec![load(ARCH_AT)];
        for (arch, abis) in ARCHES {
            let of_arch = calls.iter().filter(|(abi, _)| abis.contains(abi));
            let ranges = ranges(of_arch.map(|(abi, nr)| if *abi == Abi::X32 { nr | X32_BIT } else { *nr }).collect());
            if ranges.is_empty() {
                continue;
            }
            // The jump over a section may be longer than a conditional jump reaches.
            let length = 2 + 3 * ranges.len() as u32;
            code.extend([jump(libc::BPF_JEQ, arch, 1, 0), statement(libc::BPF_JMP | libc::BPF_JA, length), load(NR_AT)]);
            for range in ranges {
                code.push(jump(libc::BPF_JGE, *range.start(), 0, 2));
                code.push(jump(libc::BPF_JGT, *range.end(), 1, 0));
                code.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF));
            }
            code.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
        }
        code.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
        Filter(code)
    }

    /// Installs the filter for the calling thread, and returns the descriptor by which a supervisor is asked, which an
    /// exec closes, and whether a call that a supervisor has received is safe from signals (from Linux 5.19 on).
    ///
    /// # Errors
    /// The negative errno: -EACCES without CAP_SYS_ADMIN, -EBUSY if the thread has a filter with a supervisor already.
    ///
    /// # Safety
    /// From now on, the thread sleeps in each call of the filter until a supervisor answers. The function is
    /// async-signal-safe.
    pub unsafe fn install(&self) -> Result<(RawFd, bool), i32> {
        let program = libc::sock_fprog { len: self.0.len() as libc::c_ushort, filter: self.0.as_ptr().cast_mut() };
        // Without SPEC_ALLOW, kernels before 5.16 slow the program down by mitigations that it did not ask for.
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
        // Before Linux 5.19, signals interrupt a call that waits for its answer.
        for flags in [flags | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, flags] {
            let is_safe = flags & libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV != 0;
            // SAFETY: the kernel reads the program, which lives until the call returns.
            let fd = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
            // SAFETY: errno is thread-local.
            match (fd, unsafe { *libc::__errno_location() }) {
                (0.., _) => return Ok((fd as RawFd, is_safe)),
                (_, libc::EINVAL) if is_safe => {}
                (_, errno) => return Err(-errno),
            }
        }
        Err(-libc::EINVAL)
    }
}

/// Joins numbers to ranges, in ascending order.
fn ranges(mut numbers: Vec<u32>) -> Vec<RangeInclusive<u32>> {
    numbers.sort_unstable();
    numbers.dedup();
    let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
    for nr in numbers {
        match ranges.last_mut() {
            Some(last) if *last.end() + 1 == nr => *last = *last.start()..=nr,
            _ => ranges.push(nr..=nr),
        }
    }
    ranges
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn load(at: u32) -> libc::sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at)
}

/// A conditional jump: over `jt` instructions if the condition holds, otherwise over `jf`.
fn jump(condition: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_JMP | condition | libc::BPF_K) as u16, jt, jf, k }
}

/// The descriptor by which the kernel asks about calls.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A call that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The kernel's number of the question.
    pub id: u64,
    /// The thread, in the pid namespace of the supervisor; 0 if it has no number there.
    pub tid: i32,
    /// The ABI of the call.
    pub abi: Abi,
    /// The number of the syscall (x32's without bit 30).
    pub nr: u32,
    /// The argument registers.
    pub args: [u64; 6],
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The kernel executes it.
    Continue,
    /// The kernel does not execute it, and it returns this value: a negative errno if it fails.
    Return(i64),
}

impl From<OwnedFd> for Listener {
    fn from(fd: OwnedFd) -> Listener {
        Listener(fd)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Listener {
    /// Takes the next call that waits. Returns `None` if there is none, or if its task was killed meanwhile. Call this
    /// if poll(2) says that the descriptor is readable; otherwise it sleeps.
    ///
    /// # Errors
    /// The errors of ioctl(2).
    pub fn receive(&self) -> io::Result<Option<Waiting>> {
        // SAFETY: all bits zero are a valid value of the struct, and the kernel demands them.
        let mut of: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one struct of this size, which the number of the ioctl says.
        if unsafe { libc::ioctl(self.0.as_raw_fd(), RECEIVE, &raw mut of) } != 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::ENOENT | libc::EINTR) => Ok(None),
                _ => Err(error),
            };
        }
        let raw_nr = of.data.nr as u32;
        let is_x32 = ARCHES[0].0 == of.data.arch && raw_nr & X32_BIT != 0;
        let abi = ARCHES.iter().find(|(arch, _)| *arch == of.data.arch).map_or(Abi::X86_64, |(_, abis)| abis[usize::from(is_x32)]);
        let nr = if is_x32 { raw_nr & !X32_BIT } else { raw_nr };
        Ok(Some(Waiting { id: of.id, tid: of.pid as i32, abi, nr, args: of.data.args }))
    }

    /// Returns whether no task with the filter is left.
    pub fn has_no_tasks(&self) -> bool {
        let mut polled = libc::pollfd { fd: self.0.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: the kernel reads and writes one struct.
        unsafe { libc::poll(&raw mut polled, 1, 0) > 0 && polled.revents & libc::POLLHUP != 0 }
    }

    /// Returns whether the call still waits, so that what was read of its task's memory is of this task.
    pub fn is_waiting(&self, id: u64) -> bool {
        // SAFETY: the kernel reads one word.
        unsafe { libc::ioctl(self.0.as_raw_fd(), IS_VALID, &raw const id) == 0 }
    }

    /// Answers a call. Returns whether it waited for the answer: that of a task that was killed meanwhile does not.
    pub fn answer(&self, id: u64, answer: Answer) -> bool {
        let (val, flags) = match answer {
            Answer::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            Answer::Return(value) => (value, 0),
        };
        let response = libc::seccomp_notif_resp { id, val, error: 0, flags };
        // SAFETY: the kernel reads one struct of this size.
        unsafe { libc::ioctl(self.0.as_raw_fd(), SEND, &raw const response) == 0 }
    }
}

/// Sends a signal to a thread (tkill(2)).
pub fn signal_thread(tid: i32, signal: i32) {
    // SAFETY: the call has no memory arguments.
    unsafe { libc::syscall(libc::SYS_tkill, tid, signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executes a filter as the kernel does, for one call.
    fn asks(filter: &Filter, arch: u32, nr: u32) -> bool {
        let (mut at, mut register) = (0, 0);
        loop {
            let libc::sock_filter { code, jt, jf, k } = filter.0[at];
            at += 1;
            let holds = match u32::from(code) {
                code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                    register = if k == NR_AT { nr } else { arch };
                    continue;
                }
                code if code == libc::BPF_RET | libc::BPF_K => return k == libc::SECCOMP_RET_USER_NOTIF,
                code if code == libc::BPF_JMP | libc::BPF_JA => {
                    at += k as usize;
                    continue;
                }
                code if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => register == k,
                code if code == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K => register >= k,
                code if code == libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K => register > k,
                other => panic!("{other}"),
            };
            at += usize::from(if holds { jt } else { jf });
        }
    }

    #[test]
    fn a_filter_asks_about_its_calls_and_no_others() {
        let calls = [(Abi::X86_64, 257), (Abi::I386, 5), (Abi::X86_64, 3), (Abi::X32, 257), (Abi::X86_64, 2), (Abi::I386, 400)];
        let filter = Filter::new(calls);
        for nr in 0..500 {
            assert_eq!(asks(&filter, 0xc000_003e, nr), [2, 3, 257].contains(&nr), "{nr}");
            assert_eq!(asks(&filter, 0xc000_003e, nr | X32_BIT), nr == 257, "{nr}");
            assert_eq!(asks(&filter, 0x4000_0003, nr), [5, 400].contains(&nr), "{nr}");
            assert!(!asks(&filter, 0xc000_00b7, nr), "{nr}");
        }
    }

    #[test]
    fn a_filter_of_every_second_number_is_valid() {
        let filter = Filter::new((0..1000).step_by(2).map(|nr| (Abi::X86_64, nr)).chain([(Abi::I386, 1)]));
        assert!(asks(&filter, 0xc000_003e, 998) && !asks(&filter, 0xc000_003e, 999) && asks(&filter, 0x4000_0003, 1));
        // BPF_MAXINSNS (include/uapi/linux/bpf_common.h)
        assert!(filter.0.len() <= 4096);
    }
}
