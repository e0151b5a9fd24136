//! Calls without a name in any table, and a named call with the number of the x32 ABI.

use crate::told::{self, Argument, ignored, narrow};

/// The bit of a number that selects the x32 ABI.
const X32: i64 = 0x4000_0000;

pub fn run() {
    for nr in [999, X32 | libc::SYS_getppid] {
        unsafe { libc::syscall(nr, 0x11, 0x22, 0x33) };
    }
    println!("issued unknown 1");
    println!("issued x32 1");
}

/// Failing calls with arguments whose meaning depends on another argument, or on how many bits the kernel reads.
pub fn meanings() {
    const ONES: u64 = u32::MAX as u64;
    let call = |number: libc::c_long, args: [u64; 5]| unsafe { told::call(number, &args.map(Argument::from)) };
    // The kernel reads none of these strings, so their pages must be there: the program has just written them.
    let text = |text: &std::ffi::CStr| told::address(Box::leak(text.to_owned().into_boxed_c_str()).to_bytes_with_nul());
    let nowhere = || text(c"/nonexistent/rtrace");
    call(libc::SYS_fcntl, [ONES, libc::F_SETOWN as u64, ONES, 0, 0]);
    unsafe { told::syscall!(libc::SYS_fcntl, ONES, libc::F_GETFD, ignored(7)) };
    call(libc::SYS_fcntl, [ONES, libc::F_DUPFD as u64, 7, 0, 0]);
    unsafe { told::syscall!(libc::SYS_openat, libc::AT_FDCWD as u64, nowhere(), 0, ignored(0o641)) };
    call(libc::SYS_openat, [libc::AT_FDCWD as u64, nowhere(), (libc::O_CREAT | libc::O_EXCL) as u64, 0o641, 0]);
    unsafe { told::syscall!(libc::SYS_mkdirat, libc::AT_FDCWD as u64, nowhere(), narrow(0x7_0000 | 0o712, 16)) };
    call(libc::SYS_fsconfig, [ONES, u64::from(libc::FSCONFIG_SET_STRING), text(c"key"), text(c"a-value"), 0]);
    call(libc::SYS_fsconfig, [ONES, u64::from(libc::FSCONFIG_SET_FD), text(c"key"), 0, 5]);
}

pub fn numbers(numbers: std::ops::RangeInclusive<u64>, count: u64) {
    for number in (0..count).flat_map(|_| numbers.clone()) {
        unsafe { libc::syscall(number as i64, 0, 0, 0) };
    }
}

/// The number of getppid at the 32-bit entry (arch/x86/entry/syscalls/syscall_32.tbl).
#[cfg(target_arch = "x86_64")]
pub fn int80(count: u64) {
    for _ in 0..count {
        let mut number_and_result = 64i64;
        unsafe { std::arch::asm!("int 0x80", inout("rax") number_and_result, out("r8") _, out("r9") _, out("r10") _, out("r11") _) };
        assert!(number_and_result > 0, "{number_and_result}");
    }
    println!("issued getppid {count}");
}
