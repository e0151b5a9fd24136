//! Descriptors that change while they are traced. A read of DIR/eleven has a count of 11 bytes, and one of
//! DIR/twenty-two a count of 22, so the count of every traced read says which file it really was.

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
        "replaced" => (0..count).for_each(|_| replaced(&files, dir)),
        "recycled" => (0..count).for_each(|_| recycled(dir)),
        "swapped" => swapped(&files, count, dir),
        "rooted" => rooted(&files, count, dir),
        "elsewhere" => elsewhere(&files),
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

/// One number is used for two files in turn, without a close in between.
fn dup2(files: &Files) {
    const SHARED: i32 = 100;
    let (eleven, twenty_two) = (raw::open(&files.eleven, 0), raw::open(&files.twenty_two, 0));
    raw::dup2(eleven, SHARED);
    raw::read(SHARED, ELEVEN);
    raw::dup2(twenty_two, SHARED);
    raw::read(SHARED, TWENTY_TWO);
    [eleven, twenty_two, SHARED].into_iter().for_each(raw::close);
}

/// The same number is another file in the child than in the parent.
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

/// Two threads share one table of descriptors, and each open returns the number that the other thread has just closed.
fn threads(files: &Files, count: u64) {
    std::thread::scope(|scope| {
        scope.spawn(|| (0..count).for_each(|_| open_read_close(&files.eleven, ELEVEN)));
        scope.spawn(|| (0..count).for_each(|_| open_read_close(&files.twenty_two, TWENTY_TWO)));
    });
}

/// The exec closes one file, and the new program opens the other file under the same number.
fn cloexec(files: &Files, left: u64, dir: &Path) {
    open_read_close(&files.twenty_two, TWENTY_TWO);
    let fd = raw::open(&files.eleven, libc::O_CLOEXEC);
    raw::read(fd, ELEVEN);
    if left > 1 {
        let next = std::process::Command::new(raw::myself()).args(["fds", "cloexec", &(left - 1).to_string()]).arg(dir).exec();
        panic!("exec: {next}");
    }
}

/// Another process opens a descriptor and sends it over a socket.
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

/// Builds a message of one byte, with one descriptor in `control`.
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

/// An open file, and then its directory, are renamed: a read of 33 bytes is from `moved`, and one of 44 bytes is from
/// `moved` in `elsewhere`.
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

/// Another file takes the name of an open file: a read of 66 bytes is from `name (deleted)`, and one of 77 bytes is
/// from `name`.
fn replaced(files: &Files, dir: &Path) {
    let (name, newer) = (dir.join("name"), dir.join("newer"));
    std::fs::copy(&files.eleven, &name).expect("there is room");
    std::fs::copy(&files.twenty_two, &newer).expect("there is room");
    let old = raw::open(&name, 0);
    std::fs::rename(&newer, &name).expect("it is there");
    let new = raw::open(&name, 0);
    raw::read(old, 66);
    raw::read(new, 77);
    raw::close(old);
    raw::close(new);
}

/// A tree is removed, and another one is created that reuses its kernel memory and has the same last name: a read of 33
/// bytes is from a file below `first`, and one of 44 bytes from one below `elsewhere`.
fn recycled(dir: &Path) {
    for (top, count) in [("first", 33), ("elsewhere", 44)] {
        let top = dir.join(top);
        let below = top.join("a").join("b");
        std::fs::create_dir_all(&below).expect("there is room");
        let file = below.join("moved");
        std::fs::write(&file, [b'.'; 64]).expect("there is room");
        let fd = raw::open(&file, 0);
        raw::read(fd, count);
        raw::close(fd);
        std::fs::remove_dir_all(&top).expect("it is there");
    }
}

/// Two directories exchange their names all the time, and a read in between may be from either. After that, a read of
/// 33 bytes is from `first`, and one of 44 bytes is from `elsewhere`.
fn swapped(files: &Files, count: u64, dir: &Path) {
    let [first, second] = ["first", "elsewhere"].map(|name| dir.join(name));
    for path in [&first, &second] {
        std::fs::create_dir_all(path).expect("there is room");
    }
    std::fs::copy(&files.eleven, first.join("moved")).expect("there is room");
    let fd = raw::open(&first.join("moved"), 0);
    let mut is_first = true;
    for _ in 0..count {
        std::thread::scope(|scope| {
            let swaps = scope.spawn(|| (0..51).for_each(|_| raw::exchange(&first, &second)));
            while !swaps.is_finished() {
                raw::read(fd, 99);
            }
        });
        is_first = !is_first;
        raw::read(fd, if is_first { 33 } else { 44 });
    }
    raw::close(fd);
}

/// The same file is opened below another root and through another mount: a read of 88 bytes is from `/eleven`, one of
/// 11 bytes is from DIR/eleven, and one of 22 bytes is from the file `twenty-two` on a mount that was moved.
fn rooted(files: &Files, count: u64, dir: &Path) {
    let child = raw::fork(|| {
        raw::private_mounts();
        let (mount, moved) = (dir.join("mount"), dir.join("moved"));
        for path in [&mount, &moved] {
            std::fs::create_dir_all(path).expect("there is room");
        }
        raw::bind(dir, &mount);
        let fd = raw::open(&mount.join("twenty-two"), 0);
        let root = raw::open(Path::new("/"), 0);
        let plain = raw::open(&files.eleven, 0);
        for _ in 0..count {
            raw::read(plain, ELEVEN);
            raw::read(fd, TWENTY_TWO);
            raw::chroot(dir);
            raw::read(plain, 88);
            raw::read(raw::open(Path::new("/eleven"), 0), 88);
            raw::chroot_to(root);
        }
        raw::move_mount(&mount, &moved);
        raw::read(fd, 87);
        raw::detach(&moved);
        raw::read(fd, 86);
    });
    raw::wait(child);
}

/// Calls with descriptors in an array, and with descriptors of another process. Under those numbers, this process has
/// other files or none.
fn elsewhere(files: &Files) {
    const HERE: i32 = 100;
    const THERE: i32 = 101;
    let (eleven, twenty_two) = (raw::open(&files.eleven, 0), raw::open(&files.twenty_two, 0));
    let child = raw::fork(|| {
        raw::dup2(eleven, HERE);
        raw::dup2(twenty_two, THERE);
        raw::dup2(eleven, 102);
        raw::poll_nothing(10_000);
    });
    raw::dup2(twenty_two, HERE);
    raw::dup2(eleven, THERE);
    let mut polled = [HERE, THERE, -1, HERE].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    raw::poll(&mut polled, 0);
    unsafe {
        let pidfd = libc::syscall(libc::SYS_pidfd_open, child, 0);
        while libc::syscall(libc::SYS_kcmp, child, libc::getpid(), 0, 102, eleven) != 0 {
            raw::poll_nothing(1);
        }
        libc::syscall(libc::SYS_pidfd_getfd, pidfd, 102, 0);
        libc::syscall(libc::SYS_kcmp, child, libc::getpid(), 0, HERE, HERE);
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}

/// Files that stay open, so that a tracer has enough time to read their paths.
fn held(files: &Files, count: u64) {
    let (eleven, twenty_two) = (raw::open(&files.eleven, 0), raw::open(&files.twenty_two, 0));
    for _ in 0..count {
        raw::read(eleven, ELEVEN);
        raw::read(twenty_two, TWENTY_TWO);
        raw::poll_nothing(50);
    }
}
