//! The index of a recording: spans of its records, and which of them a reader may pass over that wants later ones.
//!
//! A span begins and ends between two rounds, and in a compressed recording between two compressed records. It may be
//! passed over if it has nothing but calls that have ended, from which nothing follows for later lines
//! ([`crate::syscall::stateless`]). All other records are read in any case: those that name tasks, files and
//! descriptors, and all that rtrace learnt outside the rings. So a reader that passes over spans shows the same lines
//! as one that reads them.
//!
//! The index is in a feature section of the file, of a number that perf does not know and passes over.

use crate::event::Time;
use serde::{Deserialize, Serialize};

/// The smallest span. A span holds some thousand calls, and an entry of the index has some 30 bytes.
const SPAN_BYTES: u64 = 256 << 10;

/// The spans of a recording, in their order. Each ends where the next one begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// The spans.
    pub spans: Vec<Span>,
    /// The offset of the first byte behind the last span.
    pub end: u64,
    /// Records were lost. A loss is shown with the time of the record before it, which may be in any earlier span, so
    /// all of them are read.
    pub has_losses: bool,
}

/// Consecutive rounds of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The offset of its first byte in the file.
    pub at: u64,
    /// When its first round began ([`crate::source::Round::started`]). The records of all earlier spans are older.
    pub first: Time,
    /// The number of its calls, if it has nothing but calls from which nothing follows for later lines.
    pub calls: Option<u64>,
}

impl Index {
    /// Reads an index from the bytes of its section; `None` if they are damaged, or those of another file.
    pub fn parse(bytes: &[u8], data: super::layout::Section) -> Option<Index> {
        let index: Index = rmp_serde::from_slice(bytes).ok()?;
        let in_order = |pair: &[Span]| pair[0].at < pair[1].at && pair[0].first <= pair[1].first;
        let is_whole = index.spans.first()?.at == data.offset && data.offset.checked_add(data.size) == Some(index.end);
        let is_sound = is_whole && index.spans.windows(2).all(in_order) && index.spans.last()?.at < index.end;
        is_sound.then_some(index)
    }

    /// Returns the bytes of the section.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Numbers and lists can be written.
        rmp_serde::to_vec_named(self).unwrap_or_default()
    }

    /// Returns the parts of the file behind `at` that a reader passes over who wants records from `from` on: the offset
    /// of the first byte of each, that of the first byte behind it, and the number of its calls.
    ///
    /// The span behind one that must be read is read too: records are processed when the rounds after them have begun.
    pub fn gaps(&self, at: u64, from: Time) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        let mut may_pass = false;
        for (number, span) in self.spans.iter().enumerate() {
            let next = self.spans.get(number + 1);
            let calls = span.calls.filter(|_| may_pass && !self.has_losses && span.at >= at && next.is_some_and(|next| next.first < from));
            may_pass = span.calls.is_some() && span.at >= at;
            let (Some(calls), Some(next)) = (calls, next) else { continue };
            match gaps.last_mut() {
                Some(gap) if gap.end == span.at => (gap.end, gap.calls) = (next.at, gap.calls + calls),
                _ => gaps.push(Gap { begin: span.at, end: next.at, calls }),
            }
        }
        gaps
    }
}

/// A part of a file that a reader passes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The offset of its first byte.
    pub begin: u64,
    /// The offset of the first byte behind it.
    pub end: u64,
    /// The number of calls in it.
    pub calls: u64,
}

/// Makes the index while a recording is written.
#[derive(Clone, Debug, Default)]
pub struct Indexer {
    index: Index,
    span: Span,
    has_rounds: bool,
    has_state: bool,
    calls: u64,
}

impl Indexer {
    /// Begins the first span at this offset.
    pub fn begin(&mut self, at: u64) {
        self.span.at = at;
    }

    /// Begins a round.
    pub fn round(&mut self, started: Time) {
        if !self.has_rounds {
            (self.span.first, self.has_rounds) = (started, true);
        }
    }

    /// Adds records: a number of calls from which nothing follows for later lines, whether there are other records, and
    /// whether some of them say that records were lost.
    pub fn add(&mut self, calls: u64, has_others: bool, has_losses: bool) {
        self.calls += calls;
        self.has_state |= has_others;
        self.index.has_losses |= has_losses;
    }

    /// Returns whether the span may end behind this number of bytes.
    pub fn is_full(bytes: u64) -> bool {
        bytes >= SPAN_BYTES
    }

    /// Ends the span, between two rounds, if it is large enough. The next byte that is written is at this offset.
    pub fn end_span(&mut self, at: u64) {
        if Indexer::is_full(at - self.span.at) {
            self.end_span_at(at);
        }
    }

    /// Ends the span, between two rounds. The next byte that is written is at this offset.
    pub fn end_span_at(&mut self, at: u64) {
        self.push();
        self.span.at = at;
    }

    fn push(&mut self) {
        let Indexer { span, has_state, calls, .. } = self;
        self.index.spans.push(Span { calls: (!*has_state).then_some(*calls), ..*span });
        (self.has_rounds, self.has_state, self.calls) = (false, false, 0);
    }

    /// Returns the bytes of the index; `end` is the offset of the first byte behind the records.
    pub fn finish(mut self, end: u64) -> Vec<u8> {
        if !self.has_rounds {
            self.span.first = self.index.spans.last().map_or(Time(0), |span| span.first);
        }
        if end > self.span.at {
            self.push();
        }
        self.index.end = end;
        self.index.to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::layout::Section;
    use proptest::prelude::*;

    const DATA: Section = Section { offset: 1000, size: 9000 };

    fn index(calls: &[Option<u64>]) -> Index {
        let span = |(number, calls): (usize, &Option<u64>)| Span {
            at: 1000 + 1000 * number as u64,
            first: Time(10 * number as u64),
            calls: *calls,
        };
        Index { spans: calls.iter().enumerate().map(span).collect(), end: 10_000, has_losses: false }
    }

    #[test]
    fn what_holds_no_state_and_is_older_is_passed_over() {
        let index = index(&[None, Some(1), Some(2), Some(3), None, Some(4), Some(5), Some(6), Some(7)]);
        assert_eq!(Index::parse(&index.to_bytes(), DATA), Some(index.clone()));
        let gaps = |at, from| index.gaps(at, Time(from)).iter().map(|gap| (gap.begin, gap.end, gap.calls)).collect::<Vec<_>>();
        // The spans behind the first and the fifth are read, because what these hold is processed there.
        assert_eq!(gaps(0, 100), [(3000, 5000, 5), (7000, 9000, 11)]);
        assert_eq!(gaps(0, 31), [(3000, 4000, 2)], "the fourth has records up to the time 40");
        assert_eq!(gaps(0, 30), [], "the third has records up to the time 30");
        assert_eq!(gaps(3000, 100), [(4000, 5000, 3), (7000, 9000, 11)]);
        assert_eq!(gaps(99_999, 100), []);
        assert_eq!(Index { has_losses: true, ..index.clone() }.gaps(0, Time(100)), []);
    }

    #[test]
    fn an_index_of_another_file_is_none() {
        let whole = index(&[None, Some(1)]);
        assert_eq!(Index::parse(&whole.to_bytes(), Section { offset: 1000, size: 8999 }), None);
        let mut unordered = whole.clone();
        unordered.spans[1].at = 1000;
        assert_eq!(Index::parse(&unordered.to_bytes(), DATA), None);
        assert_eq!(Index::parse(&Index::default().to_bytes(), DATA), None);
        assert_eq!(Index::parse(&whole.to_bytes()[..20], DATA), None);
    }

    #[test]
    fn spans_are_written_as_rounds_end() {
        let mut indexer = Indexer::default();
        indexer.begin(1000);
        indexer.add(0, true, false);
        for (round, end) in [(5, 2000), (6, 400_000), (7, 500_000), (8, 900_000)] {
            indexer.round(Time(round));
            indexer.add(10, false, false);
            indexer.end_span(end);
        }
        let index = Index::parse(&indexer.finish(900_100), Section { offset: 1000, size: 899_100 }).unwrap();
        let spans: Vec<_> = index.spans.iter().map(|span| (span.at, span.first.0, span.calls)).collect();
        assert_eq!(spans, [(1000, 5, None), (400_000, 7, Some(20)), (900_000, 7, Some(0))]);
        assert_eq!(index.gaps(0, Time(9)), []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_panic(bytes: Vec<u8>) {
            _ = Index::parse(&bytes, DATA);
        }
    }
}
