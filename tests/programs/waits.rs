//! Calls that wait with a timeout, while other threads make calls at full speed. A program that is stopped or frozen
//! and goes on gets EINTR from these calls; one that is only delayed does not.

use crate::calls;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The timeout of each call.
const MILLISECONDS: i64 = 50;
static TIMEOUT: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: MILLISECONDS * 1_000_000 };

/// A call, which returns what the kernel does, or -1.
type Call = fn() -> i64;

/// Makes `count` tagged calls on each of two threads. Meanwhile, other threads make calls that time out; prints how
/// they returned.
pub fn run(count: u64) {
    let is_over = AtomicBool::new(false);
    let calls: [(&str, Call); 4] =
        [("epoll_wait", epoll_wait), ("semtimedop", semtimedop), ("rt_sigtimedwait", sigtimedwait), ("recvfrom", receive)];
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let waiting = calls.map(|(name, call)| (name, scope.spawn(move || until(is_over, call))));
        calls::run("lseek", 2, count, None);
        is_over.store(true, Ordering::Relaxed);
        for (name, thread) in waiting {
            let results = thread.join().expect("the thread ends well");
            let results: Vec<String> = results.into_keys().collect();
            println!("{name}: {}", results.join(", "));
        }
    });
}

/// Repeats a call, and returns its results: the value, or the name of the error.
fn until(is_over: &AtomicBool, call: Call) -> BTreeMap<String, u64> {
    let mut results = BTreeMap::new();
    loop {
        let result = match call() {
            -1 => match io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => "EINTR".to_owned(),
                Some(libc::EAGAIN) => "EAGAIN".to_owned(),
                other => format!("{other:?}"),
            },
            value => value.to_string(),
        };
        *results.entry(result).or_default() += 1;
        if is_over.load(Ordering::Relaxed) {
            return results;
        }
    }
}

fn epoll_wait() -> i64 {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: there is room for one event. The descriptor is closed after the call.
    unsafe {
        let epoll = libc::epoll_create1(0);
        let result = libc::epoll_wait(epoll, &raw mut event, 1, MILLISECONDS as i32);
        let error = *libc::__errno_location();
        libc::close(epoll);
        *libc::__errno_location() = error;
        result.into()
    }
}

fn semtimedop() -> i64 {
    let mut wanted = libc::sembuf { sem_num: 0, sem_op: -1, sem_flg: 0 };
    // SAFETY: operation and timeout live until the call returns. The semaphore is removed after it.
    unsafe {
        let semaphore = libc::semget(libc::IPC_PRIVATE, 1, 0o600);
        let result = libc::syscall(libc::SYS_semtimedop, semaphore, &raw mut wanted, 1, &raw const TIMEOUT);
        let error = *libc::__errno_location();
        libc::semctl(semaphore, 0, libc::IPC_RMID);
        *libc::__errno_location() = error;
        result
    }
}

fn sigtimedwait() -> i64 {
    // SAFETY: the set is initialized by sigemptyset, and lives until the call returns.
    unsafe {
        let mut signals = std::mem::zeroed();
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, libc::SIGUSR1);
        libc::sigtimedwait(&raw const signals, null_mut(), &raw const TIMEOUT).into()
    }
}

fn receive() -> i64 {
    let (ours, _theirs) = UnixDatagram::pair().expect("there are descriptors");
    ours.set_read_timeout(Some(Duration::from_millis(MILLISECONDS as u64))).expect("it is a socket");
    let mut byte = 0u8;
    // SAFETY: there is room for one byte.
    unsafe { libc::syscall(libc::SYS_recvfrom, ours.as_raw_fd(), &raw mut byte, 1, 0, null::<u8>(), null::<u8>()) }
}
