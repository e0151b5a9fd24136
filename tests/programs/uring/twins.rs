//! Work that is done twice: by a system call, and then by a request of io_uring with the same arguments.

use super::ring::{Request, Ring};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const READV: u8 = 1;
const WRITEV: u8 = 2;
const FSYNC: u8 = 3;
const SYNC_FILE_RANGE: u8 = 8;
const SENDMSG: u8 = 9;
const RECVMSG: u8 = 10;
const ACCEPT: u8 = 13;
const CONNECT: u8 = 16;
const FALLOCATE: u8 = 17;
const OPENAT: u8 = 18;
const STATX: u8 = 21;
const READ: u8 = 22;
const WRITE: u8 = 23;
const FADVISE: u8 = 24;
const SEND: u8 = 26;
const RECV: u8 = 27;
const OPENAT2: u8 = 28;
const EPOLL_CTL: u8 = 29;
const SHUTDOWN: u8 = 34;
const RENAMEAT: u8 = 35;
const UNLINKAT: u8 = 36;
const MKDIRAT: u8 = 37;
const SYMLINKAT: u8 = 38;
const LINKAT: u8 = 39;
const FSETXATTR: u8 = 41;
const SETXATTR: u8 = 42;
const FGETXATTR: u8 = 43;
const GETXATTR: u8 = 44;
const SOCKET: u8 = 45;

/// The ring, and the number of the next request.
struct Twins {
    ring: Ring,
    next: u64,
}

impl Twins {
    /// Makes the system call, then `between`, which undoes it, and then the request. Returns both results.
    fn both(&mut self, nr: i64, args: &[i64], request: Request, between: impl FnOnce(i64)) -> [i64; 2] {
        let arg = |at: usize| args.get(at).copied().unwrap_or_default();
        let returned = unsafe { libc::syscall(nr, arg(0), arg(1), arg(2), arg(3), arg(4), arg(5)) };
        let result = if returned < 0 { -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or_default()) } else { returned };
        between(result);
        self.next += 1;
        self.ring.submit(&[Request { user_data: self.next, ..request }], 1);
        let completions = self.ring.completions();
        let [(_, requested, _)] = completions[..] else { panic!("one request has the completions {completions:?}") };
        assert_eq!(result < 0, requested < 0, "request {}: {requested}, syscall: {result}", request.opcode);
        [result, requested.into()]
    }
}

fn close(fd: i64) {
    assert_eq!(unsafe { libc::close(fd as i32) }, 0);
}

fn pointer<T>(of: &T) -> u64 {
    &raw const *of as u64
}

/// Does the work. The file has at least 11 bytes, and its directory may be written to.
pub fn run(file: &Path) {
    let mut twins = Twins { ring: Ring::new(8, 0, 0), next: 0x6000 };
    let dir = file.parent().expect("the file is in a directory");
    let name = |name: &str| CString::new(dir.join(name).as_os_str().as_bytes()).expect("a path has no NUL");
    let path = CString::new(file.as_os_str().as_bytes()).expect("a path has no NUL");
    let fd = files(&mut twins, &path);
    names(&mut twins, &path, [name("one"), name("two")]);
    attributes(&mut twins, fd, &path);
    close(fd);
    sockets(&mut twins, &name("socket"));
}

/// Opens and reads the file. Returns its descriptor.
fn files(twins: &mut Twins, path: &CString) -> i64 {
    let at = libc::AT_FDCWD;
    let plain = |opcode: u8, fd: i32| Request { opcode, fd, ..Request::default() };
    let [_, opened] = {
        let flags = libc::O_RDWR | libc::O_CLOEXEC;
        let request = Request { address: path.as_ptr() as u64, op_flags: flags as u32, length: 0o600, ..plain(OPENAT, at) };
        twins.both(libc::SYS_openat, &[at.into(), path.as_ptr() as i64, flags.into(), 0o600], request, close)
    };
    let how = [u64::from(libc::O_RDONLY as u32), 0, 0];
    let request = Request { address: path.as_ptr() as u64, offset: pointer(&how), length: 24, ..plain(OPENAT2, at) };
    let [_, second] = twins.both(libc::SYS_openat2, &[at.into(), path.as_ptr() as i64, pointer(&how) as i64, 24], request, close);
    close(second);
    let fd = opened as i32;
    let mut buffer = [0u8; 32];
    let here = buffer.as_mut_ptr() as u64;
    let io = |opcode: u8, length: u32| Request { address: here, length, offset: 2, ..plain(opcode, fd) };
    twins.both(libc::SYS_pread64, &[opened, here as i64, 8, 2], io(READ, 8), drop);
    twins.both(libc::SYS_pwrite64, &[opened, here as i64, 8, 2], io(WRITE, 8), drop);
    let vectors = [libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: 3 }; 2];
    let vectored = |opcode: u8| Request { address: pointer(&vectors), length: 2, offset: 1, ..plain(opcode, fd) };
    twins.both(libc::SYS_preadv2, &[opened, pointer(&vectors) as i64, 2, 1], vectored(READV), drop);
    twins.both(libc::SYS_pwritev2, &[opened, pointer(&vectors) as i64, 2, 1], vectored(WRITEV), drop);
    twins.both(libc::SYS_fsync, &[opened], plain(FSYNC, fd), drop);
    let advice = libc::POSIX_FADV_SEQUENTIAL;
    let advise = Request { length: 4096, op_flags: advice as u32, ..plain(FADVISE, fd) };
    twins.both(libc::SYS_fadvise64, &[opened, 0, 4096, advice.into()], advise, drop);
    let range = Request { length: 4096, op_flags: libc::SYNC_FILE_RANGE_WRITE, ..plain(SYNC_FILE_RANGE, fd) };
    twins.both(libc::SYS_sync_file_range, &[opened, 0, 4096, libc::SYNC_FILE_RANGE_WRITE.into()], range, drop);
    let room = Request { offset: 1, address: 5, length: libc::FALLOC_FL_KEEP_SIZE as u32, ..plain(FALLOCATE, fd) };
    twins.both(libc::SYS_fallocate, &[opened, libc::FALLOC_FL_KEEP_SIZE.into(), 1, 5], room, drop);
    let mut stat = [0u8; 256];
    let mask = libc::STATX_BASIC_STATS;
    let described = stat.as_mut_ptr() as u64;
    let request = Request { address: path.as_ptr() as u64, length: mask, offset: described, ..plain(STATX, at) };
    twins.both(libc::SYS_statx, &[at.into(), path.as_ptr() as i64, 0, mask.into(), described as i64], request, drop);
    opened
}

/// Makes, renames and removes names.
fn names(twins: &mut Twins, file: &CString, [one, two]: [CString; 2]) {
    let at = libc::AT_FDCWD;
    let text = |path: &CString| path.as_ptr() as u64;
    let remove = |path: &CString| assert_eq!(unsafe { libc::unlink(path.as_ptr()) }, 0);
    let plain = |opcode: u8, path: &CString| Request { opcode, fd: at, address: text(path), ..Request::default() };
    let request = Request { length: 0o755, ..plain(MKDIRAT, &one) };
    twins.both(libc::SYS_mkdirat, &[at.into(), text(&one) as i64, 0o755], request, |_| {
        assert_eq!(unsafe { libc::rmdir(one.as_ptr()) }, 0);
    });
    let request = Request { op_flags: libc::AT_REMOVEDIR as u32, ..plain(UNLINKAT, &one) };
    twins.both(libc::SYS_unlinkat, &[at.into(), text(&one) as i64, libc::AT_REMOVEDIR.into()], request, |_| {
        assert_eq!(unsafe { libc::mkdir(one.as_ptr(), 0o755) }, 0);
    });
    let request = Request { offset: text(&one), ..plain(SYMLINKAT, file) };
    twins.both(libc::SYS_symlinkat, &[text(file) as i64, at.into(), text(&one) as i64], request, |_| remove(&one));
    remove(&one);
    let request = Request { length: at as u32, offset: text(&one), ..plain(LINKAT, file) };
    twins.both(libc::SYS_linkat, &[at.into(), text(file) as i64, at.into(), text(&one) as i64, 0], request, |_| remove(&one));
    let request = Request { length: at as u32, offset: text(&two), ..plain(RENAMEAT, &one) };
    twins.both(libc::SYS_renameat2, &[at.into(), text(&one) as i64, at.into(), text(&two) as i64, 0], request, |_| {
        assert_eq!(unsafe { libc::rename(two.as_ptr(), one.as_ptr()) }, 0);
    });
    remove(&two);
}

/// Sets and gets extended attributes, which not every file system has.
fn attributes(twins: &mut Twins, fd: i64, path: &CString) {
    let (name, value) = (c"user.rtrace", *b"value");
    let mut room = [0u8; 16];
    let (name, value, got) = (name.as_ptr() as u64, value.as_ptr() as u64, room.as_mut_ptr() as u64);
    let request = |opcode: u8, value: u64, length: u32| Request {
        opcode,
        fd: fd as i32,
        address: name,
        offset: value,
        length,
        more: [0, path.as_ptr() as u64, 0],
        ..Request::default()
    };
    let of_file = |opcode: u8, value: u64, length: u32| Request { more: [0; 3], ..request(opcode, value, length) };
    let of_path = |opcode: u8, value: u64, length: u32| Request { fd: 0, ..request(opcode, value, length) };
    let path = path.as_ptr() as i64;
    twins.both(libc::SYS_fsetxattr, &[fd, name as i64, value as i64, 5, 0], of_file(FSETXATTR, value, 5), drop);
    twins.both(libc::SYS_setxattr, &[path, name as i64, value as i64, 5, 0], of_path(SETXATTR, value, 5), drop);
    twins.both(libc::SYS_fgetxattr, &[fd, name as i64, got as i64, 16], of_file(FGETXATTR, got, 16), drop);
    twins.both(libc::SYS_getxattr, &[path, name as i64, got as i64, 16], of_path(GETXATTR, got, 16), drop);
}

/// Sends and receives, by a pair of sockets and by one with a name.
fn sockets(twins: &mut Twins, path: &CString) {
    let plain = |opcode: u8, fd: i64| Request { opcode, fd: fd as i32, ..Request::default() };
    let [_, server] = {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        let request = Request { fd: libc::AF_UNIX, offset: kind as u64, ..plain(SOCKET, 0) };
        twins.both(libc::SYS_socket, &[libc::AF_UNIX.into(), kind.into(), 0], request, close)
    };
    let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as u16, sun_path: [0; 108] };
    address.sun_path.iter_mut().zip(path.as_bytes()).for_each(|(to, from)| *to = *from as libc::c_char);
    let length = (size_of::<libc::sa_family_t>() + path.as_bytes().len() + 1) as u32;
    assert_eq!(unsafe { libc::bind(server as i32, (&raw const address).cast(), length) }, 0);
    assert_eq!(unsafe { libc::listen(server as i32, 4) }, 0);
    let [client, next] = std::array::from_fn(|_| i64::from(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) }));
    let again = Request { address: pointer(&address), offset: length.into(), ..plain(CONNECT, client) };
    twins.both(libc::SYS_connect, &[client, pointer(&address) as i64, length.into()], again, |_| {
        // A new socket with the same number.
        assert_eq!(i64::from(unsafe { libc::dup2(next as i32, client as i32) }), client);
        close(next);
    });
    let accept = Request { op_flags: libc::SOCK_CLOEXEC as u32, ..plain(ACCEPT, server) };
    let [_, accepted] = twins.both(libc::SYS_accept4, &[server, 0, 0, libc::SOCK_CLOEXEC.into()], accept, close);
    let mut text = *b"message";
    let here = text.as_mut_ptr() as u64;
    let send = Request { address: here, length: 7, op_flags: libc::MSG_NOSIGNAL as u32, ..plain(SEND, client) };
    twins.both(libc::SYS_sendto, &[client, here as i64, 7, libc::MSG_NOSIGNAL.into(), 0, 0], send, drop);
    let receive = Request { address: here, length: 7, ..plain(RECV, accepted) };
    twins.both(libc::SYS_recvfrom, &[accepted, here as i64, 7, 0, 0, 0], receive, drop);
    let vector = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: 7 };
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw const vector as *mut libc::iovec, 1);
    let messages = |opcode: u8, fd: i64| Request { address: pointer(&message), length: 1, ..plain(opcode, fd) };
    twins.both(libc::SYS_sendmsg, &[client, pointer(&message) as i64, 0], messages(SENDMSG, client), drop);
    twins.both(libc::SYS_recvmsg, &[accepted, pointer(&message) as i64, 0], messages(RECVMSG, accepted), drop);
    let polling = i64::from(unsafe { libc::epoll_create1(0) });
    let event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0x7777 };
    let add = Request { address: pointer(&event), length: libc::EPOLL_CTL_ADD as u32, offset: client as u64, ..plain(EPOLL_CTL, polling) };
    // The second time, the descriptor would be there already.
    twins.both(libc::SYS_epoll_ctl, &[polling, libc::EPOLL_CTL_ADD.into(), client, pointer(&event) as i64], add, |_| {
        close(polling);
        assert_eq!(i64::from(unsafe { libc::epoll_create1(0) }), polling);
    });
    let down = Request { length: libc::SHUT_RDWR as u32, ..plain(SHUTDOWN, client) };
    twins.both(libc::SYS_shutdown, &[client, libc::SHUT_RDWR.into()], down, drop);
    assert_eq!(unsafe { libc::unlink(path.as_ptr()) }, 0);
}
