//! The span of `--time FROM,TO`: its language, and what it means for a recording.

use crate::event::Time;
use crate::session::Session;
use crate::show::TimeFormat;
use crate::text::quantity::{scaled, time_scale};
use jiff::civil;

const SECOND: u64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// `--time FROM,TO`: events from the one moment to the other are shown, both included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSpan {
    /// The first moment; `None` is the beginning.
    pub from: Option<Moment>,
    /// The last moment; `None` is the end.
    pub to: Option<Moment>,
    /// The words of the user.
    pub text: String,
}

/// A moment of a recording, as the user names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds since the moment from which relative time stamps count.
    Since(u64),
    /// Nanoseconds of CLOCK_MONOTONIC.
    Monotonic(u64),
    /// Nanoseconds since the beginning of 1970 in UTC.
    Epoch(u64),
    /// A time of day, of the day on which the recording began if no date is given.
    Day {
        /// The date.
        date: Option<civil::Date>,
        /// The time of day.
        time: civil::Time,
        /// Its zone, in seconds east of UTC; `None` is that of the recording.
        zone: Option<i32>,
    },
    /// Millionths of the time between the first and the last round of the recording.
    Share(u64),
}

/// A moment of a recording, as far as it is known before the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A time of the recording.
    At(Time),
    /// Nanoseconds since the moment from which relative time stamps count.
    Since(u64),
}

impl Bound {
    /// Returns the time of this moment if relative time stamps count from `origin`.
    pub fn at(self, origin: Time) -> Time {
        match self {
            Bound::At(time) => time,
            Bound::Since(nanoseconds) => Time(origin.0.saturating_add(nanoseconds)),
        }
    }
}

/// The bounds of a span in a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The first moment; `None` is the beginning.
    pub from: Option<Bound>,
    /// The last moment; `None` is the end.
    pub to: Option<Bound>,
}

impl TimeSpan {
    /// Parses a span. What a number without a unit means depends on the format of time stamps.
    ///
    /// # Errors
    /// It is none: a sentence.
    pub fn parse(text: &str, format: TimeFormat) -> Result<TimeSpan, String> {
        let halves = text.split_once(',').or_else(|| text.split_once("%-").map(|(from, to)| (&text[..=from.len()], to)));
        let Some((from, to)) = halves else {
            return Err(format!("`{text}` is no span of time: write FROM,TO, of which one may be empty"));
        };
        let one = |text: &str| if text.trim().is_empty() { Ok(None) } else { moment(text.trim(), format).map(Some) };
        let span = TimeSpan { from: one(from)?, to: one(to)?, text: text.to_owned() };
        let (Some(from), Some(to)) = (span.from, span.to) else { return Ok(span) };
        let is_backwards = match (from, to) {
            (Moment::Since(from), Moment::Since(to))
            | (Moment::Monotonic(from), Moment::Monotonic(to))
            | (Moment::Epoch(from), Moment::Epoch(to))
            | (Moment::Share(from), Moment::Share(to)) => to < from,
            _ => false,
        };
        if is_backwards { Err(format!("`{text}` ends before it begins")) } else { Ok(span) }
    }

    /// Returns what the span means in a recording. `lasts` are the times of its first and its last round, if the
    /// recording has them.
    ///
    /// # Errors
    /// A share is asked for, and the recording does not say how long it lasts: a sentence that begins with the option.
    pub fn bounds(&self, session: &Session, lasts: Option<(Time, Time)>) -> Result<Bounds, String> {
        let one = |moment: Option<Moment>| {
            moment.map(|moment| moment.bound(session, lasts)).transpose().map_err(|why| format!("--time {}: {why}", self.text))
        };
        Ok(Bounds { from: one(self.from)?, to: one(self.to)? })
    }
}

impl Moment {
    fn bound(self, session: &Session, lasts: Option<(Time, Time)>) -> Result<Bound, String> {
        let of_wall = |nanoseconds: i128| {
            let monotonic = nanoseconds - i128::from(session.realtime_offset);
            Bound::At(Time(monotonic.clamp(0, u64::MAX.into()) as u64))
        };
        Ok(match self {
            Moment::Since(nanoseconds) => Bound::Since(nanoseconds),
            Moment::Monotonic(nanoseconds) => Bound::At(Time(nanoseconds)),
            Moment::Epoch(nanoseconds) => of_wall(nanoseconds.into()),
            Moment::Share(millionths) => {
                let (first, last) =
                    lasts.ok_or("the recording does not say how long it lasts (it was not completed, or the recorder did not write it); name times instead of shares")?;
                let part = u128::from(last.since(first)) * u128::from(millionths) / 1_000_000;
                Bound::At(Time(first.0.saturating_add(part as u64)))
            }
            Moment::Day { date, time, zone } => {
                let offset_at = |second: i64| i64::from(zone.unwrap_or_else(|| session.zone.offset_at(second)));
                let began = (i128::from(session.started.0) + i128::from(session.realtime_offset)).div_euclid(SECOND.into()) as i64;
                let day = match date {
                    None => (began + offset_at(began)).div_euclid(DAY),
                    Some(date) => {
                        civil::DateTime::from_parts(date, civil::Time::midnight()).duration_since(civil::date(1970, 1, 1).into()).as_secs()
                            / DAY
                    }
                };
                let of_day = time.duration_since(civil::Time::midnight()).as_nanos();
                let local = day * DAY + (of_day / i128::from(SECOND)) as i64;
                // The offset of a local time: that of the moment which has this local time.
                let second = local - offset_at(local - offset_at(local));
                of_wall(i128::from(second) * i128::from(SECOND) + of_day % i128::from(SECOND))
            }
        })
    }
}

/// Parses one moment.
fn moment(text: &str, format: TimeFormat) -> Result<Moment, String> {
    let wrong = |why: &str| {
        format!(
            "`{text}` is no moment{why}: write seconds, a time with a unit (20ms), a time of day (10:11:12.5, 2026-01-31 10:11:12) or a share (25%)"
        )
    };
    if let Some(number) = text.strip_suffix('%') {
        let share = scaled(number, 10_000).map_err(|why| wrong(&format!(" ({why})")))?;
        return if share <= 1_000_000 { Ok(Moment::Share(share)) } else { Err(format!("`{text}` is more than the whole recording")) };
    }
    if text.contains(':') {
        let (date, time) = match text.split_once(['T', ' ', '_']) {
            Some((date, time)) => (Some(date.parse().map_err(|_| wrong(""))?), time),
            None => (None, text),
        };
        let (time, zone) = zone_of(time).ok_or_else(|| wrong(""))?;
        let zone = zone.or((format == TimeFormat::Utc).then_some(0));
        return Ok(Moment::Day { date, time: time.parse().map_err(|_| wrong(""))?, zone });
    }
    let end = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = if unit.is_empty() { Some(SECOND) } else { time_scale(unit) };
    let nanoseconds = scale.and_then(|scale| scaled(number, scale).ok()).ok_or_else(|| wrong(""))?;
    Ok(match format {
        TimeFormat::Monotonic if unit.is_empty() => Moment::Monotonic(nanoseconds),
        TimeFormat::Epoch if unit.is_empty() => Moment::Epoch(nanoseconds),
        _ => Moment::Since(nanoseconds),
    })
}

/// Splits the zone off a time of day (`Z`, `+01:00`), if it has one. Returns `None` if the zone is wrong.
fn zone_of(time: &str) -> Option<(&str, Option<i32>)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, Some(0)));
    }
    let Some(at) = time.find(['+', '-']) else { return Some((time, None)) };
    let offset: civil::Time = time[at + 1..].parse().ok()?;
    let seconds = i32::from(offset.hour()) * 3600 + i32::from(offset.minute()) * 60;
    Some((&time[..at], Some(if time[at..].starts_with('-') { -seconds } else { seconds })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, format: TimeFormat) -> Result<(Option<Moment>, Option<Moment>), String> {
        TimeSpan::parse(text, format).map(|span| (span.from, span.to))
    }

    #[test]
    fn numbers_mean_what_time_stamps_show() {
        let of = |format| parse("1.5,200", format).unwrap();
        assert_eq!(of(TimeFormat::Relative), (Some(Moment::Since(1_500_000_000)), Some(Moment::Since(200 * SECOND))));
        assert_eq!(of(TimeFormat::Monotonic), (Some(Moment::Monotonic(1_500_000_000)), Some(Moment::Monotonic(200 * SECOND))));
        assert_eq!(of(TimeFormat::Epoch), (Some(Moment::Epoch(1_500_000_000)), Some(Moment::Epoch(200 * SECOND))));
        assert_eq!(parse("20ms,", TimeFormat::Monotonic), Ok((Some(Moment::Since(20_000_000)), None)));
        assert_eq!(parse(",7us", TimeFormat::Local), Ok((None, Some(Moment::Since(7_000)))));
        let share = |millionths| Some(Moment::Share(millionths));
        assert_eq!(parse("10%-20.5%", TimeFormat::Relative), Ok((share(100_000), share(205_000))));
        assert_eq!(parse("10%,20%", TimeFormat::Relative), Ok((share(100_000), share(200_000))));
    }

    #[test]
    fn other_words_are_refused_with_the_forms() {
        for (text, part) in [
            ("1.5", "write FROM,TO"),
            ("now,then", "`now` is no moment"),
            ("2,1", "ends before it begins"),
            ("120%,", "more than the whole"),
            ("25:00:00,", "`25:00:00` is no moment"),
            ("1,2,3", "`2,3` is no moment"),
            ("1x,", "`1x` is no moment"),
        ] {
            let said = TimeSpan::parse(text, TimeFormat::Relative).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn times_of_day_are_those_of_the_recording() {
        // It began at 2025-11-21 03:00:00 UTC, a second after the machine did.
        let session = Session { started: Time(SECOND), realtime_offset: 1_763_694_000_000_000_000 - SECOND as i64, ..Session::default() };
        let at = |text: &str| {
            let bounds =
                TimeSpan::parse(&format!("{text},"), TimeFormat::Local).unwrap().bounds(&session, Some((Time(0), Time(4000)))).unwrap();
            match bounds.from.unwrap() {
                Bound::At(time) => time.0 as i64 - SECOND as i64,
                Bound::Since(_) => panic!("it is a time"),
            }
        };
        assert_eq!(at("03:00:00"), 0);
        assert_eq!(at("03:00:01.000000007"), SECOND as i64 + 7);
        assert_eq!(at("2025-11-21 03:01:00"), 60 * SECOND as i64);
        assert_eq!(at("2025-11-22T03:00:00Z"), DAY * SECOND as i64);
        assert_eq!(at("2025-11-21T04:30:00.5+01:30"), SECOND as i64 / 2);
        assert_eq!(at("02:00:00"), -(SECOND as i64), "before the machine began");
        assert_eq!(at("25%"), 1000 - SECOND as i64);
        let killed = TimeSpan::parse("1%,", TimeFormat::Local).unwrap().bounds(&session, None).unwrap_err();
        assert!(killed.contains("was not completed"), "{killed}");
    }
}
