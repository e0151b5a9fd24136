//! The progress of a replay: a line on a terminal that is written again and again, and erased at the end.
//!
//! It appears where it disturbs nothing: stderr is a terminal, and the output is not shown beside it while the
//! recording is read. A short replay ends before it appears.

use crate::request::Trace;
use crate::say;
use crate::show::{Mode, Style};
use crate::sink::output::Output;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// How long a replay runs before the line appears, and how long the line stays as it is.
const FIRST: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(250);

/// The progress line of a replay.
#[derive(Debug)]
pub struct Progress {
    begun: Instant,
    /// When the line is written again; `None` if there is no line.
    next: Option<Instant>,
}

impl Progress {
    /// Returns the progress line of a replay to this output. It is never shown if the request is quiet.
    pub fn new(request: &Trace, output: &Output) -> Progress {
        let has_only_tables = request.show.mode == Mode::Summary && request.show.interval.is_none() && request.show.style != Style::Json;
        let is_beside_lines = output.is_watched() && !(has_only_tables && output.columns_of_terminal().is_some());
        let is_shown = !request.run.quiet && io::stderr().is_terminal() && !is_beside_lines;
        let begun = Instant::now();
        Progress { begun, next: is_shown.then(|| begun + FIRST) }
    }

    /// Shows how many of the recording's bytes were read, if it is time for that.
    pub fn show(&mut self, (done, all): (u64, u64)) {
        let Some(next) = self.next else { return };
        let now = Instant::now();
        if now >= next {
            self.next = Some(now + STEP);
            say::transient(&line(done, all, now - self.begun));
        }
    }

    /// Erases the line. Nothing is shown any more.
    pub fn end(&mut self) {
        if self.next.take().is_some() {
            say::end_transient();
        }
    }
}

/// Returns the text of the line after this time.
fn line(done: u64, all: u64, elapsed: Duration) -> String {
    let share = done as f64 / all.max(1) as f64;
    let left = elapsed.as_secs_f64() * (1.0 / share.max(f64::MIN_POSITIVE) - 1.0);
    format!("rtrace: {:.0} % of {}, {} left", (share * 100.0).floor(), size(all), time(left))
}

/// Returns a size in the largest unit of which it has at least one.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

/// Returns a time that is estimated, in one or two units.
fn time(seconds: f64) -> String {
    match seconds.ceil() as u64 {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_share_and_the_time_that_is_left() {
        let at = |done, seconds| line(done, 1_600_000_000, Duration::from_secs(seconds));
        assert_eq!(at(400_000_000, 4), "rtrace: 25 % of 1.6 GB, 12 s left");
        assert_eq!(at(16_000_000, 4), "rtrace: 1 % of 1.6 GB, 6 min 36 s left");
        assert_eq!(at(1_600_000, 9), "rtrace: 0 % of 1.6 GB, 2 h 29 min left");
        assert_eq!(at(1_599_999_999, 9), "rtrace: 99 % of 1.6 GB, 1 s left");
        assert_eq!(line(7, 7, Duration::from_secs(1)), "rtrace: 100 % of 7 bytes, 0 s left");
        // Nothing was read yet, or the file has grown.
        line(0, 0, Duration::from_secs(1));
        line(9, 7, Duration::from_secs(1));
    }
}
