//! Closing perf events without making the user wait, and without leaving anything.
//!
//! Closing the last descriptor of a tracepoint waits for RCU in the kernel (36-70 ms each, measured on 6.18; tracepoint_synchronize_unregister in kernel/trace/trace_event_perf.c), and so does
//! the exit of the process that holds it. So somebody else has to hold them when this process ends:
//!
//! * a child that holds nothing but the descriptors, and ends when this process is gone. From Linux 7.1 on nobody need reap it (CLONE_AUTOREAP). Before, whoever inherits it must, for every
//!   process that outlives its parent is the subreaper's or the pid namespace's first process's: it makes no difference through how many forks it came, and CLONE_PARENT would make it a child that
//!   rtrace's caller knows nothing of.
//! * Where that first process is a container's, which often waits for nobody (`sleep infinity`), and what it catches does not tell: the kernel. The descriptors are sent into a socket that nobody can reach
//!   any more once this process is gone, since what it holds is itself. The collector of such sockets, a worker of the kernel's, puts them down.
//!
//! The kernel is not asked everywhere, because one worker closes all files that are not closed by processes, one after the other (`delayed_fput` in fs/file_table.c), and others may wait for
//! theirs. Before Linux 6.9 the process that ends collects, and waits itself.

use rustix::net::{AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

/// clone3(2)'s flag for a child that leaves no zombie, whoever its parent is by then (include/uapi/linux/sched.h; kernel commit 12ae2c81b21c).
const CLONE_AUTOREAP: u64 = 1 << 34;
/// So many descriptors one message takes (SCM_MAX_FD in include/net/scm.h).
const FDS_OF_MESSAGE: usize = 253;

/// Hands the events to whoever closes them when this process is gone. The events must be disabled, and the caller ends soon after.
///
/// `is_in_first_pid_namespace`: whoever inherits processes of this namespace reaps them. Where nobody takes the events, the
/// caller's own exit waits.
pub fn hand_over<'a>(events: impl Iterator<Item = BorrowedFd<'a>>, is_in_first_pid_namespace: bool) {
    let events: Vec<BorrowedFd> = events.collect();
    if events.is_empty() || to_child(&events, Fork::Autoreap) {
        return;
    }
    if is_in_first_pid_namespace {
        to_child(&events, Fork::Ordinary);
    } else {
        to_kernel(&events);
    }
}

/// Sends the events into a socket, together with that socket. What cannot be sent is closed by the exit.
fn to_kernel(events: &[BorrowedFd]) {
    let Ok((ours, theirs)) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None) else { return };
    let all: Vec<BorrowedFd> = std::iter::once(theirs.as_fd()).chain(events.iter().copied()).collect();
    for part in all.chunks(FDS_OF_MESSAGE) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_OF_MESSAGE))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        if !rights.push(SendAncillaryMessage::ScmRights(part))
            || sendmsg(&ours, &[IoSlice::new(b"x")], &mut rights, SendFlags::DONTWAIT).is_err()
        {
            break;
        }
    }
    // They are closed by the exit, with the events' own descriptors: if they were earlier, those would again be the last.
    let _ = [ours, theirs].map(OwnedFd::into_raw_fd);
}

/// How the child is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fork {
    Ordinary,
    /// Nobody need reap it.
    Autoreap,
}

/// The child holds no standard stream, no output, no terminal and no session. False where there is none.
fn to_child(events: &[BorrowedFd], fork: Fork) -> bool {
    let Ok((until_gone, held)) = pipe_with(PipeFlags::CLOEXEC) else { return false };
    let mut keep: Vec<RawFd> = events.iter().map(AsRawFd::as_raw_fd).collect();
    keep.push(until_gone.as_raw_fd());
    keep.sort_unstable();
    // SAFETY: between fork and _exit the child makes only async-signal-safe calls (close_range, setsid, sigprocmask-free read, _exit): it takes no lock, allocates nothing (the list was
    // made before), and never returns from this block. It closes descriptors that belong to its own copy of the table.
    let pid = unsafe {
        let pid = match fork {
            Fork::Ordinary => libc::fork().into(),
            Fork::Autoreap => clone3(CLONE_AUTOREAP),
        };
        if pid == 0 {
            libc::setsid();
            let mut first = 0;
            for &fd in &keep {
                if fd > first {
                    libc::syscall(libc::SYS_close_range, first, fd - 1, 0);
                }
                first = fd + 1;
            }
            libc::syscall(libc::SYS_close_range, first, u32::MAX, 0);
            let mut byte = 0u8;
            while libc::read(until_gone.as_raw_fd(), (&raw mut byte).cast(), 1) < 0 && *libc::__errno_location() == libc::EINTR {}
            libc::_exit(0);
        }
        pid
    };
    if pid > 0 {
        // The write end is never closed by us: that this process is gone is what ends the child's read.
        let _ = held.into_raw_fd();
    }
    pid > 0
}

/// fork(2) with flags. Negative where the kernel does not know them, or the call.
///
/// # Safety
/// The child may make async-signal-safe calls only, and none that depends on what the C library's own fork sets right (thread numbers, its handlers).
unsafe fn clone3(flags: u64) -> i64 {
    // The first version of struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls. Without an exit signal.
    let arguments = [flags, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the arguments are a live structure of the size that is given; without a stack the child goes on in its copy of this one, as after fork(2).
    unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size_of_val(&arguments)) }
}
