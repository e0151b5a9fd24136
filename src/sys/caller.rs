//! What whoever started this process handed down: standard streams, dispositions and mask of signals.
//!
//! Rust's runtime changes some of it before `main`: it opens /dev/null where one of the first three descriptors is closed (which keeps rtrace's own files from becoming standard
//! streams, so that stays), and ignores SIGPIPE. The command is to get what rtrace got, so it is written down before.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Which of the descriptors 0 to 2 were closed, a bit each.
static CLOSED: AtomicU8 = AtomicU8::new(0);
/// Which signals were ignored of those that are not left alone here, a bit each; bit 0 is signal 1.
static IGNORED: AtomicU64 = AtomicU64::new(0);
/// The mask of signals, as the kernel has it.
static MASK: AtomicU64 = AtomicU64::new(0);

/// The signals whose disposition rtrace, Rust's runtime or the C library changes where it was to ignore them: who writes to a pipe that nobody reads is to get an error, and who waits for
/// a child its status; glibc takes 33 for itself with the first thread (SIGSETXID).
const CHANGED: [i32; 3] = [libc::SIGPIPE, libc::SIGCHLD, 33];

/// The kernel's `struct sigaction` on x86-64 and aarch64: handler, flags, restorer, mask.
const ACTION_WORDS: usize = 4;

/// Writes it down. Called before Rust's runtime begins (`before_main.rs`); async-signal-safe.
pub fn write_down() {
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

/// Makes the signals what rtrace needs, whatever it was started with. Called first of all, so that every thread has them.
///
/// A write beyond the limit for files' sizes (RLIMIT_FSIZE) is an error like any other, not the end by SIGXFSZ, which is held back. SIGCHLD is not ignored: else children are gone before they are
/// asked for their status.
pub fn make_signals_ours() {
    change_mask(Some((libc::SIG_BLOCK, bit(libc::SIGXFSZ))));
    dispose(libc::SIGCHLD, libc::SIG_DFL);
}

/// Whether a standard stream was closed when rtrace was started. By now it leads to /dev/null.
pub fn was_closed(fd: i32) -> bool {
    (0..3).contains(&fd) && CLOSED.load(Ordering::Relaxed) & (1 << fd) != 0
}

/// Whether whoever started rtrace wants it to go on when this signal comes: nohup(1) for SIGHUP, a shell without job control for a SIGINT in the background.
pub fn ignores(signal: i32) -> bool {
    disposition(signal) == libc::SIG_IGN
}

/// Makes streams and signals what they were: for a child that is about to execute the command. Async-signal-safe.
pub(super) fn hand_down() {
    for fd in 0..3 {
        if was_closed(fd) {
            // SAFETY: what is open there is the runtime's /dev/null, which nobody owns, in a process that only executes another program.
            unsafe { libc::close(fd) };
        }
    }
    hand_down_signals();
}

/// Gives a program that rtrace runs for itself the signals that rtrace was given: `Command` alone hands down the mask as it is now, so that no signal would end it.
pub fn with_callers_signals(command: &mut Command) -> &mut Command {
    let in_child = || {
        hand_down_signals();
        Ok(())
    };
    // SAFETY: what is done in the child is async-signal-safe: two system calls, with what atomics hold.
    unsafe { command.pre_exec(in_child) }
}

fn hand_down_signals() {
    for signal in CHANGED {
        let was = if IGNORED.load(Ordering::Relaxed) & bit(signal) == 0 { libc::SIG_DFL } else { libc::SIG_IGN };
        dispose(signal, was);
    }
    change_mask(Some((libc::SIG_SETMASK, MASK.load(Ordering::Relaxed))));
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// What is done when a signal comes: SIG_DFL, SIG_IGN or a handler. Neither this nor the next two are done by the C library, which refuses signals that it uses itself (32 and 33): those are the caller's, too.
fn disposition(signal: i32) -> usize {
    let mut action = [0usize; ACTION_WORDS];
    // SAFETY: without a new action the kernel only writes the present one, of four words, and the set's size is the one that it asks for.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, std::ptr::null::<usize>(), action.as_mut_ptr(), size_of::<u64>()) };
    action[0]
}

/// To SIG_DFL or SIG_IGN, and nothing else.
fn dispose(signal: i32, to: libc::sighandler_t) {
    let mut action = [0usize; ACTION_WORDS];
    action[0] = to;
    // SAFETY: the kernel reads four words, of which the other three (flags, restorer, mask) mean nothing without a handler.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), std::ptr::null::<usize>(), size_of::<u64>()) };
}

/// Changes the mask, if it is to be changed, and gives the one before.
fn change_mask(how: Option<(i32, u64)>) -> u64 {
    let (how, set) = how.unzip();
    let set: *const u64 = set.as_ref().map_or(std::ptr::null(), |set| set);
    let mut before = 0u64;
    // SAFETY: both pointers are to live 64-bit sets or null, and the size is theirs; the kernel refuses another (`sizeof(sigset_t)` there is 8).
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how.unwrap_or(libc::SIG_BLOCK), set, &raw mut before, size_of::<u64>()) };
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_changed_and_told() {
        let before = change_mask(Some((libc::SIG_BLOCK, bit(libc::SIGUSR2))));
        assert_eq!(change_mask(None), before | bit(libc::SIGUSR2));
        change_mask(Some((libc::SIG_SETMASK, before)));
        assert_eq!(change_mask(None), before);
    }
}
