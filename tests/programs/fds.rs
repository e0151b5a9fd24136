//! Descriptors that change under a tracer's eyes. A read of DIR/eleven asks for 11 bytes and one of DIR/twenty-two for 22, so that every traced read tells
//! by its count which file it truly was.

use crate::raw;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

const ELEVEN: usize = 11;
const TWENTY_TWO: usize = 22;

struct Files {
    eleven: PathBuf,
    twenty_two: PathBuf,
}

pub fn run(scene: &str, count: u64, dir: &Path) {
    let files = Files { eleven: dir.join("eleven"), twenty_two: dir.join("twenty-two") };
    match scene {
        "alternate" => (0..count).for_each(|_| alternate(&files)),
        "dup2" => (0..count).for_each(|_| dup2(&files)),
        "fork" => (0..count).for_each(|_| fork(&files)),
        "threads" => threads(&files, count),
        "cloexec" => cloexec(&files, count, dir),
        "passed" => passed(&files, count),
        "renamed" => (0..count).for_each(|_| renamed(&files, dir)),
        "held" => held(&files, count),
        _ => panic!("no scene {scene:?}"),
    }
}

fn open_read_close(path: &Path, count: usize) {
    let fd = raw::open(path, 0);
    raw::read(fd, count);
    raw::close(fd);
}

fn alternate(files: &Files) {
    open_read_close(&files.eleven, ELEVEN);
    open_read_close(&files.twenty_two, TWENTY_TWO);
}

/// One number, two files, never closed in between.
fn dup2(files: &Files) {
    const SHARED: i32 = 100;
    let (eleven, twenty_two) = (raw::open(&files.eleven, 0), raw::open(&files.twenty_two, 0));
    raw::dup2(eleven, SHARED);
    raw::read(SHARED, ELEVEN);
    raw::dup2(twenty_two, SHARED);
    raw::read(SHARED, TWENTY_TWO);
    [eleven, twenty_two, SHARED].into_iter().for_each(raw::close);
}

/// The child's number means another file than the parent's.
fn fork(files: &Files) {
    let fd = raw::open(&files.eleven, 0);
    let child = raw::fork(|| {
        raw::read(fd, ELEVEN);
        raw::close(fd);
        let same = raw::open(&files.twenty_two, 0);
        assert_eq!(same, fd);
        raw::read(same, TWENTY_TWO);
    });
    raw::read(fd, ELEVEN);
    raw::wait(child);
    raw::read(fd, ELEVEN);
    raw::close(fd);
}

/// Two threads share one table of descriptors, and the kernel gives each the number the other has just closed.
fn threads(files: &Files, count: u64) {
    std::thread::scope(|scope| {
        scope.spawn(|| (0..count).for_each(|_| open_read_close(&files.eleven, ELEVEN)));
        scope.spawn(|| (0..count).for_each(|_| open_read_close(&files.twenty_two, TWENTY_TWO)));
    });
}

/// The exec closes one file, and the program after it opens the other under the same number.
fn cloexec(files: &Files, left: u64, dir: &Path) {
    open_read_close(&files.twenty_two, TWENTY_TWO);
    let fd = raw::open(&files.eleven, libc::O_CLOEXEC);
    raw::read(fd, ELEVEN);
    if left > 1 {
        let next = std::process::Command::new(raw::myself()).args(["fds", "cloexec", &(left - 1).to_string()]).arg(dir).exec();
        panic!("exec: {next}");
    }
}

/// A descriptor that another process opened and sent over a socket.
fn passed(files: &Files, count: u64) {
    let mut sockets = [0; 2];
    assert_eq!(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, sockets.as_mut_ptr()) }, 0);
    let child = raw::fork(|| {
        for i in 0..count {
            let path = if i % 2 == 0 { &files.eleven } else { &files.twenty_two };
            let fd = raw::open(path, 0);
            send(sockets[0], fd);
            raw::close(fd);
        }
    });
    for i in 0..count {
        let fd = receive(sockets[1]);
        raw::read(fd, if i % 2 == 0 { ELEVEN } else { TWENTY_TWO });
        raw::close(fd);
    }
    raw::wait(child);
}

/// A message of one byte and one descriptor, in `control`.
fn message(byte: &mut libc::iovec, control: &mut [u64; 3]) -> libc::msghdr {
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (byte, 1);
    (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(control) as _);
    message
}

fn send(socket: i32, fd: i32) {
    let (mut byte, mut control) = ([0u8], [20, u64::from(libc::SOL_SOCKET as u32) | (libc::SCM_RIGHTS as u64) << 32, fd as u64]);
    let mut iov = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let message = message(&mut iov, &mut control);
    assert_eq!(unsafe { libc::sendmsg(socket, &raw const message, 0) }, 1, "sendmsg: {}", std::io::Error::last_os_error());
}

fn receive(socket: i32) -> i32 {
    let (mut byte, mut control) = ([0u8], [0u64; 3]);
    let mut iov = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut message = message(&mut iov, &mut control);
    assert_eq!(unsafe { libc::recvmsg(socket, &raw mut message, 0) }, 1, "recvmsg: {}", std::io::Error::last_os_error());
    control[2] as i32
}

/// A file, and then its directory, get another name while it is open: a read of 33 bytes is one of `moved`, one of 44 of `moved` in `elsewhere`.
fn renamed(files: &Files, dir: &Path) {
    let (first, second) = (dir.join("first"), dir.join("elsewhere"));
    std::fs::create_dir_all(&first).expect("the directory is writable");
    let (file, moved) = (first.join("file"), first.join("moved"));
    std::fs::copy(&files.eleven, &file).expect("there is room");
    let fd = raw::open(&file, 0);
    std::fs::rename(&file, &moved).expect("it is there");
    raw::read(fd, 33);
    std::fs::rename(&first, &second).expect("it is there");
    raw::read(fd, 44);
    std::fs::remove_dir_all(&second).expect("it is there");
    raw::read(fd, 55);
    raw::close(fd);
}

/// Files that stay open while a tracer has all the time to find out what they are.
fn held(files: &Files, count: u64) {
    let (eleven, twenty_two) = (raw::open(&files.eleven, 0), raw::open(&files.twenty_two, 0));
    for _ in 0..count {
        raw::read(eleven, ELEVEN);
        raw::read(twenty_two, TWENTY_TWO);
        raw::poll_nothing(50);
    }
}
