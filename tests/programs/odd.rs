//! Calls that no table of names has, and x32's way of making one that has a name.

/// The bit that marks a number as x32's.
const X32: i64 = 0x4000_0000;

pub fn run() {
    for nr in [999, X32 | libc::SYS_getppid] {
        unsafe { libc::syscall(nr, 0x11, 0x22, 0x33) };
    }
    println!("issued unknown 1");
    println!("issued x32 1");
}
