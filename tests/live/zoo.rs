//! Every kind of open file has the name that the kernel uses for it; sockets have their addresses, and pidfds their
//! process.

use crate::line;
use crate::machine::Machine;
use crate::trace::{Trace, workload};

/// Returns a name as it was before it was escaped for its line.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, behind @ ..] = rest {
        rest = behind;
        let escape = if *first == b'\\' { behind.first().copied() } else { None };
        let byte = match escape {
            None => *first,
            Some(b'x') => u8::from_str_radix(&text[text.len() - rest.len() + 1..][..2], 16).expect("two digits"),
            Some(b'n') => b'\n',
            Some(other) => other,
        };
        rest = &rest[match escape {
            None => 0,
            Some(b'x') => 3,
            Some(_) => 1,
        }..];
        bytes.push(byte);
    }
    bytes
}

/// Returns the names in the calls that show one, in order.
fn shown(trace: &Trace) -> Vec<String> {
    let lines = trace.lines();
    let marked = |(_, call): &(_, line::Call)| call.name == "lseek" && call.args.contains("offset: 7777");
    let name = |(_, call): (_, line::Call)| {
        let (_, name) = call.args.strip_prefix("fd: ")?.split_once('<')?;
        Some(String::from_utf8_lossy(&unescaped(&name[..name.rfind(">, offset")?])).into_owned())
    };
    line::calls(&lines).into_iter().filter(marked).map(|call| name(call).unwrap_or_default()).collect()
}

/// Returns the names that the program printed.
fn told(trace: &Trace) -> Vec<String> {
    let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).expect("digits"), 16).expect("digits");
    trace
        .stdout
        .lines()
        .map(|line| String::from_utf8_lossy(&line.as_bytes().chunks(2).map(byte).collect::<Vec<_>>()).into_owned())
        .collect()
}

#[test]
fn every_kind_of_file_has_its_name() {
    let Some(machine) = Machine::shared_with_bpf() else { return };
    let trace = workload(&machine, &["--engine", "bpf", "-e", "lseek"], &format!("zoo {}", machine.dir().display())).succeeded();
    let (shown, told) = (shown(&trace), told(&trace));
    assert!(told.len() > 80, "{}: {}", told.len(), trace.stderr);
    let differ: Vec<_> = shown.iter().zip(&told).filter(|(shown, told)| shown != told).collect();
    assert!(differ.is_empty(), "shown, told: {differ:#?}");
    assert_eq!(shown.len(), told.len());
}
