//! A ring of io_uring(7), by system calls alone.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

pub const NOP: u8 = 0;
pub const POLL_ADD: u8 = 6;
pub const POLL_REMOVE: u8 = 7;
pub const TIMEOUT: u8 = 11;
pub const OPENAT: u8 = 18;
pub const CLOSE: u8 = 19;
pub const READ: u8 = 22;
pub const WRITE: u8 = 23;
pub const MSG_RING: u8 = 40;
/// No kernel has this opcode.
pub const UNKNOWN: u8 = 250;

pub const LINK: u8 = 1 << 2;
pub const ASYNC: u8 = 1 << 4;
pub const SKIP_SUCCESS: u8 = 1 << 6;

pub const SETUP_SQPOLL: u32 = 1 << 1;
pub const SETUP_CQSIZE: u32 = 1 << 3;

const CQE_MORE: u32 = 1 << 1;
const ENTER_GETEVENTS: u32 = 1;
const ENTER_SQ_WAKEUP: u32 = 2;
const SQ_NEED_WAKEUP: u32 = 1;

const OFF_SQ_RING: i64 = 0;
const OFF_SQES: i64 = 0x1000_0000;

/// `struct io_uring_params`
#[repr(C)]
#[derive(Default)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    sq: [u32; 10],
    cq: [u32; 10],
}

/// `struct io_uring_sqe`, with the members that the scenes use.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Request {
    pub opcode: u8,
    pub flags: u8,
    pub priority: u16,
    pub fd: i32,
    pub offset: u64,
    pub address: u64,
    pub length: u32,
    pub op_flags: u32,
    pub user_data: u64,
    pub more: [u64; 3],
}

/// A ring.
pub struct Ring {
    pub fd: i32,
    rings: *mut u8,
    requests: *mut Request,
    entries: u32,
    sq: [u32; 10],
    cq: [u32; 10],
    polled: bool,
    /// The requests in flight, by their numbers.
    open: HashMap<u64, Request>,
}

impl Ring {
    pub fn new(entries: u32, completions: u32, flags: u32) -> Ring {
        let mut params = Params { cq_entries: completions, flags, sq_thread_idle: 50, ..Params::default() };
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, &raw mut params) } as i32;
        assert!(fd >= 0, "io_uring_setup: {}", std::io::Error::last_os_error());
        let sq_end = params.sq[6] + params.sq_entries * 4;
        let cq_end = params.cq[5] + params.cq_entries * 16;
        let rings = map(fd, sq_end.max(cq_end) as usize, OFF_SQ_RING).cast();
        let requests = map(fd, params.sq_entries as usize * size_of::<Request>(), OFF_SQES).cast();
        let polled = flags & SETUP_SQPOLL != 0;
        Ring { fd, rings, requests, entries: params.sq_entries, sq: params.sq, cq: params.cq, polled, open: HashMap::new() }
    }

    /// Submits requests, and waits for so many completions.
    pub fn submit(&mut self, requests: &[Request], wait: u32) {
        let tail = self.word(self.sq[1]);
        for (at, request) in (tail.load(Ordering::Acquire)..).zip(requests) {
            let slot = at & (self.entries - 1);
            unsafe { self.requests.add(slot as usize).write(*request) };
            self.word(self.sq[6] + slot * 4).store(slot, Ordering::Relaxed);
        }
        tail.store(tail.load(Ordering::Relaxed) + requests.len() as u32, Ordering::SeqCst);
        self.open.extend(requests.iter().map(|request| (request.user_data, *request)));
        let idle = self.polled && self.word(self.sq[4]).load(Ordering::SeqCst) & SQ_NEED_WAKEUP != 0;
        let flags = ENTER_GETEVENTS | if idle { ENTER_SQ_WAKEUP } else { 0 };
        let count = if self.polled { 0 } else { requests.len() };
        let entered = unsafe { libc::syscall(libc::SYS_io_uring_enter, self.fd, count, wait, flags, 0usize, 0usize) };
        assert_eq!(entered, count as i64, "io_uring_enter: {}", std::io::Error::last_os_error());
        // The kernel's thread takes them by itself.
        while self.polled && self.word(self.sq[0]).load(Ordering::Acquire) != tail.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }

    /// Waits for so many completions, and prints all that are there.
    pub fn wait(&mut self, count: u32) {
        self.submit(&[], count);
        self.reap();
    }

    /// Submits requests, waits for so many completions, and prints all that are there.
    pub fn run(&mut self, requests: &[Request], wait: u32) -> i32 {
        self.submit(requests, wait);
        self.reap()
    }

    /// Prints all completions. Returns the result of the last.
    pub fn reap(&mut self) -> i32 {
        let completions = self.completions();
        self.print(&completions)
    }

    /// Prints completions. Returns the result of the last.
    pub fn print(&mut self, completions: &[(u64, i32, u32)]) -> i32 {
        let mut last = 0;
        for &(user_data, result, flags) in completions {
            last = result;
            let request = match flags & CQE_MORE {
                0 => self.open.remove(&user_data),
                _ => self.open.get(&user_data).copied(),
            };
            let name = request.map_or("completion".to_owned(), |request| name(request.opcode));
            println!(
                "request {name}({}) = {}",
                arguments(user_data, request.map_or(0, |request| request.flags), flags),
                outcome(request.map(|request| request.opcode), result)
            );
        }
        last
    }

    /// Takes all completions: numbers, results and flags.
    pub fn completions(&mut self) -> Vec<(u64, i32, u32)> {
        let (head, tail) = (self.word(self.cq[0]), self.word(self.cq[1]).load(Ordering::Acquire));
        let entries = self.word(self.cq[3]).load(Ordering::Relaxed);
        let at = |index: u32, offset: u32| self.word(self.cq[5] + (index & (entries - 1)) * 16 + offset).load(Ordering::Relaxed);
        let begin = head.load(Ordering::Relaxed);
        let found =
            (begin..tail).map(|index| (u64::from(at(index, 0)) | u64::from(at(index, 4)) << 32, at(index, 8) as i32, at(index, 12)));
        let found = found.collect();
        head.store(tail, Ordering::Release);
        found
    }

    /// Prints the requests that have not completed: those that asked for no completion, and those in flight.
    pub fn rest(&self) {
        for request in self.open.values() {
            let what = if request.flags & SKIP_SUCCESS != 0 { "silent" } else { "open" };
            println!("{what} {}({})", name(request.opcode), arguments(request.user_data, request.flags, 0));
        }
    }

    /// Returns a word of the mapped rings.
    fn word<'a>(&self, offset: u32) -> &'a AtomicU32 {
        unsafe { &*self.rings.add(offset as usize).cast() }
    }
}

fn map(fd: i32, bytes: usize, offset: i64) -> *mut c_void {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, offset) };
    assert_ne!(start, libc::MAP_FAILED, "mmap of a ring: {}", std::io::Error::last_os_error());
    start
}

fn name(opcode: u8) -> String {
    let name = match opcode {
        NOP => "nop",
        POLL_ADD => "poll_add",
        POLL_REMOVE => "poll_remove",
        TIMEOUT => "timeout",
        OPENAT => "openat",
        CLOSE => "close",
        READ => "read",
        WRITE => "write",
        MSG_RING => "msg_ring",
        other => return format!("op_{other}"),
    };
    name.to_owned()
}

fn arguments(user_data: u64, flags: u8, completion: u32) -> String {
    let mut text = format!("user_data: {user_data:#x}");
    let names = [(LINK, "IO_LINK"), (ASYNC, "ASYNC"), (SKIP_SUCCESS, "CQE_SKIP_SUCCESS")];
    let names: Vec<&str> = names.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect();
    if !names.is_empty() {
        text += &format!(", sqe_flags: {}", names.join("|"));
    }
    if completion & CQE_MORE != 0 {
        text += ", cqe_flags: MORE";
    }
    text
}

fn outcome(opcode: Option<u8>, result: i32) -> String {
    // The events of poll(2).
    if opcode == Some(POLL_ADD) && result == i32::from(libc::POLLIN) {
        return "IN".to_owned();
    }
    let name = match -result {
        libc::EBADF => "EBADF",
        libc::EINVAL => "EINVAL",
        libc::ENOENT => "ENOENT",
        libc::ETIME => "ETIME",
        libc::ECANCELED => "ECANCELED",
        _ => return result.to_string(),
    };
    format!("-1 {name}")
}
