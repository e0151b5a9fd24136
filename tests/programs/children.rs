//! Processes and threads that are created and end during the trace.

use crate::raw;
use std::process::{Command, ExitCode};
use std::time::Duration;

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

/// Ends immediately and leaves a child that makes its call later.
pub fn outlive(milliseconds: u64, status: u8) -> ExitCode {
    raw::fork(|| {
        raw::poll_nothing(milliseconds);
        raw::tag(1);
    });
    ExitCode::from(status)
}

/// Runs as pid 1 of a pid namespace and reaps only the processes that it started itself. It waits until all other
/// processes are dead.
pub fn reap_own(count: u64, command: &[&str]) {
    for _ in 0..count {
        let status = Command::new(command[0]).args(&command[1..]).status().unwrap_or_else(|e| panic!("{}: {e}", command[0]));
        assert!(status.success(), "{command:?}: {status}");
    }
    let mut left = states_of_others();
    while left.iter().any(|state| *state != 'Z') {
        std::thread::sleep(Duration::from_millis(10));
        left = states_of_others();
    }
    println!("left {}", left.len());
}

fn states_of_others() -> Vec<char> {
    let pids =
        std::fs::read_dir("/proc").expect("/proc is mounted").filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let others = pids.filter(|pid| *pid != std::process::id());
    others.filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?.rsplit(") ").next()?.chars().next()).collect()
}
