//! One open file of every kind. The program makes one call for each, `lseek(fd, MARK, 9)`, which fails, and prints one
//! line with the file's name in hexadecimal digits, in the same order.
//!
//! The name is that of /proc/self/fd/N, except that sockets have the addresses that they are bound and connected to,
//! and pidfds have their process.

use crate::{raw, told};
use std::ffi::CString;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The offset of the calls that show a file.
const MARK: i64 = 7777;

/// Kinds that this kernel lacks are left out.
pub fn run(dir: &Path) {
    files(dir);
    nameless();
    internet();
    unix(dir);
    other_sockets();
}

fn show(fd: &impl AsRawFd) {
    let name = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).expect("/proc is mounted");
    show_as(fd, name.as_os_str().as_bytes());
}

fn show_as(fd: &impl AsRawFd, name: &[u8]) {
    unsafe { told::syscall!(libc::SYS_lseek, fd.as_raw_fd(), MARK, 9) };
    println!("{}", name.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
}

/// Returns `None` if the kernel does not have this kind.
fn made(fd: i64) -> Option<OwnedFd> {
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn open(path: impl AsRef<Path>, flags: i32) -> Option<OwnedFd> {
    let path = CString::new(path.as_ref().as_os_str().as_bytes()).expect("a path has no NUL");
    made(i64::from(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o600) }))
}

fn files(dir: &Path) {
    let new = |name: &[u8]| {
        let path = dir.join(std::ffi::OsStr::from_bytes(name));
        std::fs::OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map(|file| (path, file))
            .expect("the directory is writable")
    };
    for name in [&b"plain"[..], b"with space", b"line\nbreak", b"angle<>\"quote\\", b"\xff\xfe", &[b'n'; 255]] {
        show(&new(name).1);
    }
    let (path, file) = new(b"unlinked");
    std::fs::remove_file(path).expect("it is there");
    show(&file);
    let (path, file) = new(b"before");
    std::fs::rename(path, dir.join("after")).expect("it is there");
    show(&file);
    let (old, replaced) = new(b"replaced");
    std::fs::rename(new(b"newer").0, &old).expect("it is there");
    show(&replaced);
    show(&open(old, libc::O_RDONLY).expect("it is there"));
    for path in ["/", "/proc/self/status", "/proc/self/fd", "/dev/null", "/dev/shm", "/dev/pts", "/sys/kernel", "/dev/ptmx"] {
        open(path, libc::O_RDONLY).iter().for_each(show);
    }
    open(dir, libc::O_TMPFILE | libc::O_RDWR).iter().for_each(show);
    std::os::unix::fs::symlink("plain", dir.join("link")).expect("there is none");
    open(dir.join("link"), libc::O_PATH | libc::O_NOFOLLOW).iter().for_each(show);
    let fifo = CString::new(dir.join("fifo").as_os_str().as_bytes()).expect("a path has no NUL");
    unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) };
    open(dir.join("fifo"), libc::O_RDWR).iter().for_each(show);
    terminal();
    let deep = (0..56).fold(dir.to_owned(), |path, i| path.join(format!("{i}")));
    std::fs::create_dir_all(&deep).expect("there is room");
    show(&open(deep, libc::O_RDONLY).expect("it is there"));
}

fn terminal() {
    let Some(master) = open("/dev/ptmx", libc::O_RDWR | libc::O_NOCTTY) else { return };
    let mut number = 0u32;
    let zero = 0i32;
    unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const zero) };
    unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &raw mut number) };
    open(format!("/dev/pts/{number}"), libc::O_RDWR | libc::O_NOCTTY).iter().for_each(show);
}

/// Files that are in no directory.
fn nameless() {
    let mut pipe = [0; 2];
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    pipe.into_iter().filter_map(|fd| made(i64::from(fd))).for_each(|end| show(&end));
    let mut signals: libc::sigset_t = unsafe { std::mem::zeroed() };
    unsafe { libc::sigemptyset(&raw mut signals) };
    // Each file is closed before the next is opened, so that they have the same number.
    for _ in 0..3 {
        for make in [
            || unsafe { libc::syscall(libc::SYS_eventfd2, 0, 0) },
            || unsafe { libc::syscall(libc::SYS_timerfd_create, libc::CLOCK_MONOTONIC, 0) },
            || unsafe { libc::syscall(libc::SYS_epoll_create1, 0) },
            || unsafe { libc::syscall(libc::SYS_inotify_init1, 0) },
            || unsafe { libc::syscall(libc::SYS_fanotify_init, 0, 0) },
            || unsafe { libc::syscall(libc::SYS_userfaultfd, 1) },
            || unsafe { libc::syscall(libc::SYS_memfd_create, c"a memfd".as_ptr(), 0) },
            || unsafe { libc::syscall(libc::SYS_memfd_create, c"b memfd".as_ptr(), 0) },
            || unsafe { libc::syscall(libc::SYS_memfd_secret, 0) },
            || unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, [0u64; 15].as_mut_ptr()) },
            || unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, [LANDLOCK].as_ptr(), 8, 0) },
        ] {
            made(make()).iter().for_each(show);
        }
        made(unsafe { libc::syscall(libc::SYS_signalfd4, -1, &raw const signals, 8, 0) }).iter().for_each(show);
        made(bpf_map()).iter().for_each(show);
    }
    for namespace in ["cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "time", "user", "uts"] {
        open(format!("/proc/self/ns/{namespace}"), libc::O_RDONLY).iter().for_each(show);
    }
    let pid = std::process::id();
    let child = raw::fork(|| raw::poll_nothing(10_000));
    for pid in [pid as i32, child] {
        made(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) }).iter().for_each(|fd| show_as(fd, format!("pid:{pid}").as_bytes()));
    }
    raw::wait_until_asleep(format!("/proc/{child}/task/{child}").as_ref(), raw::POLL);
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}

/// LANDLOCK_ACCESS_FS_EXECUTE
const LANDLOCK: u64 = 1;

/// Creates a BPF array map of one number.
fn bpf_map() -> i64 {
    let attributes = [2u32, 4, 4, 1, 0, 0];
    unsafe { libc::syscall(libc::SYS_bpf, 0, attributes.as_ptr(), size_of_val(&attributes)) }
}

fn inode(fd: &impl AsRawFd) -> u64 {
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    assert_eq!(unsafe { libc::fstat(fd.as_raw_fd(), &raw mut stat) }, 0);
    stat.st_ino
}

fn show_ends(protocol: &str, fd: &impl AsRawFd, local: SocketAddr, remote: Option<SocketAddr>) {
    let remote = remote.map_or(String::new(), |remote| format!("->{remote}"));
    show_as(fd, format!("{protocol}:[{local}{remote}]").as_bytes());
}

fn socket(family: i32, kind: i32, protocol: i32) -> Option<OwnedFd> {
    made(i64::from(unsafe { libc::socket(family, kind, protocol) }))
}

fn internet() {
    for (home, tcp, udp, family) in [("127.0.0.1:0", "TCP", "UDP", libc::AF_INET), ("[::1]:0", "TCPv6", "UDPv6", libc::AF_INET6)] {
        let Ok(listener) = TcpListener::bind(home) else { continue };
        let unbound = socket(family, libc::SOCK_STREAM, 0).expect("the family is there");
        show_as(&unbound, format!("{tcp}:[{}]", inode(&unbound)).as_bytes());
        let at = listener.local_addr().expect("it is bound");
        show_ends(tcp, &listener, at, None);
        let client = TcpStream::connect(at).expect("it listens");
        let (server, from) = listener.accept().expect("somebody came");
        show_ends(tcp, &client, from, Some(at));
        show_ends(tcp, &server, at, Some(from));
        let (one, other) = (UdpSocket::bind(home).expect("there is a port"), UdpSocket::bind(home).expect("there is a port"));
        let (near, far) = (one.local_addr().expect("it is bound"), other.local_addr().expect("it is bound"));
        // The name of this socket changes.
        show_ends(udp, &one, near, None);
        one.connect(far).expect("it needs nobody");
        show_ends(udp, &one, near, Some(far));
        one.connect(near).expect("it needs nobody");
        show_ends(udp, &one, near, Some(near));
    }
    // A raw socket shows its protocol as the port.
    socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP).iter().for_each(|raw| show_as(raw, b"RAW:[0.0.0.0:1]"));
    socket(libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6).iter().for_each(|raw| show_as(raw, b"RAWv6:[[::]:58]"));
}

fn unix(dir: &Path) {
    let show_unix = |protocol: &str, fd: &dyn AsRawFdDyn, peer: u64, name: &str| {
        let fd = fd.raw();
        let peer = if peer == 0 { String::new() } else { format!("->{peer}") };
        show_as(&fd, format!("{protocol}:[{}{peer}{name}]", inode(&fd)).as_bytes());
    };
    let (one, other) = UnixStream::pair().expect("there are sockets");
    show_unix("UNIX-STREAM", &one, inode(&other), "");
    show_unix("UNIX-STREAM", &other, inode(&one), "");
    let (one, other) = UnixDatagram::pair().expect("there are sockets");
    show_unix("UNIX", &one, inode(&other), "");
    let path: PathBuf = dir.join("listens");
    let name = format!(",\"{}\"", path.display());
    let listener = UnixListener::bind(&path).expect("there is none");
    show_unix("UNIX-STREAM", &listener, 0, &name);
    let client = UnixStream::connect(&path).expect("it listens");
    show_unix("UNIX-STREAM", &client, 0, "");
    let (server, _) = listener.accept().expect("somebody came");
    show_unix("UNIX-STREAM", &client, inode(&server), "");
    show_unix("UNIX-STREAM", &server, inode(&client), &name);
    drop(server);
    show_unix("UNIX-STREAM", &client, 0, "");
    let unbound = UnixDatagram::unbound().expect("there are sockets");
    show_unix("UNIX", &unbound, 0, "");
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as u16;
    let abstract_name = format!("rtrace zoo {}", std::process::id());
    for (to, from) in address.sun_path[1..].iter_mut().zip(abstract_name.bytes()) {
        *to = from as libc::c_char;
    }
    let length = (3 + abstract_name.len()) as u32;
    assert_eq!(unsafe { libc::bind(unbound.as_raw_fd(), (&raw const address).cast(), length) }, 0);
    show_unix("UNIX", &unbound, 0, &format!(",@\"{abstract_name}\""));
}

/// Implements what [`AsRawFd`] does, for references to files of any kind.
trait AsRawFdDyn {
    fn raw(&self) -> i32;
}

impl<T: AsRawFd> AsRawFdDyn for T {
    fn raw(&self) -> i32 {
        self.as_raw_fd()
    }
}

fn other_sockets() {
    for (protocol, name) in
        [(libc::NETLINK_ROUTE, "ROUTE"), (libc::NETLINK_GENERIC, "GENERIC"), (libc::NETLINK_KOBJECT_UEVENT, "KOBJECT_UEVENT")]
    {
        let Some(netlink) = socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol) else { continue };
        show_as(&netlink, format!("NETLINK:[{name}:0]").as_bytes());
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as u16;
        let mut length = size_of_val(&address) as u32;
        assert_eq!(unsafe { libc::bind(netlink.as_raw_fd(), (&raw const address).cast(), length) }, 0);
        unsafe { libc::getsockname(netlink.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
        show_as(&netlink, format!("NETLINK:[{name}:{}]", address.nl_pid).as_bytes());
    }
    let any = i32::from((libc::ETH_P_ALL as u16).to_be());
    socket(libc::AF_PACKET, libc::SOCK_RAW, any).iter().for_each(|packet| show_as(packet, b"PACKET:[ALL@0]"));
    socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0).iter().for_each(|vsock| {
        show_as(vsock, format!("AF_VSOCK:[{}]", inode(vsock)).as_bytes());
        let mut address: libc::sockaddr_vm = unsafe { std::mem::zeroed() };
        (address.svm_family, address.svm_port, address.svm_cid) = (libc::AF_VSOCK as u16, u32::MAX, u32::MAX);
        let mut length = size_of_val(&address) as u32;
        assert_eq!(unsafe { libc::bind(vsock.as_raw_fd(), (&raw const address).cast(), length) }, 0);
        unsafe { libc::getsockname(vsock.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
        show_as(vsock, format!("AF_VSOCK:[*:{}]", address.svm_port).as_bytes());
    });
    socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0).iter().for_each(|alg| show_as(alg, format!("ALG:[{}]", inode(alg)).as_bytes()));
}
