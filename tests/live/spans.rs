//! The start and the duration on a line are those of its call: the program reads the clock before and after each call.

use crate::line::{self, Result};
use crate::machine::Machine;
use crate::trace::{Trace, overrun, workload};
use std::collections::HashMap;

/// Durations are rounded to microseconds.
const ROUNDING_NS: u64 = 500;

struct Span {
    before: u64,
    after: u64,
}

/// The calls by name and tag; the line has the thread.
fn spans(trace: &Trace) -> HashMap<(i32, String, u64), Span> {
    let span = |line: &str| {
        let words: Vec<&str> = line.strip_prefix("span ")?.split(' ').collect();
        let [tid, name, tag, before, after] = words.as_slice() else { return None };
        let number = |word: &str| word.parse().ok();
        Some(((number(tid)? as i32, (*name).to_owned(), number(tag)?), Span { before: number(before)?, after: number(after)? }))
    };
    trace.stdout.lines().filter_map(span).collect()
}

/// Compares every line of a known tag with its span, and returns the number of such lines.
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
fn durations_of_parallel_sleeps_are_right() {
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
fn durations_of_short_calls_are_right() {
    let Some(machine) = Machine::alone() else { return };
    let trace = workload(&machine, &["--time-format", "monotonic"], "spans quick 4 5000").succeeded();
    assert_eq!(trace.conserved().lost, 0);
    assert_eq!(hold(&trace, "offset"), 20_000);
}

#[test]
fn durations_beside_a_gap_are_right_or_absent() {
    let Some(machine) = Machine::alone() else { return };
    let trace = overrun(&machine, &["--time-format", "monotonic", "-m", "8K"], "spans quick 4 50000").succeeded();
    assert!(trace.conserved().lost > 0, "the ring held everything");
    assert!(hold(&trace, "offset") > 1000);
}
