//! Parts of calls whose data one record does not hold, until the call's own record comes.
//!
//! Bounded in bytes: what goes over that is dropped, as if its record had been lost, and so are parts whose call never comes.

use super::record::Seen;
use crate::event::Time;
use std::collections::HashMap;

/// All parts that wait together.
const BYTES_MAX: usize = 64 << 20;

/// Parts by the thread whose call they belong to.
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
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Keeps a part.
    pub fn add(&mut self, seen: &Seen<'_>) {
        if self.waiting.get(&seen.tid).is_some_and(|waiting| waiting.start != seen.start) {
            self.forget(seen.tid);
        }
        if self.bytes + seen.pieces.len() > BYTES_MAX {
            return;
        }
        self.bytes += seen.pieces.len();
        let waiting = self.waiting.entry(seen.tid).or_insert_with(|| Waiting { start: seen.start, pieces: Vec::new() });
        waiting.pieces.extend_from_slice(seen.pieces);
    }

    /// The pieces of a call's parts, one behind the other; empty if it has none.
    pub fn of(&self, seen: &Seen<'_>) -> &[u8] {
        self.waiting.get(&seen.tid).filter(|waiting| waiting.start == seen.start).map_or(&[], |waiting| &waiting.pieces)
    }

    /// A call of this thread is over, or the thread is.
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

    fn part(tid: i32, start: u64, pieces: &[u8]) -> Seen<'_> {
        Seen { pieces, ..returned(tid, 1, start, 0) }
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
        assert_eq!((parts.of(&part(8, 12, b"")), parts.bytes), (&b"later"[..], 5), "the earlier call never came");
        parts.forget(8);
        assert!(parts.is_empty() && parts.bytes == 0);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut parts = Parts::default();
        let much = vec![0; BYTES_MAX / 4];
        (0..6).for_each(|tid| parts.add(&part(tid, 1, &much)));
        assert_eq!((parts.waiting.len(), parts.bytes), (4, BYTES_MAX));
    }
}
