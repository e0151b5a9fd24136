//! When the tasks of the command are delayed, and how soon the rings are looked at again.
//!
//! A ring that is half full limits the CPU time of the command. Until the limit takes effect, and in the millisecond a
//! second that remains, the rings fill further; at five eighths, the brake holds the tasks. All rings must have been
//! emptied to a quarter before the tasks run on. The pauses between two looks are so short that a ring cannot fill up
//! unseen.

use std::time::Duration;

/// How full a ring is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The bytes that wait to be read.
    pub filled: u64,
    /// The size of the ring in bytes.
    pub bytes: u64,
}

/// How the tasks of the command are delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// They run.
    Free,
    /// They get one millisecond of CPU time a second.
    Limited,
    /// They get none: threads of greater weight take that millisecond.
    Held,
}

/// The eighths of a ring at which the states begin.
const FREE: u64 = 2;
const LIMITED: u64 = 4;
const HELD: u64 = 5;
/// The shortest and the longest pause between two looks at the rings. A longer one has no benefit.
const PAUSE_MIN: Duration = Duration::from_micros(100);
const PAUSE_MAX: Duration = Duration::from_millis(2);

impl Level {
    /// Returns whether at least this many eighths of the ring are full.
    fn is_above(self, eighths: u64) -> bool {
        self.filled >= self.bytes / 8 * eighths
    }

    /// Returns the bytes until this many eighths of the ring are full.
    fn until(self, eighths: u64) -> u64 {
        (self.bytes / 8 * eighths).saturating_sub(self.filled)
    }
}

impl State {
    /// Returns the state that follows from these levels.
    pub fn next(self, levels: &[Level]) -> State {
        let any = |eighths| levels.iter().any(|level| level.is_above(eighths));
        match self {
            State::Limited | State::Held if !any(FREE) => State::Free,
            State::Held => State::Held,
            _ if any(HELD) => State::Held,
            State::Free if any(LIMITED) => State::Limited,
            same => same,
        }
    }

    /// Returns how long no ring can pass the next mark, if none is filled faster than at this rate, in bytes per
    /// nanosecond.
    pub fn pause(self, levels: &[Level], fill_rate: u64) -> Duration {
        let mark = match self {
            State::Free => LIMITED,
            State::Limited => HELD,
            State::Held => return PAUSE_MAX,
        };
        let room = levels.iter().map(|level| level.until(mark)).min().unwrap_or(u64::MAX);
        Duration::from_nanos(room / fill_rate.max(1)).clamp(PAUSE_MIN, PAUSE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(filled: u64) -> Level {
        Level { filled, bytes: 8 << 20 }
    }

    #[test]
    fn the_fullest_ring_decides() {
        let next = |state: State, mib: [u64; 2]| state.next(&mib.map(|mib| level(mib << 20)));
        assert_eq!(next(State::Free, [0, 3]), State::Free);
        assert_eq!(next(State::Free, [0, 4]), State::Limited);
        assert_eq!(next(State::Free, [5, 0]), State::Held);
        assert_eq!(next(State::Limited, [5, 0]), State::Held);
        assert_eq!(
            (next(State::Limited, [2, 1]), next(State::Held, [5, 2])),
            (State::Limited, State::Held),
            "a quarter is not empty enough"
        );
        assert_eq!((next(State::Limited, [1, 1]), next(State::Held, [0, 1])), (State::Free, State::Free));
        assert_eq!(State::Free.next(&[]), State::Free);
    }

    #[test]
    fn no_ring_passes_a_mark_unseen() {
        for state in [State::Free, State::Limited] {
            for filled in (0..8 << 20).step_by(12_345) {
                let levels = [level(filled)];
                let written = state.pause(&levels, 2).as_nanos() as u64 * 2;
                // Near the mark, the shortest pause passes it by less than a sixteenth of the ring.
                let mark = if state == State::Free { 4 << 20 } else { 5 << 20 };
                assert!(filled >= mark || filled + written <= mark + (1 << 19), "{state:?} {filled} {written}");
            }
        }
        assert_eq!(State::Free.pause(&[level(0)], 2), PAUSE_MAX);
        assert_eq!(State::Free.pause(&[level(4 << 20)], 2), PAUSE_MIN);
    }
}
