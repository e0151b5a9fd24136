//! Closing perf events without making the user wait.
//!
//! Closing the last descriptor of a tracepoint waits for RCU in the kernel (36-70 ms each, measured on 6.18; tracepoint_synchronize_unregister in kernel/trace/trace_event_perf.c), and so does
//! the exit of the process that holds it. A child that holds nothing but the descriptors waits instead.

use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, RawFd};

/// Hands the events to a new child that closes them, by ending, when this process is gone. The events must be disabled, and the caller ends soon after.
///
/// The child holds no standard stream, no output, no terminal and no session. Where no child can be made, the caller's own exit waits.
pub fn hand_over<'a>(events: impl Iterator<Item = BorrowedFd<'a>>) {
    let Ok((until_gone, held)) = pipe_with(PipeFlags::CLOEXEC) else { return };
    // The write end is never closed by us: that this process is gone is what ends the child's read.
    let held = held.into_raw_fd();
    let mut keep: Vec<RawFd> = events.map(|fd| fd.as_raw_fd()).collect();
    keep.push(until_gone.as_raw_fd());
    keep.sort_unstable();
    // SAFETY: between fork and _exit the child makes only async-signal-safe calls (close_range, setsid, sigprocmask-free read, _exit): it takes no lock, allocates nothing (the list was
    // made before), and never returns from this block. It closes descriptors that belong to its own copy of the table.
    unsafe {
        if libc::fork() != 0 {
            return;
        }
        libc::setsid();
        let mut first = 0;
        for &fd in &keep {
            if fd > first {
                libc::syscall(libc::SYS_close_range, first, fd - 1, 0);
            }
            first = fd + 1;
        }
        libc::syscall(libc::SYS_close_range, first, u32::MAX, 0);
        debug_assert!(held >= 0);
        let mut byte = 0u8;
        while libc::read(until_gone.as_raw_fd(), (&raw mut byte).cast(), 1) < 0 && *libc::__errno_location() == libc::EINTR {}
        libc::_exit(0);
    }
}
