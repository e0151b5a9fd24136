//! Partial records of calls whose data does not fit into one record, kept until the call's own record arrives.
//!
//! The number of bytes is bounded. A partial record that exceeds the bound is dropped, as if it had been lost. Partial
//! records whose call never arrives are dropped too.

use super::record::CallRecord;
use crate::event::Time;
use std::collections::HashMap;

/// The maximum number of bytes of all waiting partial records together.
const BYTES_MAX: usize = 64 << 20;

/// The waiting partial records, by the thread that made the call.
#[derive(Debug, Default)]
pub struct Parts {
    waiting: HashMap<i32, Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    start: Time,
    pieces: Vec<u8>,
}

impl Parts {
    /// Returns whether no partial record waits for its call, so that calls need not be looked up.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether partial records of the thread's call wait for it.
    #[inline]
    pub fn has_any_of(&self, tid: i32) -> bool {
        !self.is_empty() && self.waiting.contains_key(&tid)
    }

    /// Stores a partial record.
    pub fn add(&mut self, record: &CallRecord<'_>) {
        if self.waiting.get(&record.tid).is_some_and(|waiting| waiting.start != record.start) {
            self.forget(record.tid);
        }
        if self.bytes + record.pieces.len() > BYTES_MAX {
            return;
        }
        self.bytes += record.pieces.len();
        let waiting = self.waiting.entry(record.tid).or_insert_with(|| Waiting { start: record.start, pieces: Vec::new() });
        waiting.pieces.extend_from_slice(record.pieces);
    }

    /// Returns the concatenated pieces of a call's partial records; empty if it has none.
    pub fn of(&self, record: &CallRecord<'_>) -> &[u8] {
        self.waiting.get(&record.tid).filter(|waiting| waiting.start == record.start).map_or(&[], |waiting| &waiting.pieces)
    }

    /// Drops the partial records of a thread, because its call or the thread itself has ended.
    pub fn forget(&mut self, tid: i32) {
        if let Some(waiting) = self.waiting.remove(&tid) {
            self.bytes -= waiting.pieces.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::returned;
    use super::*;

    fn part(tid: i32, start: u64, pieces: &[u8]) -> CallRecord<'_> {
        CallRecord { pieces, ..returned(tid, 1, start, 0) }
    }

    #[test]
    fn parts_wait_for_their_call() {
        let mut parts = Parts::default();
        parts.add(&part(7, 10, b"ab"));
        parts.add(&part(8, 11, b"x"));
        parts.add(&part(7, 10, b"cd"));
        assert_eq!(
            (parts.of(&part(7, 10, b"")), parts.of(&part(7, 12, b"")), parts.of(&part(9, 10, b""))),
            (&b"abcd"[..], &[][..], &[][..])
        );
        parts.forget(7);
        assert_eq!((parts.of(&part(7, 10, b"")), parts.bytes), (&[][..], 1));
        parts.add(&part(8, 12, b"later"));
        assert_eq!((parts.of(&part(8, 12, b"")), parts.bytes), (&b"later"[..], 5), "the record of the earlier call never arrived");
        parts.forget(8);
        assert!(parts.is_empty() && parts.bytes == 0);
    }

    #[test]
    fn waiting_bytes_are_bounded() {
        let mut parts = Parts::default();
        let much = vec![0; BYTES_MAX / 4];
        (0..6).for_each(|tid| parts.add(&part(tid, 1, &much)));
        assert_eq!((parts.waiting.len(), parts.bytes), (4, BYTES_MAX));
    }
}
