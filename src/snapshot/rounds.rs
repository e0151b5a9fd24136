//! Makes rounds of the rings and of the journal, each of a bounded size, so that a replay need not hold all of a
//! snapshot.

use super::journal::{Entry, What};
use super::ring::RingRecords;
use crate::event::{Synthesized, Time};
use crate::source::{Chunk, Form, Round};
use std::sync::Arc;

/// About how many bytes of one ring are in a round.
const ROUND_BYTES: usize = 1 << 20;

/// What a snapshot has.
#[derive(Debug)]
pub struct Content {
    /// When it begins; `None` if it has everything since the beginning of the trace.
    pub begin: Option<Time>,
    /// When it ends.
    pub end: Time,
    /// The facts that held at its beginning.
    pub before: Vec<Synthesized>,
    /// The records and facts about tasks since then, in the order of time.
    pub entries: Vec<Arc<Entry>>,
    /// The records of the rings, between beginning and end.
    pub rings: Vec<RingRecords>,
    /// The facts at its end.
    pub after: Vec<(Time, Synthesized)>,
}

/// Passes the rounds of a snapshot to `each`, in order.
pub fn rounds(content: Content, mut each: impl FnMut(Round)) {
    let Content { begin, end, before, entries, mut rings, after } = content;
    let first = begin.or_else(|| entries.first().map(|entry| entry.time)).unwrap_or(end);
    let before = before.into_iter().map(|fact| (first, fact)).collect();
    each(Round { started: first, chunks: Vec::new(), synthesized: before });
    let mut entries = entries.into_iter().filter(|entry| entry.time <= end).peekable();
    loop {
        let until = rings.iter().filter_map(|ring| ring.time_behind(ROUND_BYTES)).min();
        let mut round = Round { started: until.unwrap_or(end), ..Round::default() };
        let mut count = 0;
        for ring in &mut rings {
            let mut bytes = Vec::new();
            count += ring.take(until, &mut bytes);
            round.chunks.push(Chunk { cpu: ring.cpu, form: Form::Records, bytes });
        }
        // Records that are out of order must not keep the rounds from advancing.
        if count == 0 && until.is_some() {
            for (ring, chunk) in rings.iter_mut().zip(&mut round.chunks).filter(|(ring, _)| !ring.is_empty()) {
                ring.take(until.map(|until| Time(until.0 + 1)), &mut chunk.bytes);
            }
        }
        while let Some(entry) = entries.next_if(|entry| until.is_none_or(|until| entry.time < until)) {
            add(&mut round, &entry);
        }
        if until.is_none() {
            round.synthesized.extend(after);
            round.chunks.retain(|chunk| !chunk.bytes.is_empty());
            return each(round);
        }
        round.chunks.retain(|chunk| !chunk.bytes.is_empty());
        each(round);
    }
}

fn add(round: &mut Round, entry: &Entry) {
    match &entry.what {
        What::Fact(fact) => round.synthesized.push((entry.time, fact.clone())),
        What::Record(cpu, bytes) => match round.chunks.iter_mut().find(|chunk| chunk.cpu == *cpu) {
            Some(chunk) => chunk.bytes.extend(bytes),
            None => round.chunks.push(Chunk { cpu: *cpu, form: Form::Records, bytes: bytes.to_vec() }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::tests::newest_first;
    use super::*;
    use crate::source::frame::{Frame, field};
    use crate::source::record::tests::table;
    use proptest::prelude::*;

    /// Returns the times of the records in each round.
    fn times(rounds: &[Round]) -> Vec<Vec<u64>> {
        let table = table(&[field::NEEDED]);
        let of = |round: &Round| {
            let mut times = Vec::new();
            for chunk in &round.chunks {
                let mut at = 0;
                while let Ok(frame) = Frame::at(&chunk.bytes, at) {
                    times.push(frame.stamp(&table).unwrap().unwrap().time.0);
                    at += frame.size();
                }
            }
            times
        };
        rounds.iter().map(of).collect()
    }

    fn rounds_of(rings: &[&[u64]], entries: &[u64]) -> Vec<Round> {
        let table = table(&[field::NEEDED]);
        let record = |time: &u64| What::Record(7, newest_first(&table, &[*time]).into());
        let content = Content {
            begin: Some(Time(1)),
            end: Time(1 << 40),
            before: Vec::new(),
            entries: entries.iter().map(|time| Arc::new(Entry { time: Time(*time), what: record(time) })).collect(),
            rings: rings.iter().zip(0..).map(|(times, cpu)| RingRecords::new(&table, cpu, newest_first(&table, times), false)).collect(),
            after: Vec::new(),
        };
        let mut all = Vec::new();
        rounds(content, |round| all.push(round));
        all
    }

    #[test]
    fn large_rings_are_split_by_time() {
        let many: Vec<u64> = (0..60_000).map(|at| 10 + 2 * at).collect();
        let few: Vec<u64> = (0..100).map(|at| 11 + 1000 * at).collect();
        let all = rounds_of(&[&many, &few], &[15, 50_000, 119_000]);
        assert!(all.len() > 3, "{}", all.len());
        let times = times(&all);
        for (at, round) in all.iter().enumerate().skip(2) {
            assert!(times[at].iter().all(|time| *time >= all[at - 1].started.0), "records of a later round are younger");
            assert!(round.bytes() < 2 * ROUND_BYTES);
        }
        assert_eq!(times.concat().len(), many.len() + few.len() + 3);
    }

    proptest! {
        #[test]
        fn no_record_is_missing(mut times: Vec<u16>, entries: Vec<u16>) {
            let times: Vec<u64> = std::mem::take(&mut times).into_iter().map(u64::from).collect();
            let mut entries: Vec<u64> = entries.into_iter().map(u64::from).collect();
            entries.sort_unstable();
            let mut got = super::tests::times(&rounds_of(&[&times], &entries)).concat();
            got.sort_unstable();
            let mut expected = [times, entries].concat();
            expected.sort_unstable();
            prop_assert_eq!(got, expected);
        }
    }
}
