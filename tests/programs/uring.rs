//! Requests of io_uring with known numbers, results and flags. The program prints each completion that it gets, as
//! `request NAME(ARGUMENTS) = RESULT`; `silent NAME(ARGUMENTS)` is a request that succeeded without a completion, which
//! it had not asked for, and `open NAME(ARGUMENTS)` one that is in flight at the end.

mod ring;
mod twins;

use ring::{
    ASYNC, CLOSE, LINK, MSG_RING, NOP, OPENAT, POLL_ADD, POLL_REMOVE, READ, Request, Ring, SETUP_CQSIZE, SETUP_SQPOLL, SKIP_SUCCESS,
    TIMEOUT, UNKNOWN, WRITE,
};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// IORING_POLL_ADD_MULTI
const POLL_MULTI: u32 = 1;
const POLLIN: u32 = libc::POLLIN as u32;
const NO_FD: i32 = 997;

/// Makes the requests of a scene: `plain`, `chains`, `multishot`, `full`, `polled`, `messages` or `twins`. The file has
/// at least 11 bytes.
pub fn run(scene: &str, file: &Path) {
    if scene == "twins" {
        return twins::run(file);
    }
    let mut ring = match scene {
        "full" => Ring::new(2, 2, SETUP_CQSIZE),
        "polled" => Ring::new(32, 0, SETUP_SQPOLL),
        _ => Ring::new(32, 0, 0),
    };
    match scene {
        "plain" | "polled" => plain(&mut ring, file),
        "chains" => chains(&mut ring),
        "multishot" => multishot(&mut ring),
        "full" => full(&mut ring),
        "messages" => messages(&mut ring),
        other => panic!("{other} is no scene"),
    }
    ring.rest();
}

/// Makes `count` requests that do nothing, and prints how many.
pub fn many(count: u64) {
    const BATCH: u64 = 64;
    let mut ring = Ring::new(BATCH as u32, 0, 0);
    let (mut submitted, mut completed) = (0, 0);
    while submitted < count {
        let batch: Vec<Request> = (submitted..count.min(submitted + BATCH)).map(|at| request(NOP, at)).collect();
        ring.submit(&batch, batch.len() as u32);
        submitted += batch.len() as u64;
        completed += ring.completions().len();
    }
    println!("issued io_uring:nop {submitted}\ncompleted {completed}");
}

fn request(opcode: u8, user_data: u64) -> Request {
    Request { opcode, user_data, ..Request::default() }
}

fn pipe() -> [i32; 2] {
    let mut ends = [0; 2];
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    ends
}

fn plain(ring: &mut Ring, file: &Path) {
    let (path, missing) = (CString::new(file.as_os_str().as_bytes()).expect("a path has no NUL"), c"/nonexistent/file");
    let mut buffer = [0u8; 64];
    ring.run(&[request(NOP, 0x1001)], 1);
    let open =
        |user_data, path: &std::ffi::CStr| Request { fd: libc::AT_FDCWD, address: path.as_ptr() as u64, ..request(OPENAT, user_data) };
    let fd = ring.run(&[open(0x1002, &path)], 1);
    ring.run(&[open(0x1003, missing)], 1);
    let read = Request { fd, address: buffer.as_mut_ptr() as u64, length: 11, ..request(READ, 0x1004) };
    ring.run(&[read], 1);
    ring.run(&[Request { flags: ASYNC, offset: 1, length: 7, user_data: 0x1005, ..read }], 1);
    let [out, into] = pipe();
    ring.run(&[Request { fd: into, address: buffer.as_ptr() as u64, length: 5, ..request(WRITE, 0x1006) }], 1);
    ring.run(&[Request { fd: out, op_flags: POLLIN, ..request(POLL_ADD, 0x1007) }], 1);
    let duration = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    ring.run(&[Request { address: &raw const duration as u64, length: 1, ..request(TIMEOUT, 0x1008) }], 1);
    ring.run(&[Request { fd, ..request(CLOSE, 0x1009) }], 1);
    ring.run(&[Request { fd: NO_FD, ..request(CLOSE, 0x100a) }], 1);
    // The kernel refuses it, so that it is never queued.
    ring.run(&[request(UNKNOWN, 0x100b)], 1);
    // Two requests with one number.
    ring.run(&[request(NOP, 0x100c)], 1);
    ring.run(&[request(NOP, 0x100c)], 1);
    let [silent, _held] = pipe();
    ring.submit(&[Request { fd: silent, op_flags: POLLIN, ..request(POLL_ADD, 0x100d) }], 0);
    ring.reap();
}

fn chains(ring: &mut Ring) {
    let [out, into] = pipe();
    let text = *b"hello";
    let mut buffer = [0u8; 64];
    let write = Request { flags: LINK, fd: into, address: text.as_ptr() as u64, length: 5, ..request(WRITE, 0x2001) };
    ring.run(&[write, Request { fd: out, address: buffer.as_mut_ptr() as u64, length: 64, ..request(READ, 0x2002) }], 2);
    let failing = |flags, user_data| Request { flags, fd: NO_FD, address: text.as_ptr() as u64, length: 1, ..request(READ, user_data) };
    ring.run(&[failing(LINK, 0x2003), request(NOP, 0x2004)], 2);
    ring.run(&[Request { flags: SKIP_SUCCESS, ..request(NOP, 0x2005) }, request(NOP, 0x2006)], 1);
    ring.run(&[failing(SKIP_SUCCESS, 0x2007)], 1);
    // Behind a failed request that asked for no completion, the whole chain has none.
    ring.run(&[failing(LINK | SKIP_SUCCESS, 0x2008), Request { flags: SKIP_SUCCESS, ..request(NOP, 0x2009) }], 1);
    // Many more than the kernel's requests, so that it uses them again.
    for user_data in 0x2010..0x2030 {
        ring.run(&[Request { flags: SKIP_SUCCESS, ..request(NOP, user_data) }, request(NOP, user_data + 0x100)], 1);
    }
}

fn multishot(ring: &mut Ring) {
    let [out, into] = pipe();
    let mut byte = [0u8];
    ring.submit(&[Request { fd: out, op_flags: POLLIN, length: POLL_MULTI, ..request(POLL_ADD, 0x3001) }], 0);
    for _ in 0..3 {
        assert_eq!(unsafe { libc::write(into, byte.as_ptr().cast(), 1) }, 1);
        ring.wait(1);
        assert_eq!(unsafe { libc::read(out, byte.as_mut_ptr().cast(), 1) }, 1);
    }
    ring.run(&[Request { address: 0x3001, ..request(POLL_REMOVE, 0x3002) }], 2);
}

/// More completions than the ring has room for.
fn full(ring: &mut Ring) {
    let requests: Vec<Request> = (0x4001..0x4009).map(|user_data| request(NOP, user_data)).collect();
    requests.chunks(2).for_each(|two| ring.submit(two, 0));
    let mut seen = Vec::new();
    while seen.len() < requests.len() {
        seen.extend(ring.completions());
        // This moves what found no room into the ring.
        ring.submit(&[], 0);
    }
    ring.print(&seen);
}

/// One ring posts a completion in another.
fn messages(ring: &mut Ring) {
    let mut other = Ring::new(4, 0, 0);
    let message = Request { fd: other.fd, offset: 0x5002, length: 77, ..request(MSG_RING, 0x5001) };
    ring.run(&[message], 1);
    other.wait(1);
}
