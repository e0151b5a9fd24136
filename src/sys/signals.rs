//! The signals that rtrace answers, as a descriptor to wait on.

use super::caller;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The signals that are held back from their default action and read instead.
const ANSWERED: [i32; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGCHLD];

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    pub signal: i32,
    /// A process sent it (kill(2)); otherwise the kernel did, as the terminal driver does for Ctrl-C to everyone in the foreground.
    pub sent: bool,
}

/// Reads the answered signals. Made before any thread, so that all threads hold them back.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Holds the signals back in this thread, and in those it makes. The command gets what they were for the caller (`caller.rs`).
    ///
    /// # Errors
    /// signalfd(2)'s.
    pub fn take() -> io::Result<Signals> {
        // SAFETY: the sets are locals that sigemptyset initialises before use; signalfd and pthread_sigmask read and write only them.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            // A signal that is held back is not ignored any more, so what is to be ignored is not held back.
            for signal in ANSWERED.into_iter().filter(|signal| !caller::ignores(*signal)) {
                libc::sigaddset(&mut set, signal);
            }
            let failed = libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            if failed != 0 {
                return Err(io::Error::from_raw_os_error(failed));
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Signals { fd: OwnedFd::from_raw_fd(fd) })
        }
    }

    /// The next signal that waits, if one does.
    pub fn next(&self) -> Option<Came> {
        // SAFETY: signalfd_siginfo is plain data for which zeros are valid, and read(2) writes at most its size.
        let (info, len) = unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let len = libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size_of::<libc::signalfd_siginfo>());
            (info, len)
        };
        (len == size_of::<libc::signalfd_siginfo>() as isize).then_some(Came { signal: info.ssi_signo as i32, sent: info.ssi_code <= 0 })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
