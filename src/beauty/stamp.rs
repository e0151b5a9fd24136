//! The time stamps at the beginning of lines, in the seven formats of `--time-format`.
//!
//! Events have times of CLOCK_MONOTONIC. The wall-clock formats add the session's offset, and those in local time use
//! the session's time zone, so a replay shows the time of the recording. Wall-clock and monotonic stamps have nine
//! digits after the point; the two formats in milliseconds have three, as in perf trace.

use super::lookup;
use super::special::Special;
use crate::event::{EntryState, Event, EventKind, Time};
use crate::session::{Scope, Session, Zone};
use crate::show::TimeFormat;
use crate::text::number;
use jiff::tz::{Offset, TimeZone};

const SECOND: i64 = 1_000_000_000;

/// Writes time stamps, and keeps the origin of relative ones.
#[derive(Debug)]
pub struct Stamps {
    format: TimeFormat,
    /// The time from which relative stamps count.
    origin: Option<Time>,
    /// The time of the previous line.
    previous: Option<Time>,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, in nanoseconds.
    realtime_offset: i64,
    zone: Zone,
    /// The second that `date` and `zone_offset` are of. They are kept because most lines share it with the previous
    /// line.
    second: i64,
    date: String,
    zone_offset: String,
}

impl Stamps {
    /// Creates the stamps of a session. In a trace of existing tasks, relative stamps count from the start of the
    /// trace, since its first call to end is rarely the first that began. In a trace of a command,
    /// [`Stamps::count_from`] sets the origin at the first line.
    pub fn new(format: TimeFormat, session: &Session) -> Stamps {
        let zone = if format.is_local() { session.zone.clone() } else { Zone::utc() };
        let origin = (session.scope != Scope::Command).then_some(session.started);
        Stamps {
            format,
            origin,
            previous: None,
            realtime_offset: session.realtime_offset,
            zone,
            second: i64::MIN,
            date: String::new(),
            zone_offset: String::new(),
        }
    }

    /// Returns whether the origin of relative stamps is still unset.
    pub fn has_no_origin(&self) -> bool {
        self.origin.is_none()
    }

    /// Sets the time from which relative stamps count.
    pub fn count_from(&mut self, origin: Time) {
        self.origin = Some(origin);
    }

    /// Writes the stamp of a line, aligned to its column; `None` is an unknown time.
    pub fn line(&mut self, out: &mut Vec<u8>, time: Option<Time>) {
        let Some(time) = time else {
            number::blanks(out, self.width() - 1);
            return out.push(b'?');
        };
        let origin = *self.origin.get_or_insert(time);
        let previous = self.previous.replace(time).unwrap_or(time);
        match self.format {
            TimeFormat::Relative => number::millis(out, between(origin, time), 10),
            TimeFormat::Delta => number::millis(out, between(previous, time), 10),
            TimeFormat::Monotonic => {
                let seconds = time.0 / SECOND as u64;
                number::blanks(out, 6usize.saturating_sub(seconds.checked_ilog10().map_or(1, |log| log as usize + 1)));
                self.absolute(out, time);
            }
            TimeFormat::Local | TimeFormat::LocalDate | TimeFormat::Utc | TimeFormat::Epoch => self.absolute(out, time),
        }
    }

    /// Writes a time within a line, without alignment. The format `delta` is written as `relative`, since it applies to
    /// lines only.
    pub fn moment(&mut self, out: &mut Vec<u8>, time: Time) {
        match self.format {
            TimeFormat::Relative | TimeFormat::Delta => number::millis(out, between(self.origin.unwrap_or(time), time), 0),
            _ => self.absolute(out, time),
        }
    }

    /// Writes an absolute time: a date with a time of day, or seconds.
    fn absolute(&mut self, out: &mut Vec<u8>, time: Time) {
        let monotonic = i64::try_from(time.0).unwrap_or(i64::MAX);
        let real = monotonic.saturating_add(self.realtime_offset);
        let shown = if self.format == TimeFormat::Monotonic { monotonic } else { real };
        let (second, nanosecond) = (shown.div_euclid(SECOND), shown.rem_euclid(SECOND) as u64);
        if matches!(self.format, TimeFormat::Local | TimeFormat::LocalDate | TimeFormat::Utc) {
            self.keep_date(second);
            out.extend_from_slice(self.date.as_bytes());
        } else {
            number::int(out, second);
        }
        out.push(b'.');
        number::zero_padded(out, nanosecond, 9);
        out.extend_from_slice(self.zone_offset.as_bytes());
    }

    /// Formats date and zone offset of a second, unless they are those of the previous one.
    fn keep_date(&mut self, second: i64) {
        if second == self.second {
            return;
        }
        self.second = second;
        let zone = Offset::from_seconds(self.zone.offset_at(second)).unwrap_or(Offset::UTC);
        let zoned = jiff::Timestamp::from_second(second).unwrap_or_default().to_zoned(TimeZone::fixed(zone));
        let (date, offset) = match self.format {
            TimeFormat::Local => ("%H:%M:%S", ""),
            TimeFormat::Utc => ("%Y-%m-%dT%H:%M:%S", "Z"),
            _ => ("%Y-%m-%dT%H:%M:%S", "%:z"),
        };
        self.date = zoned.strftime(date).to_string();
        self.zone_offset = zoned.strftime(offset).to_string();
    }

    /// Returns the number of columns of a stamp.
    fn width(&self) -> usize {
        match self.format {
            TimeFormat::Relative | TimeFormat::Delta => 10,
            TimeFormat::Monotonic => 16,
            TimeFormat::Epoch => 20,
            TimeFormat::Utc => 30,
            TimeFormat::Local => 18,
            TimeFormat::LocalDate => 35,
        }
    }
}

/// Returns what relative time stamps of a command's trace count from if this event is the first one that is shown;
/// `None` if the event has no line. It is the start of the command's execve if that is the first line, as no other call
/// of the command is older. Otherwise it is the start of the trace, since a call that began before that of the first
/// line may end later.
pub fn origin_of(event: &Event, session: &Session) -> Option<Time> {
    match &event.kind {
        EventKind::Fork { .. } | EventKind::Exec { .. } | EventKind::Aggregate(_) | EventKind::Tally(_) | EventKind::Notice(_) => None,
        EventKind::Tracepoint { event, .. } => session.events.get(*event).filter(|spec| spec.shown).map(|_| session.started),
        EventKind::Call(call)
            if call.entry == EntryState::Seen && lookup::row(call.abi, call.nr).is_some_and(|row| row.does == Special::Execve) =>
        {
            Some(call.id.start)
        }
        _ => Some(session.started),
    }
}

/// Returns the nanoseconds from `earlier` to `later`. The result is negative if `later` precedes `earlier`, which
/// happens because lines are in the order in which calls end.
fn between(earlier: Time, later: Time) -> i64 {
    later.0.wrapping_sub(earlier.0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: i64 = 1_763_694_000 * SECOND;

    fn stamps(format: TimeFormat, times: &[Option<u64>]) -> Vec<String> {
        // Three hours behind UTC, and two from the next day on.
        let zone = serde_json::from_str(r#"{"offset":-10800,"changes":[[1763780400,-7200]]}"#).unwrap();
        let session = Session { realtime_offset: BOOT, zone, ..Session::default() };
        let mut stamps = Stamps::new(format, &session);
        times
            .iter()
            .map(|time| {
                let mut out = Vec::new();
                stamps.line(&mut out, time.map(Time));
                String::from_utf8(out).unwrap()
            })
            .collect()
    }

    const TIMES: [Option<u64>; 4] = [Some(30_000_000_007), Some(30_001_500_000), None, Some(29_999_000_000)];

    #[test]
    fn milliseconds_count_from_the_first_or_the_previous_line() {
        assert_eq!(stamps(TimeFormat::Relative, &TIMES), ["     0.000", "     1.500", "         ?", "    -1.000"]);
        assert_eq!(stamps(TimeFormat::Delta, &TIMES), ["     0.000", "     1.500", "         ?", "    -2.500"]);
    }

    #[test]
    fn stamps_of_a_system_trace_count_from_its_start() {
        let session = Session { started: Time(1_000_000), scope: Scope::System, ..Session::default() };
        let mut out = Vec::new();
        Stamps::new(TimeFormat::Relative, &session).line(&mut out, Some(Time(3_000_000)));
        assert_eq!(out, b"     2.000");
    }

    #[test]
    fn wall_and_monotonic_stamps_have_nine_digits() {
        assert_eq!(
            stamps(TimeFormat::Epoch, &TIMES),
            ["1763694030.000000007", "1763694030.001500000", "                   ?", "1763694029.999000000"]
        );
        assert_eq!(stamps(TimeFormat::Monotonic, &TIMES), ["    30.000000007", "    30.001500000", "               ?", "    29.999000000"]);
        assert_eq!(
            stamps(TimeFormat::Utc, &TIMES),
            [
                "2025-11-21T03:00:30.000000007Z",
                "2025-11-21T03:00:30.001500000Z",
                "                             ?",
                "2025-11-21T03:00:29.999000000Z"
            ]
        );
        assert_eq!(stamps(TimeFormat::LocalDate, &TIMES)[0], "2025-11-21T00:00:30.000000007-03:00");
        assert_eq!(stamps(TimeFormat::LocalDate, &TIMES)[2].len(), 35);
        assert_eq!(stamps(TimeFormat::LocalDate, &[Some(86_430_000_000_000)]), ["2025-11-22T01:00:30.000000000-02:00"]);
        assert_eq!(stamps(TimeFormat::Local, &TIMES[..3]), ["00:00:30.000000007", "00:00:30.001500000", "                 ?"]);
    }
}
