//! A parser of perf style's lines.

use regex::Regex;
use std::collections::HashMap;
use std::sync::LazyLock;

/// One line of the trace.
#[derive(Clone, Debug)]
pub struct Line {
    /// The time stamp as printed; `None` for `?`.
    pub time: Option<String>,
    /// The duration in milliseconds.
    pub duration: Option<f64>,
    pub comm: String,
    pub tid: i32,
    pub what: What,
    pub text: String,
}

#[derive(Clone, Debug)]
pub enum What {
    Call(Call),
    /// `+++ exited with N +++` and similar lines, without the pluses.
    Ended(String),
    Other,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    pub args: String,
    /// `... [continued]: `
    pub continued: bool,
    pub result: Result,
}

/// The text after the closing parenthesis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Result {
    /// ` ...`: the call is in flight.
    Pending,
    /// `= ?` or `= ? REASON`: the call did not return to user space.
    Never,
    Returned(String),
}

impl Line {
    pub fn call(&self) -> Option<&Call> {
        match &self.what {
            What::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The start in nanoseconds of CLOCK_MONOTONIC, from a line with `--time-format monotonic`: seconds with nine
    /// digits after the point.
    pub fn start_ns(&self) -> u64 {
        let text = self.time.as_deref().unwrap_or_else(|| panic!("no start: {}", self.text));
        let (seconds, fraction) = text.split_once('.').unwrap_or_else(|| panic!("no point: {}", self.text));
        assert_eq!(fraction.len(), 9, "not to the nanosecond: {}", self.text);
        format!("{seconds}{fraction}").parse().unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }
}

impl Call {
    /// Returns the value of an argument, as printed.
    pub fn arg(&self, name: &str) -> Option<&str> {
        self.args.split(", ").find_map(|arg| arg.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Returns the value of an argument that is a decimal number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.arg(name)?.parse().ok()
    }

    /// Returns a call that has returned as `NAME(ARGS) = RESULT`.
    pub fn returned(&self) -> String {
        match &self.result {
            Result::Returned(result) => format!("{}({}) = {result}", self.name, self.args),
            other => panic!("{}: {other:?}", self.args),
        }
    }

    /// Whether this is the return of a new task from the clone, fork or vfork that its parent called.
    fn is_first_return_of_a_child(&self) -> bool {
        matches!(self.name.as_str(), "clone" | "clone3" | "fork" | "vfork") && self.result == Result::Returned("0".into())
    }
}

/// Parses the lines of a trace. Blank lines and summaries are left out.
pub fn parse(text: &str) -> Vec<Line> {
    text.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<Line> {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^ *(\?|-?[0-9][0-9:.T+Z-]*) (?:\[[0-9]{3,}\] )?\( *(?:([0-9.]+) ms| *)\): (?:(.*?)/([0-9]+) )?(.*)$")
            .expect("the pattern is right")
    });
    let head = HEAD.captures(text)?;
    let part = |i: usize| head.get(i).map(|m| m.as_str());
    Some(Line {
        time: part(1).filter(|t| *t != "?").map(str::to_owned),
        duration: part(2).map(|ms| ms.parse().expect("the pattern admits digits only")),
        comm: part(3).unwrap_or_default().to_owned(),
        tid: part(4).map_or(0, |tid| tid.parse().expect("the pattern admits digits only")),
        what: what(part(5)?),
        text: text.to_owned(),
    })
}

fn what(body: &str) -> What {
    if let Some(end) = body.strip_prefix("+++ ").and_then(|b| b.strip_suffix(" +++")) {
        return What::Ended(end.to_owned());
    }
    let (continued, body) = match body.trim_start().strip_prefix("... [continued]: ") {
        Some(rest) => (true, rest),
        None => (false, body),
    };
    call(body, continued).map_or(What::Other, What::Call)
}

fn call(body: &str, continued: bool) -> Option<Call> {
    static CALL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^((?:io_uring:)?[a-z_][a-z0-9_-]*)\((.*?)\)? *(?:(\.\.\.)|\) += (.*))$").expect("the pattern is right")
    });
    let parts = CALL.captures(body)?;
    let result = match parts.get(4).map(|m| m.as_str()) {
        None => Result::Pending,
        Some(result) if result.starts_with('?') => Result::Never,
        Some(result) => Result::Returned(result.to_owned()),
    };
    Some(Call { name: parts[1].to_owned(), args: parts[2].to_owned(), continued, result })
}

/// Returns every call once, in the order of their last lines. A long call has one line while it is in flight and a
/// continued one with the result; both become one call here.
pub fn calls(lines: &[Line]) -> Vec<(&Line, Call)> {
    let mut pending: HashMap<(i32, &str), usize> = HashMap::new();
    let mut calls: Vec<Option<(&Line, Call)>> = Vec::new();
    for line in lines {
        let Some(call) = line.call() else { continue };
        let key = (line.tid, call.name.as_str());
        if call.continued {
            let begun = pending.remove(&key).and_then(|first| calls[first].take());
            if begun.is_none() && call.is_first_return_of_a_child() {
                continue;
            }
        } else if call.result == Result::Pending {
            pending.insert(key, calls.len());
        } else if line.time.is_none() && call.is_first_return_of_a_child() {
            continue;
        }
        calls.push(Some((line, call.clone())));
    }
    calls.into_iter().flatten().collect()
}

#[test]
fn reads_the_layout() {
    let text = "\
     0.780 ( 0.019 ms): sh/20131 getppid()                                                             = 7 (x)
     1.151 (         ): my sh/20132 poll(nfds: 2, timeout_msecs: 5)                                      ...
     1.151 ( 0.477 ms): my sh/20132  ... [continued]: poll(nfds: 2, timeout_msecs: 5)                       = 0 (Timeout)
         ? (         ): sh/20133  ... [continued]: clone()                                             = 0
     2.822 ( 0.017 ms): a/b/20131 openat(dfd: CWD, filename: \"/x (1)\")                                 = -1 ENOENT (No such file or directory)
     2.859 (         ): sh/20131 exit_group()                                                          = ?
     2.900 (         ): sh/20131 +++ exited with 3 +++
";
    let lines = parse(text);
    assert_eq!(lines.len(), 7);
    assert_eq!(lines[3].time, None);
    assert_eq!((lines[1].comm.as_str(), lines[1].tid), ("my sh", 20132));
    assert_eq!(lines[4].comm, "a/b");
    assert!(matches!(&lines[6].what, What::Ended(how) if how == "exited with 3"));
    let calls = calls(&lines);
    let names: Vec<_> = calls.iter().map(|(_, call)| call.name.as_str()).collect();
    assert_eq!(names, ["getppid", "poll", "openat", "exit_group"]);
    assert_eq!(calls[1].1.number("timeout_msecs"), Some(5));
    assert_eq!(calls[2].1.arg("filename"), Some("\"/x (1)\""));
    assert_eq!(calls[2].1.result, Result::Returned("-1 ENOENT (No such file or directory)".into()));
    assert_eq!(calls[3].1.result, Result::Never);
}
