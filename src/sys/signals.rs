//! The signals that rtrace handles, read from a signalfd(2).

use super::caller;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The signals that are blocked and read from the descriptor.
const HANDLED: [i32; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGCHLD];

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSignal {
    /// The number of the signal.
    pub signal: i32,
    /// Whether a process sent it by kill(2). Otherwise the kernel did, as the terminal driver sends Ctrl-C to all
    /// processes in the foreground.
    pub sent: bool,
}

impl ReceivedSignal {
    /// Returns whether the signal asks rtrace to end.
    pub fn asks_for_end(self) -> bool {
        !matches!(self.signal, libc::SIGCHLD | libc::SIGUSR2)
    }
}

impl ReceivedSignal {
    /// Returns whether the signal asks for a snapshot.
    pub fn asks_for_snapshot(self) -> bool {
        self.signal == libc::SIGUSR2
    }
}

/// A reader of the handled signals. It is created before any thread, so that all threads block them.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Blocks the signals in this thread and in the threads that it creates. The command gets the caller's signal mask
    /// (`caller.rs`).
    ///
    /// `more` are further signals that are blocked, and read even if the caller ignores them.
    ///
    /// # Errors
    /// The errors of signalfd(2).
    pub fn block(more: &[i32]) -> io::Result<Signals> {
        // SAFETY: the sets are locals that sigemptyset initialises before use. signalfd and pthread_sigmask read and
        // write only them.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            // A blocked signal is no longer ignored, so signals that the caller ignores are not blocked.
            for signal in HANDLED.iter().filter(|signal| !caller::ignores(**signal)).chain(more) {
                libc::sigaddset(&mut set, *signal);
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

    /// Returns the next pending signal, if there is one.
    pub fn next(&self) -> Option<ReceivedSignal> {
        // SAFETY: signalfd_siginfo is plain data for which zeros are valid, and read(2) writes at most its size.
        let (info, len) = unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let len = libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size_of::<libc::signalfd_siginfo>());
            (info, len)
        };
        (len == size_of::<libc::signalfd_siginfo>() as isize)
            .then_some(ReceivedSignal { signal: info.ssi_signo as i32, sent: info.ssi_code <= 0 })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
