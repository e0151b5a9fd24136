//! Calls with values at the edges of what the kernel reads: bits above an argument's width, arguments that must be 0,
//! memory that the kernel writes although the call fails, and text that ends at the end of a mapping.

use crate::told::{self, ignored, narrow, out};
use std::ptr::{from_mut, null, null_mut};

const PAGE: usize = 4096;
/// Bits of a register above those of an `int`.
const HIGH: u64 = 0xbad << 32;
const NAME_TO_HANDLE_AT_EMPTY_PATH: i32 = 0x1000;
const SYS_LSM_LIST_MODULES: i64 = 461;
const SYS_FSCONFIG: i64 = 431;
const SYS_KCMP_UNKNOWN: i32 = 99;
const FSCONFIG_SET_FLAG: i32 = 0;
const FSCONFIG_CMD_CREATE: i32 = 6;
/// `PERF_EVENT_IOC_SET_FILTER` of linux/perf_event.h.
const SET_FILTER: u64 = 0x4008_2406;

pub fn run(scene: &str) {
    match scene {
        "widths" => widths(),
        "checked" => checked(),
        "outputs" => outputs(),
        "strings" => strings(),
        "lengths" => lengths(),
        _ => panic!("no scene {scene:?}"),
    }
}

fn prctl(option: i32, args: [u64; 4]) {
    unsafe { told::syscall!(libc::SYS_prctl, option, args[0], args[1], args[2], args[3]) };
}

/// Values with bits in the upper half of the register, in arguments of 64 and of 32 bits.
fn widths() {
    let word = 0u32;
    prctl(libc::PR_SET_DUMPABLE, [HIGH | 1, 0, 0, 0]);
    prctl(libc::PR_SET_KEEPCAPS, [HIGH | 1, 0, 0, 0]);
    prctl(libc::PR_CAPBSET_READ, [HIGH, 0, 0, 0]);
    prctl(libc::PR_SET_PDEATHSIG, [HIGH | 9, 0, 0, 0]);
    unsafe {
        #[cfg(target_arch = "x86_64")]
        told::syscall!(libc::SYS_arch_prctl, 0x1012, HIGH);
        for bits in [HIGH | 3, HIGH | 0xffff_ffff] {
            told::syscall!(libc::SYS_futex, &raw const word, libc::FUTEX_WAKE_BITSET, 1, 0, 0, narrow(bits, 32));
        }
        told::syscall!(libc::SYS_rseq, 0, 7, 4, narrow(HIGH | 0x5305, 32));
        #[cfg(target_arch = "x86_64")]
        told::syscall!(libc::SYS_modify_ldt, 0x77, 0, 0);
    }
}

/// Arguments that the kernel requires to be 0, or that it ignores only for the operations that it knows.
fn checked() {
    let (word, key) = (0u32, String::from("ro"));
    prctl(libc::PR_SET_NO_NEW_PRIVS, [1, 0, 0, 5]);
    prctl(libc::PR_GET_NO_NEW_PRIVS, [0, HIGH, 0, 0]);
    prctl(libc::PR_GET_NO_NEW_PRIVS, [0; 4]);
    unsafe { told::syscall!(libc::SYS_prctl, libc::PR_GET_DUMPABLE, ignored(7), ignored(7), ignored(7), ignored(7)) };
    prctl(libc::PR_CAP_AMBIENT, [libc::PR_CAP_AMBIENT_CLEAR_ALL as u64, 6, 0, 0]);
    prctl(libc::PR_CAP_AMBIENT, [libc::PR_CAP_AMBIENT_IS_SET as u64, 0, 8, 0]);
    let pid = std::process::id();
    unsafe {
        told::syscall!(SYS_FSCONFIG, -1, FSCONFIG_CMD_CREATE, 0x11, 0, 3);
        told::syscall!(SYS_FSCONFIG, -1, FSCONFIG_CMD_CREATE, 0, 0, 0);
        told::syscall!(SYS_FSCONFIG, -1, FSCONFIG_SET_FLAG, key.as_bytes(), 0x12, 0);
        told::syscall!(libc::SYS_futex, &raw const word, 0x7e, 1, 2, 3, 4);
        told::syscall!(libc::SYS_kcmp, pid, pid, SYS_KCMP_UNKNOWN, 5, 6);
        told::syscall!(libc::SYS_kcmp, pid, pid, 2, ignored(5), ignored(6));
    }
}

/// Memory that the kernel writes although the call fails, and memory that it does not write. Prints what it wrote:
/// `handle BYTES TYPE`, `mount ID`, `attributes BYTES`, `modules BYTES`.
fn outputs() {
    let fd = unsafe { told::syscall!(libc::SYS_memfd_create, c"handle", 0) };
    let (mut handle, mut mount) = ([0u32, 0], -7i32);
    let name = |fd: i64, handle: &mut [u32; 2], mount: &mut i32| unsafe {
        told::syscall!(libc::SYS_name_to_handle_at, fd, c"", from_mut(handle), out(mount, 1), NAME_TO_HANDLE_AT_EMPTY_PATH)
    };
    name(fd, &mut handle, &mut mount);
    println!("handle {} {}\nmount {mount}", handle[0], handle[1] as i32);
    let (mut handle, mut mount) = ([0u32, 5], -7i32);
    name(-1, &mut handle, &mut mount);
    let mut attributes = [10u32; 14];
    unsafe { told::syscall!(libc::SYS_sched_setattr, 0, attributes.as_mut_slice(), 0) };
    println!("attributes {}", attributes[0]);
    let mut bytes = 0u32;
    let listed = unsafe { told::syscall!(SYS_LSM_LIST_MODULES, 0, &raw mut bytes, 0) };
    if listed == -1 && bytes > 0 {
        println!("modules {bytes}");
    }
}

/// Creates a mapping that ends with these bytes, followed by an unmapped page.
fn at_end(bytes: &[u8]) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let start = unsafe { libc::mmap(null_mut(), 2 * PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    let end = start.cast::<u8>().wrapping_add(PAGE);
    assert_eq!(unsafe { libc::munmap(end.cast(), PAGE) }, 0);
    let at = end.wrapping_sub(bytes.len());
    unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    told::note(unsafe { std::slice::from_raw_parts(at, bytes.len()) });
    at
}

/// Text without NUL, and arrays without a null pointer, that end at the end of a mapping.
fn strings() {
    let words = [String::from("one\0"), String::from("two\0")];
    let pointers = words.each_ref().map(|word| word.as_ptr() as usize);
    let filter = String::from("common_pid != 7\0");
    prctl(libc::PR_SET_NAME, [at_end(b"fifteen-letters") as u64, 0, 0, 0]);
    prctl(libc::PR_SET_NAME, [at_end(b"fourteen-bytes") as u64, 0, 0, 0]);
    unsafe { told::syscall!(libc::SYS_memfd_create, at_end(&[b'm'; 250]), 0) };
    let array = at_end(&pointers.map(usize::to_ne_bytes).concat());
    let (array, note) = (array.cast_const(), || words.iter().for_each(|word| told::note(word.as_bytes())));
    unsafe {
        note();
        told::syscall!(libc::SYS_execve, c"/bin/true", array, null::<*const u8>());
        note();
        let array = std::slice::from_raw_parts(array, 16);
        told::syscall!(libc::SYS_execve, c"/bin/true", &[pointers[0], 0][..], array);
        told::syscall!(libc::SYS_ioctl, -1, SET_FILTER, filter.as_bytes());
    }
}

/// Sets and arrays whose length is not a number of bytes.
fn lengths() {
    let (mut ready, mut time) = ([0u64; 16], libc::timeval { tv_sec: 0, tv_usec: 0 });
    ready[0] = 2;
    let set = at_end(&ready.map(u64::to_ne_bytes).concat());
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0) };
    // The program has two instructions: load the length of the packet, and return it.
    let instruction = |code: u16, k: u32| libc::sock_filter { code, jt: 0, jf: 0, k };
    let program = [instruction(0x80, 0), instruction(0x16, 0)];
    // A struct sock_fprog, in which the bytes between the two members are 0.
    let filter = [2, program.as_ptr() as u64];
    let room = at_end(&[0; 16]);
    let pselect = |n: i32, time: &mut libc::timeval| unsafe {
        let set = if n > 0 { told::values(set, 128) } else { out(set, 128) };
        told::syscall!(libc::SYS_pselect6, n, 0, set, 0, from_mut(time), 0);
    };
    pselect(i32::MAX, &mut time);
    pselect(-1, &mut time);
    unsafe {
        told::note(&program[..]);
        told::syscall!(libc::SYS_setsockopt, fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter[..], 16);
        for mut count in [2u32, 0] {
            told::syscall!(libc::SYS_getsockopt, fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, out(room, 16), &raw mut count);
        }
    }
}
