//! The state that this process inherited from its caller: standard streams, signal dispositions and signal mask.
//!
//! Rust's runtime changes some of it before `main`. It opens /dev/null for each closed standard stream, which stays,
//! since it keeps rtrace's own files from becoming standard streams. And it ignores SIGPIPE. The command must get the
//! state that rtrace got, so the state is saved before.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The descriptors of 0 to 2 that were closed, one bit each.
static CLOSED: AtomicU8 = AtomicU8::new(0);
/// The signals of [`CHANGED`] that were ignored, one bit each; bit 0 is signal 1.
static IGNORED: AtomicU64 = AtomicU64::new(0);
/// The signal mask, in the kernel's format.
static MASK: AtomicU64 = AtomicU64::new(0);

/// The signals that rtrace, Rust's runtime or the C library do not leave ignored. A write to a pipe without readers
/// must return an error, waiting for a child must return its status, and glibc uses signal 33 (SIGSETXID) from the
/// first thread on.
const CHANGED: [i32; 3] = [libc::SIGPIPE, libc::SIGCHLD, 33];

/// The kernel's `struct sigaction` on x86-64 and aarch64: handler, flags, restorer, mask.
const ACTION_WORDS: usize = 4;

/// Saves the state. It is called before Rust's runtime starts (`before_main.rs`), and is async-signal-safe.
pub fn save_state() {
    let mut closed = 0;
    for fd in 0..3 {
        // SAFETY: F_GETFD reads a flag of the descriptor, if there is one.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            closed |= 1 << fd;
        }
    }
    CLOSED.store(closed, Ordering::Relaxed);
    let mut ignored = 0;
    for signal in CHANGED.into_iter().filter(|signal| disposition(*signal) == libc::SIG_IGN) {
        ignored |= bit(signal);
    }
    IGNORED.store(ignored, Ordering::Relaxed);
    MASK.store(change_mask(None), Ordering::Relaxed);
}

/// Sets the signals as rtrace needs them, whatever state it inherited. It is called before any thread is created, so
/// that every thread inherits them.
///
/// SIGXFSZ is blocked, so that a write beyond the limit for file sizes (RLIMIT_FSIZE) returns an error. SIGCHLD is not
/// ignored, since otherwise the status of children could not be read.
pub fn set_up_signals() {
    change_mask(Some((libc::SIG_BLOCK, bit(libc::SIGXFSZ))));
    set_disposition(libc::SIGCHLD, libc::SIG_DFL);
}

/// Returns whether a standard stream was closed when rtrace was started. It now refers to /dev/null.
pub fn was_closed(fd: i32) -> bool {
    (0..3).contains(&fd) && CLOSED.load(Ordering::Relaxed) & (1 << fd) != 0
}

/// Returns whether the caller ignores this signal, so that rtrace continues when it arrives: nohup(1) ignores SIGHUP,
/// and a shell without job control ignores SIGINT for background commands.
pub fn ignores(signal: i32) -> bool {
    disposition(signal) == libc::SIG_IGN
}

/// Restores the streams and signals in a child that is about to execute the command. It is async-signal-safe.
pub(super) fn restore_state() {
    for fd in 0..3 {
        if was_closed(fd) {
            // SAFETY: the descriptor is the runtime's /dev/null, which nothing owns, in a process that only executes
            // another program.
            unsafe { libc::close(fd) };
        }
    }
    restore_signals();
}

/// Lets a helper program of rtrace start with the signals of rtrace's caller. `Command` alone would pass on the present
/// mask, in which all signals that end a program are blocked.
pub fn with_callers_signals(command: &mut Command) -> &mut Command {
    let in_child = || {
        restore_signals();
        Ok(())
    };
    // SAFETY: the closure is async-signal-safe: it makes only system calls, with values from atomics.
    unsafe { command.pre_exec(in_child) }
}

fn restore_signals() {
    for signal in CHANGED {
        let was = if IGNORED.load(Ordering::Relaxed) & bit(signal) == 0 { libc::SIG_DFL } else { libc::SIG_IGN };
        set_disposition(signal, was);
    }
    change_mask(Some((libc::SIG_SETMASK, MASK.load(Ordering::Relaxed))));
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Returns the disposition of a signal: SIG_DFL, SIG_IGN or the address of a handler.
///
/// This function and the next two bypass the C library, which rejects the signals that it uses itself (32 and 33).
/// Those are part of the caller's state, too.
fn disposition(signal: i32) -> usize {
    let mut action = [0usize; ACTION_WORDS];
    // SAFETY: without a new action, the kernel only writes the present one, of four words. The size is that of the
    // kernel's signal set.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, std::ptr::null::<usize>(), action.as_mut_ptr(), size_of::<u64>()) };
    action[0]
}

/// Sets the disposition of a signal to SIG_DFL or SIG_IGN, and to nothing else.
fn set_disposition(signal: i32, to: libc::sighandler_t) {
    let mut action = [0usize; ACTION_WORDS];
    action[0] = to;
    // SAFETY: the kernel reads four words, of which the other three (flags, restorer, mask) have no effect without a
    // handler.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), std::ptr::null::<usize>(), size_of::<u64>()) };
}

/// Ends this process by a signal, without a core dump of its own, so that its parent sees how the command ended. It
/// returns if the signal does not end processes.
pub fn end_by_signal(signal: i32) {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    set_disposition(signal, libc::SIG_DFL);
    change_mask(Some((libc::SIG_UNBLOCK, bit(signal))));
    // SAFETY: raise(3) sends a signal to the calling thread, and touches no memory of this program.
    unsafe { libc::raise(signal) };
}

/// Changes the signal mask if `how` is given, and returns the previous mask.
fn change_mask(how: Option<(i32, u64)>) -> u64 {
    let (how, set) = how.unzip();
    let set: *const u64 = set.as_ref().map_or(std::ptr::null(), |set| set);
    let mut before = 0u64;
    // SAFETY: both pointers are to live 64-bit sets or null, and the size is theirs. The kernel rejects any other size
    // (`sizeof(sigset_t)` is 8).
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how.unwrap_or(libc::SIG_BLOCK), set, &raw mut before, size_of::<u64>()) };
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changing_the_mask_returns_the_previous_one() {
        let before = change_mask(Some((libc::SIG_BLOCK, bit(libc::SIGUSR2))));
        assert_eq!(change_mask(None), before | bit(libc::SIGUSR2));
        change_mask(Some((libc::SIG_SETMASK, before)));
        assert_eq!(change_mask(None), before);
    }
}
