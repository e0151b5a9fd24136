//! A process that changes all the time: it creates and ends threads, or it executes itself again and again. Each thread
//! and each program makes tagged calls, first with tag 1 and at its end with tag 2.
//!
//! It continues until it is killed or until its parent has ended.

use crate::raw;
use std::os::unix::process::CommandExt;

/// The number of calls of each tag that a thread or a program makes.
const CALLS: u64 = 4;

pub fn run(how: &str) {
    raw::die_with_the_parent();
    match how {
        "threads" => threads(),
        "exec" => exec(how),
        "exec-thread" => {
            let execing = std::thread::spawn(|| exec("exec-thread"));
            execing.join().expect("an exec does not return");
        }
        _ => panic!("nothing comes and goes by {how:?}"),
    }
}

/// Each thread creates the next one and ends; the first thread waits for ever.
fn threads() {
    std::thread::spawn(link);
    loop {
        raw::poll_nothing(1_000_000);
    }
}

fn link() {
    (0..CALLS).for_each(|_| raw::tag(1));
    raw::poll_nothing(1);
    (0..CALLS).for_each(|_| raw::tag(2));
    std::thread::spawn(link);
}

fn exec(how: &str) {
    (0..CALLS).for_each(|_| raw::tag(1));
    raw::poll_nothing(1);
    (0..CALLS).for_each(|_| raw::tag(2));
    panic!("exec: {}", std::process::Command::new(raw::myself()).args(["churn", how]).exec());
}
