//! What whoever started this process handed down: standard streams, dispositions and mask of signals, and what he may read.
//!
//! Rust's runtime changes some of it before `main`: it opens /dev/null where one of the first three descriptors is closed (which keeps rtrace's own files from becoming standard
//! streams, so that stays), and ignores SIGPIPE. The command is to get what rtrace got, so it is written down before.

use rustix::fs::{Mode, OFlags};
use rustix::process::{getegid, geteuid, getgid, getuid};
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
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

/// Opens a file to read as whoever started rtrace may: not with privileges that rtrace was given when it was executed (set-user-ID, file capabilities), and that he has not.
///
/// For that time this thread, alone, gives them up, so that the kernel decides, for every directory on the way, at the moment of opening. access(2) would be asked before, of what may be another
/// file by then; asked afterwards about the descriptor, it says nothing of the directories, and a pipe or a device would have been opened. The user of the file system (setfsuid(2)) does nothing about capabilities.
///
/// # Errors
/// open(2)'s; or privileges could not be given up, or not be taken back.
pub fn open(path: &Path) -> io::Result<File> {
    let given_up = if has_privileges_of_its_own() { Some(GivenUp::now()?) } else { None };
    let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty());
    given_up.map_or(Ok(()), |given_up| given_up.take_back())?;
    Ok(File::from(opened?))
}

/// Whether rtrace was given privileges when it was executed (set-user-ID, file capabilities) that whoever started it has not.
pub fn has_privileges_of_its_own() -> bool {
    // SAFETY: it only reads what the kernel told this process when it was executed.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The privileges of this thread before it gave them up.
struct GivenUp {
    uid: rustix::process::Uid,
    gid: rustix::process::Gid,
    capabilities: CapabilitySets,
}

impl GivenUp {
    /// The group first: without the user, it could not be changed. Then the capabilities, which the change of the user may have left.
    fn now() -> io::Result<GivenUp> {
        let before = GivenUp { uid: geteuid(), gid: getegid(), capabilities: thread::capabilities(None)? };
        thread::set_thread_res_gid(None, getgid(), None)?;
        thread::set_thread_res_uid(None, getuid(), None)?;
        thread::set_capabilities(None, CapabilitySets { effective: CapabilitySet::empty(), ..before.capabilities })?;
        Ok(before)
    }

    /// The user and the group that were effective are still the saved ones, or the real ones.
    fn take_back(self) -> io::Result<()> {
        thread::set_thread_res_uid(None, self.uid, None)?;
        thread::set_thread_res_gid(None, self.gid, None)?;
        Ok(thread::set_capabilities(None, self.capabilities)?)
    }
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

    #[test]
    fn privileges_come_back() {
        let uid = geteuid();
        let capabilities = thread::capabilities(None).unwrap();
        let given_up = GivenUp::now().unwrap();
        assert!(thread::capabilities(None).unwrap().effective.is_empty());
        given_up.take_back().unwrap();
        assert_eq!((geteuid(), thread::capabilities(None).unwrap()), (uid, capabilities));
    }
}
