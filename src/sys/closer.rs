//! Closes perf events without delaying the end of rtrace, and without leaving a process behind.
//!
//! Closing the last descriptor of a tracepoint's event waits for an RCU grace period in the kernel (36-70 ms each,
//! measured on 6.18; tracepoint_synchronize_unregister() in kernel/trace/trace_event_perf.c), and so does the exit of
//! the process that holds it. So another holder must keep the descriptors when this process ends:
//!
//! * A child that holds nothing but the descriptors, and exits when this process has ended. From Linux 7.1 on, nobody
//!   needs to reap it (CLONE_AUTOREAP). On older kernels its new parent must: a process that outlives its parent is
//!   reparented to the subreaper or to the first process of the pid namespace. Further forks do not change that, and
//!   CLONE_PARENT would make it a child of rtrace's caller, which does not expect it.
//! * Where that first process belongs to a container, it often reaps no children (`sleep infinity`), and its signal
//!   dispositions do not tell whether it does. There, the kernel closes the descriptors. They are sent into a socket
//!   that contains itself, so that no process can reach it once this process has ended. The kernel's garbage collector
//!   for such sockets, a kernel worker, closes them.
//!
//! The kernel does not do this everywhere, because a single worker closes all files that are not closed by processes,
//! one after the other (`delayed_fput` in fs/file_table.c), and other processes may be waiting for it. Before Linux
//! 6.9, the exiting process itself runs the garbage collection, and waits.

use rustix::net::{AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

/// The flag of clone3(2) for a child that leaves no zombie, whichever process is its parent when it exits
/// (include/uapi/linux/sched.h; kernel commit 12ae2c81b21c).
const CLONE_AUTOREAP: u64 = 1 << 34;
/// The most descriptors in one message (SCM_MAX_FD in include/net/scm.h).
const MESSAGE_FDS_MAX: usize = 253;

/// Hands the events to another holder, which closes them when this process has ended. The events must be disabled, and
/// the caller must exit soon afterwards.
///
/// `is_in_initial_pid_namespace`: this process is in the initial pid namespace, in which orphaned processes are reaped.
/// If no holder can be created, the exit of this process closes the events and waits.
pub fn hand_over<'a>(events: impl Iterator<Item = BorrowedFd<'a>>, is_in_initial_pid_namespace: bool) {
    let events: Vec<BorrowedFd> = events.collect();
    if events.is_empty() || to_child(&events, Fork::Autoreap) {
        return;
    }
    if is_in_initial_pid_namespace {
        to_child(&events, Fork::Ordinary);
    } else {
        to_kernel(&events);
    }
}

/// Sends the events into a socket, together with that socket. Events that cannot be sent are closed by the exit.
fn to_kernel(events: &[BorrowedFd]) {
    let Ok((ours, theirs)) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None) else { return };
    let all: Vec<BorrowedFd> = std::iter::once(theirs.as_fd()).chain(events.iter().copied()).collect();
    for part in all.chunks(MESSAGE_FDS_MAX) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_FDS_MAX))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        if !rights.push(SendAncillaryMessage::ScmRights(part))
            || sendmsg(&ours, &[IoSlice::new(b"x")], &mut rights, SendFlags::DONTWAIT).is_err()
        {
            break;
        }
    }
    // The exit closes the sockets together with the events' own descriptors. If the sockets were closed before, the
    // events' own descriptors would again be the last ones.
    let _ = [ours, theirs].map(OwnedFd::into_raw_fd);
}

/// How the child is created.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fork {
    Ordinary,
    /// The child needs no parent that reaps it.
    Autoreap,
}

/// Forks a child that holds the events, but no standard stream, no output and no terminal, in a session of its own.
/// Returns false if that fails.
fn to_child(events: &[BorrowedFd], fork: Fork) -> bool {
    let Ok((read_end, write_end)) = pipe_with(PipeFlags::CLOEXEC) else { return false };
    let mut keep: Vec<RawFd> = events.iter().map(AsRawFd::as_raw_fd).collect();
    keep.push(read_end.as_raw_fd());
    keep.sort_unstable();
    // SAFETY: between fork and _exit, the child makes only async-signal-safe calls (close_range, setsid, read, _exit).
    // It takes no lock, allocates nothing (the list was created before), and never leaves this block. It closes
    // descriptors of its own copy of the table.
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
            while libc::read(read_end.as_raw_fd(), (&raw mut byte).cast(), 1) < 0 && *libc::__errno_location() == libc::EINTR {}
            libc::_exit(0);
        }
        pid
    };
    if pid > 0 {
        // This process never closes the write end: its exit does, which ends the child's read.
        let _ = write_end.into_raw_fd();
    }
    pid > 0
}

/// Forks with the flags of clone3(2). Returns a negative number if the kernel does not support the flags or the call.
///
/// # Safety
/// The child may make async-signal-safe calls only. It must not depend on what the C library's fork does in the child
/// (thread IDs, atfork handlers).
unsafe fn clone3(flags: u64) -> i64 {
    // The first version of struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls.
    // The exit signal is zero.
    let arguments = [flags, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the arguments are a live structure of the given size. Without a stack, the child continues on its copy of
    // this one, as after fork(2).
    unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size_of_val(&arguments)) }
}
