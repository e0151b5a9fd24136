//! Processes and threads that come and go while they are traced.

use crate::raw;
use std::process::ExitCode;

pub fn forks(count: u64) {
    for tag in 1..=count {
        let child = raw::fork(|| raw::tag(tag));
        raw::wait(child);
    }
    println!("issued lseek {count}");
}

pub fn threads(count: u64) {
    for tag in 1..=count {
        std::thread::spawn(move || raw::tag(tag)).join().expect("the thread ends well");
    }
    println!("issued lseek {count}");
}

/// Ends at once and leaves a child that makes its call later.
pub fn outlive(milliseconds: u64, status: u8) -> ExitCode {
    raw::fork(|| {
        raw::poll_nothing(milliseconds);
        raw::tag(1);
    });
    ExitCode::from(status)
}
