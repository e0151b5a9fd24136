//! Calls with known data, one of each kind. Buffers of exact size end at the end of a mapping: a tracer that reads one
//! more byte reads nothing.

use crate::told::{self, out};
use std::ffi::c_void;
use std::ptr::null_mut;

const PAGE: usize = 4096;

pub fn run(scene: &str) {
    match scene {
        "variants" => variants(),
        "exact" => exact(),
        "border" => border(),
        "messages" => messages(),
        "large" => large(),
        #[cfg(target_arch = "x86_64")]
        "compat" => compat::run(),
        _ => panic!("no scene {scene:?}"),
    }
}

/// Returns an ioctl command that no driver has: `_IOC(direction, 'Z', number, bytes)`.
fn command(direction: u64, number: u64, bytes: u64) -> u64 {
    direction << 30 | bytes << 16 | 0x5a << 8 | number
}

/// Makes calls whose memory depends on the value of an argument.
fn variants() {
    let fd = unsafe { told::syscall!(libc::SYS_memfd_create, c"payload", 0) };
    let mut lock = libc::flock { l_type: libc::F_WRLCK as i16, l_whence: 0, l_start: 3, l_len: 7, l_pid: 0 };
    let mut name = [0u8; 16];
    let timeout = libc::timespec { tv_sec: 0, tv_nsec: 1000 };
    let word = 1u32;
    let mut waiting = -1i32;
    let bytes = *b"twelve bytes";
    unsafe {
        told::syscall!(libc::SYS_fcntl, fd, libc::F_SETLK, &raw const lock);
        told::syscall!(libc::SYS_fcntl, fd, libc::F_GETLK, &raw mut lock);
        told::syscall!(libc::SYS_fcntl, fd, libc::F_DUPFD, 40);
        told::syscall!(libc::SYS_prctl, libc::PR_SET_NAME, c"known");
        told::syscall!(libc::SYS_prctl, libc::PR_GET_NAME, name.as_mut_slice());
        for op in [libc::FUTEX_WAIT, libc::FUTEX_WAKE] {
            let timeout = told::Argument::from(&raw const timeout);
            let timeout = if op == libc::FUTEX_WAKE { told::ignored(timeout) } else { timeout };
            told::syscall!(libc::SYS_futex, &raw const word, op | libc::FUTEX_PRIVATE_FLAG, 1, timeout);
        }
        told::syscall!(libc::SYS_ioctl, fd, libc::FIONREAD, out(&raw mut waiting, 1));
        // With direction 1 the kernel reads the memory; with 2 it writes the memory, unless the call fails.
        for direction in [0, 1, 2] {
            let memory = if direction == 1 { told::Argument::from(&bytes[..]) } else { out(bytes.as_ptr().cast_mut(), bytes.len()) };
            told::syscall!(libc::SYS_ioctl, fd, command(direction, 1, bytes.len() as u64), memory);
        }
    }
}

/// Creates a mapping that ends with these bytes, followed by an unmapped page.
fn at_end(bytes: &[u8]) -> *mut u8 {
    let end = map_pages(1, 0).wrapping_add(PAGE);
    let at = end.wrapping_sub(bytes.len());
    unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    told::note(unsafe { std::slice::from_raw_parts(at, bytes.len()) });
    at
}

/// Creates a mapping of this many pages, followed by an unmapped page.
fn map_pages(pages: usize, flags: i32) -> *mut u8 {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let start = unsafe { libc::mmap(null_mut(), (pages + 1) * PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    let start = start.cast::<u8>();
    assert_eq!(unsafe { libc::munmap(start.wrapping_add(pages * PAGE).cast::<c_void>(), PAGE) }, 0);
    start
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn exact() {
    const AT_FDCWD: i32 = libc::AT_FDCWD;
    unsafe {
        told::syscall!(libc::SYS_msgsnd, -1, at_end(&[&words(&[1])[..], b"hello"].concat()), 5, 0);
        told::syscall!(libc::SYS_set_mempolicy, 99, at_end(&words(&[0b101])), 65);
        told::syscall!(libc::SYS_openat2, AT_FDCWD, c"/nonexistent", at_end(&words(&[0, 0, 0])), 24);
        let set = at_end(&words(&[1 << 9]));
        told::syscall!(libc::SYS_pselect6, -1, 0, 0, 0, 0, at_end(&words(&[set as u64, 8])));
        // The fields are size, policy, flags, nice, priority, and the three times of SCHED_DEADLINE: the struct before
        // utilization clamps were added.
        let attributes = at_end(&words(&[48, 0, 7, 0, 0, 0]));
        told::syscall!(libc::SYS_sched_setattr, -1, attributes, 0);
        told::syscall!(libc::SYS_mincore, map_pages(3, 0), 2 * PAGE + 1, out(at_end(&[9, 9, 9]), 3));
        told::syscall!(libc::SYS_setsockopt, -1, libc::SOL_SOCKET, libc::SO_RCVTIMEO, at_end(&words(&[5, 6])), 16);
        // setxattrat
        let text = at_end(b"value");
        told::syscall!(463, AT_FDCWD, c"/nonexistent", 0, c"user.name", at_end(&words(&[text as u64, 5])), 16);
        told::note(std::slice::from_raw_parts(text, 5));
        told::syscall!(libc::SYS_writev, -1, at_end(&words(&[text as u64, 5, text as u64 + 1, 4])), 2);
        // The size of this buffer is 0, and the page after it is unmapped: the kernel only returns the number of
        // groups.
        told::syscall!(libc::SYS_getgroups, 0, told::ignored(at_end(&[])));
    }
}

/// Sends and receives messages with their buffers and control data, with less room than the data needs.
fn messages() {
    let mut pair = [0; 2];
    assert_eq!(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, pair.as_mut_ptr()) }, 0);
    let part = |text: &'static [u8]| libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.len() };
    let mut sent = [part(b"first"), part(b"sec"), part(b"ond"), part(b"truncated")];
    let mut room = [[0u8; 16]; 2];
    let mut received = room.each_mut().map(|room| libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() });
    let message = |parts: &mut [libc::iovec]| {
        let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (parts.as_mut_ptr(), parts.len());
        message
    };
    let mut all = [message(&mut sent[..1]), message(&mut sent[1..3]), message(&mut sent[3..])];
    let [first, second] = received.each_mut().map(std::slice::from_mut).map(message);
    let mut some = [first, second];
    unsafe {
        told::note(&sent[..]);
        sent.iter().for_each(|part| told::note(std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len)));
        told::syscall!(libc::SYS_sendmmsg, pair[0], all.as_mut_slice(), 3, 0);
        told::note(&received[..]);
        room.iter_mut().for_each(|room| told::note(room.as_mut_slice()));
        told::syscall!(libc::SYS_recvmmsg, pair[1], some.as_mut_slice(), 2, libc::MSG_DONTWAIT, 0);
        // The call returns 9, but the buffer has 4 bytes, and the page after it is unmapped.
        told::syscall!(libc::SYS_recvfrom, pair[1], out(at_end(&[0; 4]), 4), 4, libc::MSG_TRUNC, 0, 0);
    }
}

/// Makes writes of which only the first bytes are readable.
fn border() {
    for readable in [1, 5, 4000] {
        let at = map_pages(1, 0).wrapping_add(PAGE - readable);
        (0..readable).for_each(|i| unsafe { at.wrapping_add(i).write(b'a' + (i % 26) as u8) });
        unsafe { told::note(std::slice::from_raw_parts(at, readable)) };
        unsafe { told::syscall!(libc::SYS_write, -1, at, 8000) };
    }
}

/// Writes more data than one record holds: text of increasing numbers.
fn large() {
    let text: Vec<u8> = (0..20_000u32).flat_map(|i| format!("{i:05} ").into_bytes()).collect();
    let iovec: Vec<libc::iovec> =
        (0..10).map(|i| libc::iovec { iov_base: text[i * 10_000..].as_ptr().cast_mut().cast(), iov_len: 10_000 }).collect();
    let string: Vec<u8> = text[..30_000].iter().copied().chain([0]).collect();
    let file = std::fs::File::open("/dev/zero").expect("it is there");
    let mut zeros = vec![1u8; 50_000];
    unsafe {
        told::syscall!(libc::SYS_write, -1, &text[..65_536], 65_536);
        told::note(&text[..100_000]);
        told::syscall!(libc::SYS_writev, -1, &iovec[..], iovec.len());
        told::syscall!(libc::SYS_finit_module, -1, &string[..], 0);
        let size = zeros.len();
        told::syscall!(libc::SYS_read, std::os::fd::AsRawFd::as_raw_fd(&file), out(zeros.as_mut_ptr(), size), size);
    }
}

/// Makes such calls by the kernel's entry for 32-bit programs, with structs in their layout.
#[cfg(target_arch = "x86_64")]
mod compat {
    use super::map_pages;

    pub fn run() {
        let page = map_pages(1, libc::MAP_32BIT);
        let mut next = page;
        let mut put = |bytes: &[u8]| {
            let at = next;
            unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            next = at.wrapping_add(bytes.len().next_multiple_of(8));
            at as u32
        };
        let halves = |halves: &[u32]| halves.iter().flat_map(|half| half.to_ne_bytes()).collect::<Vec<u8>>();
        let (first, second) = (put(b"first"), put(b"second"));
        let iovec = put(&halves(&[first, 5, second, 6]));
        // F_WRLCK, SEEK_SET, start, length
        let lock = put(&[&[1, 0, 0, 0][..], &halves(&[3, 7, 0])].concat());
        let time = put(&halves(&[0, 1000]));
        int80(146, [u32::MAX, iovec, 2]);
        int80(55, [u32::MAX, libc::F_SETLK as u32, lock]);
        int80(162, [time, 0, 0]);
    }

    /// Makes a call by its number in arch/x86/entry/syscalls/syscall_32.tbl.
    fn int80(number: u32, args: [u32; 3]) {
        let [first, second, third] = args.map(u64::from);
        unsafe {
            std::arch::asm!(
                "xchg rbx, {first}", "int 0x80", "xchg rbx, {first}",
                first = inout(reg) first => _,
                inout("rax") u64::from(number) => _,
                in("rcx") second,
                in("rdx") third,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            );
        }
    }
}
