//! A process to attach to. It sleeps in `poll` until it reads a line, and then makes calls from an older thread, a new
//! thread, a child, a thread of the child, and a program that the child starts.

use crate::raw;
use std::sync::mpsc;

/// `others` is the number of additional threads, which only wait.
pub fn run(others: u64) {
    for _ in 0..others {
        let waiting = std::thread::Builder::new().stack_size(16 << 10).spawn(|| {
            loop {
                std::thread::park();
            }
        });
        waiting.expect("the machine takes so many threads");
    }
    let (go, wait) = mpsc::channel::<()>();
    let (up, is_up) = mpsc::channel::<()>();
    let old = std::thread::spawn(move || {
        up.send(()).expect("the first thread listens");
        wait.recv().expect("the first thread says when");
        raw::tag(1);
    });
    is_up.recv().expect("the old thread is up");
    println!("ready {}", std::process::id());
    while !raw::poll_stdin(20) {}

    go.send(()).expect("the old thread listens");
    old.join().expect("the old thread ends well");
    std::thread::spawn(|| raw::tag(2)).join().expect("the new thread ends well");
    let child = raw::fork(|| {
        raw::tag(3);
        let status = std::process::Command::new(raw::myself()).args(["tag", "4"]).status().expect("the program starts anew");
        assert!(status.success());
    });
    raw::wait(child);
    raw::tag(5);
    println!("issued lseek 5");
}
