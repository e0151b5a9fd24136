//! The beginning of a line: whose it is, and when it happened.

use super::quote;
use crate::event::{Comm, Time};
use crate::session::Session;
use crate::session::Zone;
use crate::show::strace::{Lines, Pids, Precision, Stamps};
use rustc_hash::FxHashMap;
use std::io::Write;

const SECOND: i64 = 1_000_000_000;

/// Writes the beginnings of lines.
pub struct Head {
    stamps: Option<Stamps>,
    relative: Option<Precision>,
    pids: Pids,
    comms: bool,
    numbers: bool,
    instruction_pointers: bool,
    /// The tasks that are alive, as far as it is known, and the number of the last system call of each.
    tasks: FxHashMap<i32, i64>,
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
            numbers: lines.numbers,
            instruction_pointers: lines.instruction_pointers,
            tasks: FxHashMap::default(),
            previous: None,
            realtime_offset: session.realtime_offset,
            zone: session.zone.clone(),
        }
    }

    /// Notes that a task exists.
    pub fn begun(&mut self, tid: i32) {
        self.tasks.entry(tid).or_default();
    }

    /// Notes that a task has ended.
    pub fn ended(&mut self, tid: i32) {
        self.tasks.remove(&tid);
    }

    /// Writes the beginning of the line of a call, whose instruction pointer is known or not.
    pub fn of_call(&mut self, out: &mut Vec<u8>, tid: i32, comm: Option<&Comm>, time: Time, nr: i64, pointer: Option<u64>) {
        self.tasks.insert(tid, nr);
        self.begin(out, tid, comm, time);
        self.call(out, nr, pointer);
    }

    /// Writes the beginning of a line of a task that is not about a call. It has the number of the task's last call.
    pub fn write(&mut self, out: &mut Vec<u8>, tid: i32, comm: Option<&Comm>, time: Time) {
        let nr = *self.tasks.entry(tid).or_default();
        self.begin(out, tid, comm, time);
        self.call(out, nr, None);
    }

    /// Writes the number of a system call, and where the program called it.
    fn call(&self, out: &mut Vec<u8>, nr: i64, pointer: Option<u64>) {
        // Writing to a Vec does not fail.
        _ = if self.numbers { write!(out, "[{nr:4}] ") } else { Ok(()) };
        _ = match (self.instruction_pointers, pointer) {
            (false, _) => Ok(()),
            (true, Some(pointer)) => write!(out, "[{pointer:016x}] "),
            (true, None) => write!(out, "[????????????????] "),
        };
    }

    fn begin(&mut self, out: &mut Vec<u8>, tid: i32, comm: Option<&Comm>, time: Time) {
        let comm = comm.filter(|_| self.comms);
        let has_brackets = self.pids == Pids::Brackets && self.tasks.len() > 1;
        // Writing to a Vec does not fail.
        _ = match (self.pids, comm) {
            (Pids::Column, None) => write!(out, "{tid:<5} "),
            (Pids::Column, Some(_)) => write!(out, "{tid}"),
            _ if has_brackets => write!(out, "[pid {tid:5}"),
            _ => return self.times(out, time),
        };
        comm.into_iter().for_each(|comm| quote::comm(out, comm));
        out.extend_from_slice(match (has_brackets, comm) {
            (true, _) => b"] ",
            (false, Some(_)) => b" ",
            (false, None) => b"",
        });
        self.times(out, time);
    }

    /// Writes the time stamps of a line.
    fn times(&mut self, out: &mut Vec<u8>, time: Time) {
        if let Some(stamps) = self.stamps {
            self.stamp(out, time, stamps);
        }
        let previous = self.previous.replace(time).unwrap_or(time);
        let Some(precision) = self.relative else { return };
        let passed = time.0.saturating_sub(previous.0);
        let (open, close): (&[u8], &[u8]) = if self.stamps.is_some() { (b"(+", b") ") } else { (b"", b" ") };
        out.extend_from_slice(open);
        // Writing to a Vec does not fail.
        _ = write!(out, "{:6}", passed / SECOND as u64);
        fraction(out, passed % SECOND as u64, precision);
        out.extend_from_slice(close);
    }

    fn stamp(&self, out: &mut Vec<u8>, time: Time, stamps: Stamps) {
        let real = i64::try_from(time.0).unwrap_or(i64::MAX).saturating_add(self.realtime_offset);
        let (second, nanos) = (real.div_euclid(SECOND), real.rem_euclid(SECOND));
        let of_day = (second + i64::from(self.zone.offset_at(second))).rem_euclid(86_400);
        let (hour, minute, of_minute) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        // Writing to a Vec does not fail.
        _ = match stamps.is_unix {
            true => write!(out, "{second}"),
            false => write!(out, "{hour:02}:{minute:02}:{of_minute:02}"),
        };
        fraction(out, nanos as u64, stamps.precision);
        out.push(b' ');
    }
}

/// Appends the digits of a second after the point; none, and no point, for whole seconds.
pub fn fraction(out: &mut Vec<u8>, nanos: u64, precision: Precision) {
    let digits = precision.digits();
    if digits > 0 {
        // Writing to a Vec does not fail.
        _ = write!(out, ".{:0digits$}", nanos / 10u64.pow(9 - digits as u32));
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
        let of =
            |is_unix, precision| beginnings(Lines { stamps: Some(Stamps { is_unix, precision }), pids: Pids::Never, ..Lines::default() });
        assert_eq!(of(false, Precision::Seconds), ["23:59:59 ", "00:00:00 ", "00:00:00 "]);
        assert_eq!(of(false, Precision::Micros)[2], "00:00:00.500002 ");
        assert_eq!(of(true, Precision::Micros)[0], "86399.500001 ");
        assert_eq!(of(true, Precision::Nanos)[0], "86399.500001000 ");
    }

    #[test]
    fn relative_stamps_count_from_the_line_before() {
        let lines = |relative| Lines { relative: Some(relative), pids: Pids::Never, ..Lines::default() };
        assert_eq!(beginnings(lines(Precision::Micros)), ["     0.000000 ", "     1.000000 ", "     0.000001 "]);
        assert_eq!(beginnings(lines(Precision::Seconds))[1], "     1 ");
        let stamps = Some(Stamps { is_unix: false, precision: Precision::Seconds });
        assert_eq!(beginnings(Lines { stamps, ..lines(Precision::Micros) })[1], "00:00:00 (+     1.000000) ");
    }

    #[test]
    fn lines_have_the_number_of_their_task() {
        assert_eq!(beginnings(Lines::default()), ["7     ", "7     ", "12345 "]);
        assert_eq!(beginnings(Lines { pids: Pids::Brackets, ..Lines::default() }), ["", "", "[pid 12345] "]);
    }
}
