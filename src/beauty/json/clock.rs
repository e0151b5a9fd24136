//! Times in objects, by CLOCK_MONOTONIC and CLOCK_REALTIME.

use super::write::object;
use crate::event::Time;
use crate::text::number;

const SECOND: u64 = 1_000_000_000;

/// Writes times. Most are in the same second as the time before, so the text of a second is kept, and only the digits
/// of the nanoseconds are written into it.
pub struct Clock {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, in nanoseconds.
    realtime_offset: i64,
    /// The seconds of both clocks that `text` is of.
    seconds: [u64; 2],
    /// The object of the first nanosecond in which both clocks have these seconds.
    text: Vec<u8>,
    /// The positions of the nanoseconds in `text`, nine digits each.
    places: [usize; 2],
}

impl Clock {
    pub fn new(realtime_offset: i64) -> Clock {
        Clock { realtime_offset, seconds: [0; 2], text: Vec::new(), places: [0; 2] }
    }

    /// Writes a time by both clocks, in nanoseconds. The numbers are strings, because readers might round them.
    pub fn write(&mut self, out: &mut Vec<u8>, time: Time) {
        let realtime = time.0.wrapping_add_signed(self.realtime_offset);
        let seconds = [time.0 / SECOND, realtime / SECOND];
        // A number of less than a second has no leading zeros, and a time before 1970 has a sign.
        if seconds.contains(&0) || time.0.checked_add_signed(self.realtime_offset).is_none() {
            self.write_any(out, time);
            return;
        }
        if seconds != self.seconds {
            self.keep(seconds);
        }
        let begin = out.len();
        out.extend_from_slice(&self.text);
        for (place, time) in self.places.into_iter().zip([time.0, realtime]) {
            if let Some(digits) = out[begin + place..].first_chunk_mut() {
                *digits = number::nine_digits((time % SECOND) as u32);
            }
        }
    }

    fn keep(&mut self, seconds: [u64; 2]) {
        let Clock { text, places, .. } = self;
        self.seconds = seconds;
        text.clear();
        for (begin, (seconds, place)) in [&b"{\"monotonic\":\""[..], b"\",\"realtime\":\""].into_iter().zip(seconds.into_iter().zip(places))
        {
            text.extend_from_slice(begin);
            number::uint(text, seconds);
            *place = text.len();
            text.extend_from_slice(b"000000000");
        }
        text.extend_from_slice(b"\"}");
    }

    /// Writes a time that may be less than a second after the beginning of a clock, or before it.
    fn write_any(&self, out: &mut Vec<u8>, time: Time) {
        let monotonic = i128::from(time.0);
        object(out, |o| {
            o.word("monotonic", &monotonic.to_string());
            o.word("realtime", &(monotonic + i128::from(self.realtime_offset)).to_string());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a second is kept, so the result must not depend on the times before.
    #[test]
    fn times_of_any_seconds_are_numbers_of_both_clocks() {
        let around = |second: u64| [second.saturating_sub(1), second, second + 7, second + 999_999_999];
        let times: Vec<u64> = [0, 1, 5, 9, 10, 4_000_000_000].iter().flat_map(|seconds| around(seconds * SECOND)).collect();
        for offset in [0, 1, -7, 1_763_694_000_123_456_789, -5_000_000_000, i64::MAX, i64::MIN] {
            let mut clock = Clock::new(offset);
            for time in times.iter().chain(times.iter().rev()).chain([&u64::MAX, &(u64::MAX - SECOND)]) {
                let mut out = b"before".to_vec();
                clock.write(&mut out, Time(*time));
                let realtime = i128::from(*time) + i128::from(offset);
                let expected = format!("before{{\"monotonic\":\"{time}\",\"realtime\":\"{realtime}\"}}");
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{time} {offset}");
            }
        }
    }
}
