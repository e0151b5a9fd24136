//! Detaches a helper process of rtrace, so that a process that waits for rtrace's terminal, pipes or files to be closed
//! does not wait for the helper.

use std::ffi::CStr;
use std::os::fd::RawFd;

/// Starts a new session and closes all descriptors except the standard streams. It must be called before any other
/// descriptor is in use. People see the name in a list of processes.
pub fn from_terminal_and_descriptors(name: &CStr) {
    const FIRST: RawFd = 3;
    // SAFETY: setsid takes no arguments. close_range closes descriptors that were inherited at the exec, which nothing
    // in this process uses yet.
    unsafe {
        libc::setsid();
        libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, 0);
    }
    let _ = rustix::thread::set_name(name);
}
