//! Threads that wait together, and then make their calls and end at once.

use crate::raw;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Each of `threads` threads makes `calls` tagged calls, all with different tags.
pub fn run(threads: u64, calls: u64) {
    let gate = Arc::new(AtomicU32::new(0));
    let thread = |number: u64| {
        let gate = Arc::clone(&gate);
        let wait_and_call = move || {
            while gate.load(Ordering::Acquire) == 0 {
                raw::wait_at(&gate);
            }
            (1..=calls).for_each(|call| raw::tag(number * calls + call));
        };
        std::thread::Builder::new().stack_size(16 << 10).spawn(wait_and_call).expect("the machine takes so many threads")
    };
    let all: Vec<_> = (0..threads).map(thread).collect();
    gate.store(1, Ordering::Release);
    raw::wake_all(&gate);
    all.into_iter().for_each(|thread| thread.join().expect("the thread ends well"));
    println!("issued lseek {}", threads * calls);
}
