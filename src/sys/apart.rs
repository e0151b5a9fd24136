//! What a process of rtrace's own does to stand alone, so that whoever waits for rtrace's terminal, pipes and files does not wait for it.

use std::os::fd::RawFd;

/// Enters a session of its own and closes everything but the standard streams. To be called first of all, when no descriptor is owned by anybody.
pub fn from_terminal_and_descriptors() {
    const FIRST: RawFd = 3;
    // SAFETY: setsid takes nothing. What close_range closes was handed down at the exec, and nobody here knows of it yet.
    unsafe {
        libc::setsid();
        libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, 0);
    }
    // It is only for those who look at a list of processes.
    let _ = rustix::thread::set_name(c"rtrace-reader");
}
