//! A task that cannot finish its exit: the first process of a pid namespace waits in the kernel until all other
//! processes of the namespace are reaped, while one of them is dead and its ptracer does not wait for it.

use crate::raw;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

/// The first process ends by exit_group(7). When `file` exists, the ptracer reaps the other process.
pub fn run(file: &Path) {
    let (mut told, mut tell) = std::io::pipe().expect("there are descriptors left");
    let (mut go, mut say_go) = std::io::pipe().expect("there are descriptors left");
    // SAFETY: unshare takes flags and touches no memory.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWPID) }, 0, "this needs CAP_SYS_ADMIN");
    let first = raw::fork(|| {
        raw::die_with_the_parent();
        let other = raw::fork(|| raw::poll_nothing(u64::from(u32::MAX)));
        assert!(other > 0);
        tell.write_all(b"x").expect("the parent reads");
        go.read_exact(&mut [0]).expect("the parent writes");
        // SAFETY: _exit takes a status and does not return.
        unsafe { libc::_exit(7) }
    });
    told.read_exact(&mut [0]).expect("the first process begins");
    let other = child_of(first);
    // SAFETY: PTRACE_SEIZE takes a process and flags.
    assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SEIZE, other, 0, 0) }, 0, "nobody else traces it");
    say_go.write_all(b"x").expect("the first process reads");
    // A process without memory has passed the tracepoint of its exit, and waits for the other process.
    while !has_no_memory(first) || !sleeps(first) {
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("held {first}");
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    for pid in [other, first] {
        // SAFETY: without a place for the status, waitpid writes nothing.
        assert_eq!(unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL) }, pid);
    }
    println!("gone");
}

fn child_of(pid: i32) -> i32 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("the kernel lists children");
    text.trim().parse().expect("there is one")
}

fn has_no_memory(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| !status.contains("VmSize"))
}

fn sleeps(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") S "))
}
