//! Starts and durations are those of the call on whose line they stand: the program read the clock on both sides of each.

use crate::line::{self, Result};
use crate::machine::Machine;
use crate::trace::{Trace, overrun, workload};
use std::collections::HashMap;

/// Durations are printed to the microsecond, rounded.
const ROUNDING_NS: u64 = 500;

struct Span {
    before: u64,
    after: u64,
}

/// By name and tag; the thread is in the value's line.
fn spans(trace: &Trace) -> HashMap<(i32, String, u64), Span> {
    let span = |line: &str| {
        let words: Vec<&str> = line.strip_prefix("span ")?.split(' ').collect();
        let [tid, name, tag, before, after] = words.as_slice() else { return None };
        let number = |word: &str| word.parse().ok();
        Some(((number(tid)? as i32, (*name).to_owned(), number(tag)?), Span { before: number(before)?, after: number(after)? }))
    };
    trace.stdout.lines().filter_map(span).collect()
}

/// Holds every line with a known tag against its span, and gives how many there were.
fn hold(trace: &Trace, tag: &str) -> usize {
    let spans = spans(trace);
    let lines = trace.lines();
    let mut held = 0;
    for (line, call) in line::calls(&lines) {
        let Some(span) = call.number(tag).and_then(|tag| spans.get(&(line.tid, call.name.clone(), tag))) else { continue };
        if line.time.is_none() {
            continue;
        }
        let start = line.start_ns();
        assert!(span.before <= start, "starts {} ns early: {}", span.before - start, line.text);
        if let (Some(duration), Result::Returned(_)) = (line.duration, &call.result) {
            let end = start + (duration * 1e6) as u64;
            assert!(end <= span.after + ROUNDING_NS, "ends {} ns late: {}", end - span.after, line.text);
            held += 1;
        }
    }
    held
}

#[test]
fn of_calls_that_sleep_side_by_side() {
    let Some(machine) = Machine::shared() else { return };
    for events in ["poll,lseek", "*"] {
        let trace = workload(&machine, &["--time-format", "monotonic", "-e", events], "spans sleep 4 20").succeeded();
        assert_eq!(trace.conserved().lost, 0);
        assert_eq!(hold(&trace, "timeout_msecs"), 80);
        let lines = trace.lines();
        for (line, call) in line::calls(&lines) {
            let (Some(timeout), Some(duration)) = (call.number("timeout_msecs"), line.duration) else { continue };
            assert!(call.name != "poll" || duration >= timeout as f64, "poll cannot time out early: {}", line.text);
        }
    }
}

#[test]
fn of_calls_that_are_quick() {
    let Some(machine) = Machine::alone() else { return };
    let trace = workload(&machine, &["--time-format", "monotonic"], "spans quick 4 5000").succeeded();
    assert_eq!(trace.conserved().lost, 0);
    assert_eq!(hold(&trace, "offset"), 20_000);
}

#[test]
fn of_calls_beside_a_gap() {
    let Some(machine) = Machine::alone() else { return };
    let trace = overrun(&machine, &["--time-format", "monotonic", "-m", "8K"], "spans quick 4 50000").succeeded();
    assert!(trace.conserved().lost > 0, "the ring held everything");
    assert!(hold(&trace, "offset") > 1000);
}
