//! The records of a ring that was copied from its newest record on, in the order in which they were written.

use crate::event::Time;
use crate::session::EventTable;
use crate::source::frame::{Frame, HEADER_BYTES};

/// How many of a ring's oldest records decide when it begins. They are almost in order: an interrupt may write its
/// record between the stamping and the writing of another one.
const OLDEST: usize = 16;

/// A record in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    time: Time,
    at: usize,
    size: u16,
}

/// The records of one ring.
#[derive(Debug)]
pub struct RingRecords {
    /// The CPU of the ring.
    pub cpu: u32,
    bytes: Vec<u8>,
    /// From the oldest to the newest.
    places: Vec<Place>,
    /// The number of records that were taken.
    taken: usize,
    /// Older records were overwritten.
    is_cut: bool,
    /// Records that could not be read.
    unreadable: u64,
}

impl RingRecords {
    /// Finds the records. `bytes` has the newest one first. The last one is incomplete if older ones were overwritten.
    pub fn new(table: &EventTable, cpu: u32, bytes: Vec<u8>, is_cut: bool) -> RingRecords {
        let mut places = Vec::new();
        let (mut at, mut unreadable) = (0, 0);
        while let Ok(frame) = Frame::at(&bytes, at) {
            match frame.stamp(table) {
                Ok(Some(stamp)) => places.push(Place { time: stamp.time, at, size: frame.size() as u16 }),
                Ok(None) => {}
                Err(_) => unreadable += 1,
            }
            at += frame.size();
        }
        // Without an overwritten record, the bytes end with the first one.
        unreadable += u64::from(!is_cut && bytes.len() - at >= HEADER_BYTES);
        places.reverse();
        RingRecords { cpu, bytes, places, taken: 0, is_cut, unreadable }
    }

    /// Returns the time from which on the ring has all records; `None` if it has all that were ever written.
    pub fn complete_since(&self) -> Option<Time> {
        let oldest = || self.places.iter().take(OLDEST).map(|place| place.time).max().unwrap_or(Time(u64::MAX));
        self.is_cut.then(oldest)
    }

    /// Returns how many records could not be read.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Leaves out the records that are not between these times.
    pub fn keep(&mut self, begin: Option<Time>, end: Time) {
        self.places.retain(|place| begin.is_none_or(|begin| place.time >= begin) && place.time <= end);
    }

    /// Returns the number of records.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the times of the oldest and of the newest record.
    pub fn span(&self) -> Option<(Time, Time)> {
        let times = || self.places.iter().map(|place| place.time);
        times().min().zip(times().max())
    }

    /// Passes each record to a function, from the oldest to the newest.
    pub fn each(&self, mut act: impl FnMut(&Frame)) {
        self.places.iter().filter_map(|place| Frame::at(&self.bytes, place.at).ok()).for_each(|frame| act(&frame));
    }

    /// Returns whether all records were taken.
    pub(super) fn is_empty(&self) -> bool {
        self.taken == self.places.len()
    }

    /// Returns the time of the record behind the next ones, which together have about this many bytes; `None` if there
    /// are no more.
    pub(super) fn time_behind(&self, bytes: usize) -> Option<Time> {
        let mut sum = 0;
        let is_behind = |place: &&Place| {
            sum += usize::from(place.size);
            sum > bytes
        };
        self.places[self.taken..].iter().skip(1).find(is_behind).map(|place| place.time)
    }

    /// Takes the next records up to the first one that is not older than `until`, or all of them, and appends their
    /// bytes to `into`. Returns how many they are.
    pub(super) fn take(&mut self, until: Option<Time>, into: &mut Vec<u8>) -> usize {
        let rest = &self.places[self.taken..];
        let count = until.map_or(rest.len(), |until| rest.iter().take_while(|place| place.time < until).count());
        for place in &rest[..count] {
            into.extend(&self.bytes[place.at..place.at + usize::from(place.size)]);
        }
        self.taken += count;
        count
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::source::frame::field;
    use crate::source::record::tests::{TASK, table};
    use crate::source::record_writer::RecordWriter;

    /// Returns the bytes of a ring with a record of each of these times, the newest first.
    pub(in super::super) fn newest_first(table: &EventTable, times: &[u64]) -> Vec<u8> {
        let one = |time: &u64| {
            let mut ring = RecordWriter::new(table, 0);
            ring.comm(TASK, Time(*time), format!("at {time}").as_bytes(), false);
            ring.chunk().bytes
        };
        times.iter().rev().flat_map(one).collect()
    }

    #[test]
    fn records_are_found_from_the_newest_to_the_incomplete_one() {
        let table = table(&[field::NEEDED]);
        let mut bytes = newest_first(&table, &[3, 5, 4, 9]);
        let whole = RingRecords::new(&table, 0, bytes.clone(), false);
        assert_eq!((whole.len(), whole.span(), whole.complete_since()), (4, Some((Time(3), Time(9))), None));
        bytes.truncate(bytes.len() - 8);
        let mut cut = RingRecords::new(&table, 0, bytes, true);
        assert_eq!((cut.len(), cut.complete_since(), cut.unreadable()), (3, Some(Time(9)), 0));
        cut.keep(Some(Time(5)), Time(8));
        assert_eq!((cut.len(), cut.span()), (1, Some((Time(5), Time(5)))));
        let nothing = RingRecords::new(&table, 0, vec![1], true);
        assert_eq!((nothing.len(), nothing.complete_since()), (0, Some(Time(u64::MAX))));
    }

    #[test]
    fn records_are_taken_in_the_order_in_which_they_were_written() {
        let table = table(&[field::NEEDED]);
        let mut ring = RingRecords::new(&table, 0, newest_first(&table, &[3, 5, 4, 9]), false);
        let mut bytes = Vec::new();
        assert_eq!(ring.take(Some(Time(5)), &mut bytes), 1);
        assert_eq!(ring.time_behind(1), Some(Time(4)));
        assert_eq!(ring.take(Some(Time(9)), &mut bytes), 2);
        assert!(!ring.is_empty());
        assert_eq!(ring.take(None, &mut bytes), 1);
        assert!(ring.is_empty());
        let expected: Vec<u8> = [3, 5, 4, 9].iter().flat_map(|time| newest_first(&table, &[*time])).collect();
        assert_eq!(bytes, expected);
    }
}
