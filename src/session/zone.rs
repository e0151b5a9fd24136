//! The local time zone of the traced machine, for time stamps.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::path::Path;

/// The maximum number of changes that are kept: those of ten years, where clocks change twice a year.
const CHANGES_MAX: usize = 20;

/// How many seconds before the trace the kept changes begin.
const BEFORE: i64 = 366 * 24 * 60 * 60;

/// The rules of a time zone in the years around a trace. They are numbers, so that a replay needs no database of time
/// zones.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Zone {
    /// The offset before the first change: seconds east of UTC.
    offset: i32,
    /// The changes in the order of time: the first second (of Unix time) with another offset, and that offset.
    changes: Vec<(i64, i32)>,
}

impl Zone {
    /// Returns UTC.
    pub fn utc() -> Zone {
        Zone::default()
    }

    /// Reads the zone of this process: `TZ`, or else /etc/localtime. `start` is the second of Unix time at which the
    /// trace begins. It is UTC if there are no such rules.
    pub fn of_machine(start: i64) -> Zone {
        // jiff finds a zone by its name in a list that it makes of all files of the database, which takes milliseconds.
        let read = match std::env::var_os("TZ") {
            None => rules(Path::new("/etc/localtime")),
            Some(name) => name.to_str().and_then(|name| rules(&Path::new("/usr/share/zoneinfo").join(name.trim_start_matches(':')))),
        };
        Zone::around(&read.unwrap_or_else(TimeZone::system), start)
    }

    /// Returns the rules of a zone in the years around this second of Unix time.
    fn around(zone: &TimeZone, start: i64) -> Zone {
        let from = Timestamp::from_second(start.saturating_sub(BEFORE)).unwrap_or_default();
        let changes = zone.following(from).take(CHANGES_MAX).map(|change| (change.timestamp().as_second(), change.offset().seconds()));
        Zone { offset: zone.to_offset(from).seconds(), changes: changes.collect() }
    }

    /// Returns the zone's offset at a second of Unix time, in seconds east of UTC.
    pub fn offset_at(&self, second: i64) -> i32 {
        let before = self.changes.partition_point(|(from, _)| *from <= second);
        before.checked_sub(1).map_or(self.offset, |last| self.changes[last].1)
    }
}

/// Reads the rules of a zone from a regular file in the format of tzfile(5).
fn rules(path: &Path) -> Option<TimeZone> {
    let file = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    /// The largest files have some 4 KiB.
    const BYTES_MAX: u64 = 1 << 20;
    let bytes = std::fs::read(path).ok().filter(|_| file.len() <= BYTES_MAX)?;
    TimeZone::tzif("", &bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2025-11-21 03:00:00 UTC.
    const START: i64 = 1_763_694_000;

    #[test]
    fn offsets_follow_the_changes_of_the_zone() {
        // Central European Time by the rule of 1996: from the last Sunday of March to that of October, at 01:00 UTC.
        let zone = Zone::around(&TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap(), START);
        let (summer, winter) = (1_774_746_000, 1_792_890_000); // 2026-03-29 and 2026-10-25, 01:00 UTC
        let at = [START, summer - 1, summer, winter - 1, winter, summer - 366 * 86_400, START - 20 * 86_400];
        assert_eq!(at.map(|second| zone.offset_at(second) / 3_600), [1, 1, 2, 2, 1, 1, 1]);
        assert_eq!(zone.offset_at(START - 60 * 86_400), 7_200, "before the change in October 2025");
        let stored = serde_json::to_string(&zone).unwrap();
        assert_eq!(serde_json::from_str::<Zone>(&stored).unwrap(), zone);
    }

    #[test]
    fn a_fixed_zone_has_no_changes() {
        let zone = Zone::around(&TimeZone::fixed(jiff::tz::offset(-3)), START);
        assert_eq!((zone.offset_at(0), zone.offset_at(START), zone.changes.len()), (-10_800, -10_800, 0));
        assert_eq!(Zone::utc().offset_at(START), 0);
    }

    #[test]
    fn the_rules_of_this_machine_are_those_of_the_system() {
        let system = TimeZone::system();
        let zone = Zone::of_machine(START);
        for second in [START, START + 200 * 86_400] {
            assert_eq!(zone.offset_at(second), system.to_offset(Timestamp::from_second(second).unwrap()).seconds());
        }
    }

    #[test]
    fn extreme_times_have_an_offset() {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for start in [i64::MIN, -1, i64::MAX] {
            let zone = Zone::around(&berlin, start);
            assert!([i64::MIN, 0, i64::MAX].into_iter().all(|second| [3_600, 7_200].contains(&zone.offset_at(second))));
        }
    }
}
