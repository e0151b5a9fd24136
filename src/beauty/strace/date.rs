//! Prints the date of a time in a comment: ` /* 2026-11-23T17:10:08.746000467+0000 */`.

use crate::session::Zone;
use jiff::tz::{Offset, TimeZone};
use std::io::Write;

/// Appends the date of a second of Unix time in a zone. A fraction that is 0 is left out, and so is the date of the
/// time 0, which mostly means that there is none.
pub fn comment(out: &mut Vec<u8>, second: i64, nanoseconds: u64, zone: Option<&Zone>) {
    let (Some(zone), true, Ok(time)) = (zone, second != 0 || nanoseconds != 0, jiff::Timestamp::from_second(second)) else { return };
    let offset = Offset::from_seconds(zone.offset_at(second)).unwrap_or(Offset::UTC);
    let zoned = time.to_zoned(TimeZone::fixed(offset));
    // Writing to a Vec does not fail.
    _ = write!(out, " /* {}", zoned.strftime("%Y-%m-%dT%H:%M:%S"));
    if (1..1_000_000_000).contains(&nanoseconds) {
        _ = write!(out, ".{nanoseconds:09}");
    }
    _ = write!(out, "{} */", zoned.strftime("%z"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(second: i64, nanoseconds: u64) -> String {
        let mut out = Vec::new();
        comment(&mut out, second, nanoseconds, Some(&Zone::utc()));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_date_has_the_fraction_that_is_not_zero() {
        assert_eq!(text(1_795_453_808, 746_000_467), " /* 2026-11-23T17:10:08.746000467+0000 */");
        assert_eq!(text(1_685_210_301, 0), " /* 2023-05-27T17:58:21+0000 */");
        assert_eq!(text(0, 0), "");
    }
}
