//! Long calls whose data exists only when they return.

use crate::raw;
use crate::told::{self, out};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

/// The call that the C library's `epoll_wait` makes.
#[cfg(target_arch = "x86_64")]
const EPOLL_WAIT: libc::c_long = libc::SYS_epoll_wait;
#[cfg(not(target_arch = "x86_64"))]
const EPOLL_WAIT: libc::c_long = libc::SYS_epoll_pwait;

/// The data that `read` returns, and for which epoll waits.
const PAYLOAD: &[u8] = b"the-payload\n";

/// Makes one call of each kind, each of which takes this many milliseconds: a read of a pipe, an epoll_wait for it, a
/// wait4 for a child that exits with status 3, and a futex call that times out.
pub fn run(milliseconds: u64) {
    let pause = Duration::from_millis(milliseconds);
    read_late(pause);
    poll_late(pause);
    let mut child = Command::new("sh").args(["-c", &format!("sleep {}; exit 3", pause.as_secs_f64())]).spawn().expect("there is a shell");
    let pid = child.id() as i32;
    let mut status = 0;
    // SAFETY: the status is ours to write to.
    unsafe { told::syscall!(libc::SYS_wait4, pid, &raw mut status, 0, 0) };
    drop(child.try_wait());
    let word = 7u32;
    let timeout = libc::timespec { tv_sec: 0, tv_nsec: (milliseconds * 1_000_000) as i64 };
    // SAFETY: word and timeout live until it returns.
    unsafe { told::syscall!(libc::SYS_futex, &raw const word, libc::FUTEX_WAIT, 7, &raw const timeout, 0, 0) };
}

fn read_late(pause: Duration) {
    let (reader, writer) = std::io::pipe().expect("there are descriptors");
    write_after(pause, libc::SYS_read, writer);
    let mut buffer = [0u8; 100];
    // SAFETY: the buffer has this size.
    let bytes = unsafe { told::syscall!(libc::SYS_read, reader.as_raw_fd(), &mut buffer[..], 100) };
    assert_eq!(bytes, PAYLOAD.len() as i64);
}

fn poll_late(pause: Duration) {
    let (reader, writer) = std::io::pipe().expect("there are descriptors");
    // SAFETY: epoll_create1 takes no memory.
    let epoll = unsafe { libc::epoll_create1(0) };
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 42 };
    // SAFETY: the event lives until it returns.
    unsafe { told::syscall!(libc::SYS_epoll_ctl, epoll, libc::EPOLL_CTL_ADD, reader.as_raw_fd(), &raw const event) };
    write_after(pause, EPOLL_WAIT, writer);
    // SAFETY: there is room for one event.
    unsafe { told::syscall!(EPOLL_WAIT, epoll, out(&raw mut event, 1), 1, -1) };
    assert_eq!({ event.u64 }, 42);
}

/// Writes the payload so long after the calling thread has made the call `number`, which waits for it.
fn write_after(pause: Duration, number: libc::c_long, mut writer: std::io::PipeWriter) {
    // SAFETY: gettid has no preconditions.
    let waiting = format!("/proc/self/task/{}", unsafe { libc::gettid() });
    std::thread::spawn(move || {
        raw::wait_until_asleep(waiting.as_ref(), number);
        std::thread::sleep(pause);
        writer.write_all(PAYLOAD).expect("somebody reads");
        // The pipe stays open, because its end would be another event.
        std::mem::forget(writer);
    });
}
