//! Many calls on several threads, at full speed or at a limited rate.

use crate::raw;
use std::ffi::CString;
use std::path::Path;
use std::time::{Duration, Instant};

/// The length of the longest path that the kernel takes, without the NUL.
const PATH_BYTES: usize = 4095;

/// The largest count of a read. Every read returns its count, so an exit that is paired with another call's entry is
/// visible.
const READ_MAX: u64 = 4096;

pub fn run(kind: &str, threads: u64, count: u64, rate: Option<u64>) {
    let zero = (kind == "read").then(|| raw::open(Path::new("/dev/zero"), 0));
    let long = CString::new("/directory".repeat(PATH_BYTES / 10 + 1).split_at(PATH_BYTES).0).expect("it has no NUL");
    let call = |thread: u64, i: u64| match (kind, zero) {
        ("getppid", _) => _ = raw::getppid(),
        ("lseek", _) => raw::tag(thread * count + i + 1),
        ("read", Some(fd)) => _ = raw::read(fd, (i % READ_MAX + 1) as usize),
        ("path", _) => raw::access(&long),
        _ => panic!("no kind {kind:?}"),
    };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || at_rate(count, rate.map(|r| r / threads), |i| call(thread, i)));
        }
    });
    println!("issued {kind} {}", threads * count);
}

/// Makes calls in batches of one millisecond each. Later batches make up for sleeps that took too long.
fn at_rate(count: u64, rate: Option<u64>, call: impl Fn(u64)) {
    let Some(rate) = rate else {
        (0..count).for_each(call);
        return;
    };
    let start = Instant::now();
    let batch = (rate / 1000).max(1);
    for i in 0..count {
        if i % batch == 0 {
            let due = Duration::from_nanos(i * 1_000_000_000 / rate);
            if let Some(early) = due.checked_sub(start.elapsed()) {
                std::thread::sleep(early);
            }
        }
        call(i);
    }
}
