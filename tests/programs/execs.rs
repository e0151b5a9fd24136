//! A program that executes itself again, from its first thread or from another one while the others wait.

use crate::raw;
use std::os::unix::process::CommandExt;

/// Tag 1 is the last call before the exec, and tag 2 a call of the program after it.
pub fn run(who: &str) {
    match who {
        "leader" => exec(),
        "thread" => {
            let others: Vec<_> = (0..3).map(|_| std::thread::spawn(|| raw::poll_nothing(60_000))).collect();
            while sleepers() < others.len() {
                std::thread::yield_now();
            }
            let execing = std::thread::spawn(exec);
            execing.join().expect("an exec does not return");
            drop(others);
        }
        _ => panic!("no thread {who:?}"),
    }
}

/// Returns the number of threads that are in poll(2) according to /proc/PID/task/TID/syscall.
fn sleepers() -> usize {
    let in_poll = format!("{} ", raw::POLL);
    let tasks = std::fs::read_dir("/proc/self/task").expect("a process has tasks");
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("syscall")).ok())
        .filter(|call| call.starts_with(&in_poll))
        .count()
}

fn exec() {
    let mut next = std::process::Command::new(raw::myself());
    next.args(["tag", "2"]);
    raw::tag(1);
    panic!("exec: {}", next.exec());
}
