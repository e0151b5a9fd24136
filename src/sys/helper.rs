//! Helper processes: rtrace's program, executed again under another name, with a socket to rtrace as its stdin. A
//! helper lives on when rtrace is stopped or killed, until it has read the end of its socket.

use super::file_capabilities;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recvmsg, sendmsg, socketpair,
};
use std::ffi::{CStr, OsStr};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The greatest number of descriptors that a message passes (the kernel's limit is SCM_MAX_FD in include/net/scm.h,
/// 253).
pub const DESCRIPTORS_MAX: usize = 128;

/// The longest pause between two looks whether a process has ended.
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// A running helper process.
#[derive(Debug)]
pub struct Helper {
    /// The process.
    pub process: Child,
    /// The socket, of the type SOCK_SEQPACKET: each message is received as it was sent.
    pub socket: OwnedFd,
}

impl Helper {
    /// Starts the helper of this name. It inherits the signal mask of this thread, so that a signal that ends rtrace
    /// does not end the helper before.
    ///
    /// # Errors
    /// The socket or the process cannot be created.
    pub fn start(name: &CStr) -> io::Result<Helper> {
        let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0(OsStr::from_bytes(name.to_bytes())).current_dir("/");
        let process = command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Helper { process, socket })
    }
}

/// Waits until a process has ended, at most until this time.
pub fn await_end(process: &mut Child, until: Instant) {
    let mut pause = Duration::from_micros(100);
    while matches!(process.try_wait(), Ok(None)) && Instant::now() < until {
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Serves with the socket to rtrace, if this process was started as the helper of this name, and returns its exit code.
/// `serve` returns whether it succeeded.
///
/// A program with file capabilities or the set-user-ID bit is never a helper: any user could start it as one, and give
/// it orders.
pub fn serve_if_started_as(name: &CStr, serve: impl FnOnce(BorrowedFd) -> bool) -> Option<ExitCode> {
    if std::env::args_os().next().is_none_or(|first| first.as_bytes() != name.to_bytes()) {
        return None;
    }
    if file_capabilities::is_privileged_program() {
        return Some(ExitCode::FAILURE);
    }
    detach(name);
    let stdin = io::stdin();
    Some(if serve(stdin.as_fd()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Starts a new session and closes all descriptors except the standard streams, so that a process that waits for
/// rtrace's terminal, pipes or files to be closed does not wait for the helper. It must be called before any other
/// descriptor is in use. People see the name in a list of processes.
fn detach(name: &CStr) {
    const FIRST: RawFd = 3;
    // SAFETY: setsid takes no arguments. close_range closes descriptors that were inherited at the exec, which nothing
    // in this process uses yet.
    unsafe {
        libc::setsid();
        libc::syscall(libc::SYS_close_range, FIRST, u32::MAX, 0);
    }
    let _ = rustix::thread::set_name(name);
}

/// Sends a message that passes at most [`DESCRIPTORS_MAX`] descriptors.
///
/// # Errors
/// The errors of sendmsg(2); `EPIPE` if the other side has ended.
pub fn send(socket: impl AsFd, message: &[u8], descriptors: &[BorrowedFd]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        rights.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(socket, &[IoSlice::new(message)], &mut rights, SendFlags::NOSIGNAL).map(drop)
}

/// Waits for a message, and returns its length and the descriptors that it passes. A length of 0 is the end of the
/// socket.
///
/// # Errors
/// The errors of recvmsg(2).
pub fn receive(socket: impl AsFd, message: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(message)], &mut rights, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    let descriptors = rights.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok((received.bytes, descriptors.flatten().collect()))
}
