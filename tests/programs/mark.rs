//! Marks that a program sets in traces of itself (the crate rtrace-mark).

use crate::raw;
use rtrace_mark::{Mark, Text};
use std::os::unix::process::CommandExt;
use std::process::Command;

type Fields = (u32, i64, Text, bool);

fn register(event: &str) -> Mark<Fields> {
    let mark = Mark::register(event, ["number", "change", "text", "last"]);
    mark.unwrap_or_else(|why| panic!("{why}"))
}

fn set(mark: &Mark<Fields>, number: u32, last: bool) -> bool {
    let text = format!("mark \"{number}\"");
    mark.set((number, -i64::from(number) << 32, &text, last)).expect("the kernel takes the record")
}

/// Marks from 0 on; says how many of them were recorded.
pub fn run(event: &str, count: u32) {
    let mark = register(event);
    let recorded = (0..count).filter(|number| set(&mark, *number, number + 1 == count)).count();
    println!("set {recorded}");
}

/// Parent and child set the parent's mark, numbers 0 and 1, from when somebody traces it until nobody does.
pub fn fork(event: &str) {
    let mark = register(event);
    let child = raw::fork(|| set_while_traced(&mark, 1));
    set_while_traced(&mark, 0);
    raw::wait(child);
}

fn set_while_traced(mark: &Mark<Fields>, number: u32) {
    // Some minutes: whoever gave up on us must not find us forever.
    for _ in 0..300_000 {
        if mark.is_traced() {
            break;
        }
        raw::poll_nothing(1);
    }
    while set(mark, number, true) {
        raw::poll_nothing(10);
    }
}

/// Becomes another program, which has not the mark.
pub fn exec(event: &str, command: &[&str]) {
    let mark = register(event);
    assert!(!mark.is_traced());
    panic!("exec: {}", Command::new(command[0]).args(&command[1..]).exec());
}
