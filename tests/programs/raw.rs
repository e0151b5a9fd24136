//! System calls without libc's wrappers, cancellation points and vDSO.

use crate::told;
use std::ffi::{CStr, CString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;

/// Makes the tagged call `lseek(-1, tag, SEEK_SET)`, which fails with EBADF.
pub fn tag(tag: u64) {
    unsafe { libc::syscall(libc::SYS_lseek, -1, tag, libc::SEEK_SET) };
}

/// Asks for a path that leads nowhere.
pub fn access(path: &CStr) {
    unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, path.as_ptr(), libc::F_OK) };
}

pub fn getppid() -> i64 {
    unsafe { libc::syscall(libc::SYS_getppid) }
}

/// Opens a file for reading, with these additional flags.
pub fn open(path: &Path, flags: i32) -> i32 {
    let name = CString::new(path.as_os_str().as_bytes()).expect("a path has no NUL");
    let fd = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, name.as_ptr(), libc::O_RDONLY | flags, 0) };
    assert!(fd >= 0, "{}: {}", path.display(), std::io::Error::last_os_error());
    fd as i32
}

/// Reads at most 4096 bytes and discards them.
pub fn read(fd: i32, count: usize) -> i64 {
    let mut buffer = [0u8; 4096];
    assert!(count <= buffer.len());
    unsafe { libc::syscall(libc::SYS_read, fd, buffer.as_mut_ptr(), count) }
}

pub fn close(fd: i32) {
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

pub fn dup2(from: i32, to: i32) {
    // aarch64 has no dup2.
    #[cfg(target_arch = "aarch64")]
    let fd = unsafe { libc::syscall(libc::SYS_dup3, from, to, 0) };
    #[cfg(not(target_arch = "aarch64"))]
    let fd = unsafe { libc::syscall(libc::SYS_dup2, from, to) };
    assert_eq!(fd, i64::from(to), "dup2: {}", std::io::Error::last_os_error());
}

fn must(returned: i64, what: &str) {
    assert!(returned >= 0, "{what}: {}", std::io::Error::last_os_error());
}

fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path has no NUL")
}

/// Exchanges the names of two files.
pub fn exchange(one: &Path, other: &Path) {
    let at = libc::AT_FDCWD;
    must(unsafe { libc::syscall(libc::SYS_renameat2, at, c(one).as_ptr(), at, c(other).as_ptr(), libc::RENAME_EXCHANGE) }, "renameat2");
}

/// Moves this process to its own mount namespace, with private mounts.
pub fn private_mounts() {
    must(unsafe { libc::unshare(libc::CLONE_NEWNS) }.into(), "unshare");
    mount(c"none", Path::new("/"), libc::MS_REC | libc::MS_PRIVATE);
}

pub fn bind(from: &Path, to: &Path) {
    mount(&c(from), to, libc::MS_BIND);
}

pub fn move_mount(from: &Path, to: &Path) {
    mount(&c(from), to, libc::MS_MOVE);
}

fn mount(from: &std::ffi::CStr, to: &Path, flags: libc::c_ulong) {
    must(unsafe { libc::mount(from.as_ptr(), c(to).as_ptr(), std::ptr::null(), flags, std::ptr::null()) }.into(), "mount");
}

pub fn detach(mount: &Path) {
    must(unsafe { libc::umount2(c(mount).as_ptr(), libc::MNT_DETACH) }.into(), "umount2");
}

pub fn chroot(dir: &Path) {
    must(unsafe { libc::chroot(c(dir).as_ptr()) }.into(), "chroot");
}

/// Changes to the directory of this descriptor.
pub fn chroot_to(dir: i32) {
    must(unsafe { libc::fchdir(dir) }.into(), "fchdir");
    chroot(Path::new("."));
}

/// The number of the call that [`poll`] makes. aarch64 has no poll.
#[cfg(target_arch = "aarch64")]
pub const POLL: libc::c_long = libc::SYS_ppoll;
#[cfg(not(target_arch = "aarch64"))]
pub const POLL: libc::c_long = libc::SYS_poll;

/// Waits for files. Where there is poll(2), a register has the duration, and a tracer sees it there.
pub fn poll(files: &mut [libc::pollfd], milliseconds: u64) -> i64 {
    let start = if files.is_empty() { std::ptr::null_mut() } else { files.as_mut_ptr() };
    #[cfg(target_arch = "aarch64")]
    let (duration, nothing) = {
        let (seconds, nanoseconds) = (milliseconds / 1000, milliseconds % 1000 * 1_000_000);
        (libc::timespec { tv_sec: seconds as i64, tv_nsec: nanoseconds as i64 }, std::ptr::null::<libc::sigset_t>())
    };
    #[cfg(target_arch = "aarch64")]
    return unsafe { told::syscall!(POLL, start, files.len(), &raw const duration, nothing, 0) };
    #[cfg(not(target_arch = "aarch64"))]
    unsafe {
        told::syscall!(POLL, start, files.len(), milliseconds)
    }
}

/// Waits until a thread sleeps in the call `number`, of which `task` is the directory in /proc. A thread that a tracer
/// has stopped at the entry of the call does not sleep in it.
pub fn wait_until_asleep(task: &Path, number: libc::c_long) {
    let is_in_call = || beginning(&task.join("syscall")).starts_with(&format!("{number} "));
    // The state follows the name of the program in parentheses.
    let is_asleep = || beginning(&task.join("stat")).rsplit(')').next().is_some_and(|rest| rest.starts_with(" S"));
    while !(is_in_call() && is_asleep()) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Sleeps.
pub fn poll_nothing(milliseconds: u64) {
    poll(&mut [], milliseconds);
}

/// Returns the beginning of a file, by one call of read(2); nothing if the file cannot be read.
fn beginning(path: &Path) -> String {
    let mut bytes = [0; 512];
    let count = std::fs::File::open(path).and_then(|mut file| file.read(&mut bytes)).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

/// Starts threads one after the other, and returns when each of them sleeps in [`poll`], for a minute.
pub fn sleepers(count: usize) -> Vec<std::thread::JoinHandle<()>> {
    let start = |_| {
        let (begun, begins) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            begun.send(unsafe { libc::gettid() }).expect("somebody waits");
            poll_nothing(60_000);
        });
        let tid = begins.recv().expect("the thread begins");
        wait_until_asleep(format!("/proc/self/task/{tid}").as_ref(), POLL);
        thread
    };
    (0..count).map(start).collect()
}

/// Waits this many milliseconds, and returns whether stdin has data or has ended.
pub fn poll_stdin(milliseconds: u64) -> bool {
    poll(&mut [libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 }], milliseconds) > 0
}

/// Makes the kernel kill this process when the thread that started it ends.
pub fn die_with_the_parent() {
    must(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }.into(), "prctl");
}

pub fn gettid() -> i32 {
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Returns the path of this program; `/proc/self/exe` would start it under the name `exe`.
pub fn myself() -> PathBuf {
    std::env::current_exe().expect("/proc is mounted")
}

/// Returns CLOCK_MONOTONIC in nanoseconds, by the vDSO and without a system call.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Runs `body` in a child process and returns its pid; the child exits with status 0 after `body`.
pub fn fork(body: impl FnOnce()) -> i32 {
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        told::forget();
        body();
        told::print();
        unsafe { libc::_exit(0) };
    }
    pid
}

pub fn wait(pid: i32) {
    let mut status = 0;
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((waited, status), (pid, 0), "child {pid} ended with wait status {status:#x}");
}

/// Waits on this futex word while it is 0, until another thread wakes it.
pub fn wait_at(word: &AtomicU32) {
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, 0, std::ptr::null::<libc::timespec>())
    };
}

/// Wakes all threads that wait on this futex word.
pub fn wake_all(word: &AtomicU32) {
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX) };
}
