//! A program that executes itself again, from its first thread or from another one while the others wait.

use crate::raw;
use std::os::unix::process::CommandExt;

/// Tag 1 is the last call before the exec, and tag 2 a call of the program after it.
pub fn run(who: &str) {
    match who {
        "leader" => exec(),
        "thread" => {
            let others = raw::sleepers(3);
            let execing = std::thread::spawn(exec);
            execing.join().expect("an exec does not return");
            drop(others);
        }
        _ => panic!("no thread {who:?}"),
    }
}

fn exec() {
    let mut next = std::process::Command::new(raw::myself());
    next.args(["tag", "2"]);
    raw::tag(1);
    panic!("exec: {}", next.exec());
}
