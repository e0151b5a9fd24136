//! Marks that a program writes into traces of itself (the crate rtrace-mark).

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

/// Writes marks from 0 on, and prints how many of them were recorded.
pub fn run(event: &str, count: u32) {
    let mark = register(event);
    let recorded = (0..count).filter(|number| set(&mark, *number, number + 1 == count)).count();
    println!("set {recorded}");
}

/// Parent and child write the parent's mark, with the numbers 0 and 1, from the moment at which a trace begins until it
/// ends.
pub fn fork(event: &str) {
    let mark = register(event);
    let child = raw::fork(|| set_while_traced(&mark, 1));
    set_while_traced(&mark, 0);
    raw::wait(child);
}

fn set_while_traced(mark: &Mark<Fields>, number: u32) {
    // The program ends after some minutes, in case the test that started it has failed.
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

/// Executes another program, which does not have the mark.
pub fn exec(event: &str, command: &[&str]) {
    let mark = register(event);
    assert!(!mark.is_traced());
    panic!("exec: {}", Command::new(command[0]).args(&command[1..]).exec());
}
