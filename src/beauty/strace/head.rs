//! The beginning of a line: whose it is, and when it happened.

use super::quote;
use crate::event::{Comm, Time};
use crate::session::Session;
use crate::session::Zone;
use crate::show::strace::{Lines, Pids, Stamps};
use rustc_hash::FxHashSet;
use std::io::Write;

const SECOND: i64 = 1_000_000_000;

/// Writes the beginnings of lines.
pub struct Head {
    stamps: Stamps,
    relative: bool,
    pids: Pids,
    comms: bool,
    /// The tasks that are alive, as far as it is known.
    tasks: FxHashSet<i32>,
    /// The time of the previous line.
    previous: Option<Time>,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, in nanoseconds.
    realtime_offset: i64,
    zone: Zone,
}

impl Head {
    pub fn new(lines: &Lines, session: &Session) -> Head {
        Head {
            stamps: lines.stamps,
            relative: lines.relative,
            pids: lines.pids,
            comms: lines.comms,
            tasks: FxHashSet::default(),
            previous: None,
            realtime_offset: session.realtime_offset,
            zone: session.zone.clone(),
        }
    }

    /// Notes that a task exists.
    pub fn begun(&mut self, tid: i32) {
        self.tasks.insert(tid);
    }

    /// Notes that a task has ended.
    pub fn ended(&mut self, tid: i32) {
        self.tasks.remove(&tid);
    }

    /// Writes the beginning of a line of a task.
    pub fn write(&mut self, out: &mut Vec<u8>, tid: i32, comm: Option<&Comm>, time: Time) {
        self.begun(tid);
        let comm = comm.filter(|_| self.comms);
        // Writing to a Vec does not fail.
        _ = match (self.pids, comm) {
            (Pids::Column, None) => write!(out, "{tid:<5} "),
            (Pids::Column, Some(_)) => write!(out, "{tid}"),
            (Pids::Brackets, _) if self.tasks.len() > 1 => write!(out, "[pid {tid:5}"),
            (Pids::Brackets | Pids::Never, _) => return self.times(out, time),
        };
        comm.into_iter().for_each(|comm| quote::comm(out, comm));
        out.extend_from_slice(match (self.pids, comm) {
            (Pids::Brackets, _) => b"] ",
            (_, Some(_)) => b" ",
            _ => b"",
        });
        self.times(out, time);
    }

    /// Writes the time stamps of a line.
    fn times(&mut self, out: &mut Vec<u8>, time: Time) {
        self.stamp(out, time);
        let previous = self.previous.replace(time).unwrap_or(time);
        if self.relative {
            let passed = time.0.saturating_sub(previous.0) / 1000;
            let (seconds, micros) = (passed / 1_000_000, passed % 1_000_000);
            _ = match self.stamps {
                Stamps::None => write!(out, "{seconds:6}.{micros:06} "),
                _ => write!(out, "(+{seconds:6}.{micros:06}) "),
            };
        }
    }

    fn stamp(&self, out: &mut Vec<u8>, time: Time) {
        let real = i64::try_from(time.0).unwrap_or(i64::MAX).saturating_add(self.realtime_offset);
        let (second, micros) = (real.div_euclid(SECOND), real.rem_euclid(SECOND) / 1000);
        let of_day = (second + i64::from(self.zone.offset_at(second))).rem_euclid(86_400);
        let (hour, minute, of_minute) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        // Writing to a Vec does not fail.
        _ = match self.stamps {
            Stamps::None => Ok(()),
            Stamps::Seconds => write!(out, "{hour:02}:{minute:02}:{of_minute:02} "),
            Stamps::Microseconds => write!(out, "{hour:02}:{minute:02}:{of_minute:02}.{micros:06} "),
            Stamps::Unix => write!(out, "{second}.{micros:06} "),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginnings(lines: Lines) -> [String; 3] {
        let mut head = Head::new(&lines, &Session { realtime_offset: 86_399 * SECOND, zone: Zone::utc(), ..Session::default() });
        [(7, 500_001_000), (7, 1_500_001_000), (12345, 1_500_002_000)].map(|(tid, time)| {
            let mut out = Vec::new();
            head.write(&mut out, tid, None, Time(time));
            String::from_utf8(out).unwrap()
        })
    }

    #[test]
    fn stamps_are_of_the_day_or_of_the_epoch() {
        let of = |stamps| beginnings(Lines { stamps, pids: Pids::Never, ..Lines::default() });
        assert_eq!(of(Stamps::Seconds), ["23:59:59 ", "00:00:00 ", "00:00:00 "]);
        assert_eq!(of(Stamps::Microseconds)[2], "00:00:00.500002 ");
        assert_eq!(of(Stamps::Unix)[0], "86399.500001 ");
    }

    #[test]
    fn relative_stamps_count_from_the_line_before() {
        let lines = Lines { relative: true, pids: Pids::Never, ..Lines::default() };
        assert_eq!(beginnings(lines), ["     0.000000 ", "     1.000000 ", "     0.000001 "]);
        assert_eq!(beginnings(Lines { stamps: Stamps::Seconds, ..lines })[1], "00:00:00 (+     1.000000) ");
    }

    #[test]
    fn lines_have_the_number_of_their_task() {
        assert_eq!(beginnings(Lines::default()), ["7     ", "7     ", "12345 "]);
        assert_eq!(beginnings(Lines { pids: Pids::Brackets, ..Lines::default() }), ["", "", "[pid 12345] "]);
    }
}
