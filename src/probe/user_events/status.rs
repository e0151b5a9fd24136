//! Reads `user_events_status`: the user events and the tracers that have enabled them.

use crate::kernel::tracefs::TracePath;
use std::io;

/// A user event and the tracers that have enabled it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The event's name in tracefs (`test`, or `test.0` if it has several formats).
    pub event: String,
    /// The tracers: `ftrace`, `perf`, `other`.
    pub used_by: Vec<String>,
}

/// Reads the file below tracefs's root. On kernels without user events the result is empty.
///
/// # Errors
/// The file exists and cannot be read.
pub fn read(root: &TracePath) -> io::Result<Vec<Status>> {
    match root.join("user_events_status").read_to_string() {
        Ok(text) => Ok(parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Parses one line per event (`test # Used by ftrace perf`), up to the empty line before the totals.
fn parse(text: &str) -> Vec<Status> {
    let event = |line: &str| {
        let (event, comment) = line.split_once('#').unwrap_or((line, ""));
        let users = comment.trim().trim_start_matches("Used by").split_whitespace();
        Status { event: event.trim().to_owned(), used_by: users.map(str::to_owned).collect() }
    };
    text.lines().take_while(|line| !line.trim().is_empty()).map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_their_tracers_are_parsed() {
        let text = "test # Used by ftrace perf\nidle.0\n\nActive: 2\nBusy: 1\n";
        let status = |event: &str, used_by: &[&str]| Status {
            event: event.to_owned(),
            used_by: used_by.iter().map(|who| (*who).to_owned()).collect(),
        };
        assert_eq!(parse(text), [status("test", &["ftrace", "perf"]), status("idle.0", &[])]);
        assert_eq!(parse("\nActive: 0\nBusy: 0\n"), []);
    }
}
