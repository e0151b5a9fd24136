//! Calls whose results the program prints, as it sees them: for tests that change results.

use crate::raw;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

static SIGNALS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_signal(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Makes so many calls of getppid on each of so many threads, one thread after the other. Prints for each thread
/// `results` and what the calls returned: 0 for the parent's number, the negative errno, or another number; then
/// `milliseconds` and how long each took. At the end it prints how many SIGUSR1 it got.
pub fn run(threads: u64, count: u64) {
    let handler: extern "C" fn(libc::c_int) = count_signal;
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    let parent = parent();
    for _ in 0..threads {
        std::thread::spawn(move || print_results(parent, count)).join().expect("it does not panic");
    }
    println!("signals {}", SIGNALS.load(Ordering::Relaxed));
}

/// Returns the parent's number without the call that is to be changed.
fn parent() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let number = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
    number.unwrap_or_else(|| panic!("no parent in {status}"))
}

fn print_results(parent: u32, count: u64) {
    let mut results = String::from("results");
    let mut milliseconds = String::from("milliseconds");
    for _ in 0..count {
        let before = Instant::now();
        let result = match raw::getppid() {
            -1 => -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or_default()),
            number if number == i64::from(parent) => 0,
            number => number,
        };
        results.push_str(&format!(" {result}"));
        milliseconds.push_str(&format!(" {}", before.elapsed().as_millis()));
    }
    println!("{results}\n{milliseconds}");
}
