//! Calls that take longer in one recording: on one file, or on many files, each of which says little.

use super::difference::{Difference, Side, What};
use super::words::{Word, distinct};
use std::collections::{BTreeMap, BTreeSet};

/// Calls are slower if they take at least this many times as long in all, ...
const RATIO: u64 = 3;

/// ... and at least this many nanoseconds longer.
const NANOSECONDS: u64 = 200_000_000;

/// How long the same calls took in each recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// The total durations in nanoseconds.
    pub time: [u64; 2],
    /// The numbers of calls.
    pub calls: [u64; 2],
}

impl Timed {
    fn add(&mut self, other: &Timed) {
        for side in 0..2 {
            self.time[side] = self.time[side].saturating_add(other.time[side]);
            self.calls[side] += other.calls[side];
        }
    }

    /// Returns how many times as long the calls of this recording took; `None` if the others took no time.
    pub fn ratio(&self, side: Side) -> Option<u64> {
        self.time[side.index()].checked_div(self.time[side.other().index()])
    }

    fn has_ratio(&self, side: Side) -> bool {
        self.time[side.index()] >= self.time[side.other().index()].saturating_mul(RATIO)
    }

    fn excess(&self, side: Side) -> u64 {
        self.time[side.index()].saturating_sub(self.time[side.other().index()])
    }
}

/// Returns the recording in which the calls are slower.
pub fn slower(timed: &Timed) -> Option<Side> {
    Side::BOTH.into_iter().find(|side| timed.has_ratio(*side) && timed.excess(*side) >= NANOSECONDS)
}

/// The calls of one name that some programs make on a file.
#[derive(Debug)]
pub struct OnFile {
    /// The programs.
    pub programs: BTreeSet<Word>,
    /// The file, if the calls are about one.
    pub object: Option<Word>,
    /// The place of the first call in its recording.
    pub first: u64,
    /// How long they took.
    pub timed: Timed,
}

/// Returns the calls that are slower on most of their files: a disk is slower, and no single file.
pub fn on_many_files(all: BTreeMap<Word, Vec<OnFile>>) -> impl Iterator<Item = Difference> {
    all.into_iter().filter_map(|(call, files)| of_call(call, files))
}

fn of_call(call: Word, files: Vec<OnFile>) -> Option<Difference> {
    let mut sum = Timed::default();
    files.iter().for_each(|file| sum.add(&file.timed));
    let side = slower(&sum)?;
    let all = files.len();
    let mut slow: Vec<OnFile> = files.into_iter().filter(|file| file.timed.has_ratio(side)).collect();
    // A busy machine delays a few calls by much; a slow disk delays most.
    if slow.len() * 2 < all {
        return None;
    }
    slow.sort_by_key(|file| std::cmp::Reverse(file.timed.excess(side)));
    let mut timed = Timed::default();
    slow.iter().for_each(|file| timed.add(&file.timed));
    Some(Difference {
        programs: slow.iter().flat_map(|file| file.programs.iter().copied()).collect(),
        what: What::Slower { side, call, timed },
        objects: distinct(slow.iter().filter_map(|file| file.object)),
        first: slow.iter().map(|file| file.first).min().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::words::Words;
    use super::*;

    const MS: u64 = 1_000_000;

    fn on_file(object: Word, time: [u64; 2]) -> OnFile {
        OnFile { programs: BTreeSet::new(), object: Some(object), first: 1, timed: Timed { time, calls: [1, 1] } }
    }

    #[test]
    fn many_files_that_are_a_little_slower_are_one_difference_and_a_few_delays_are_none() {
        let mut words = Words::default();
        let files: Vec<Word> = (0..40).map(|number| words.add(format!("/d/{number}").as_bytes())).collect();
        let call = words.add(b"read");
        let found = |time: &dyn Fn(usize) -> [u64; 2]| {
            let files = files.iter().enumerate().map(|(at, file)| on_file(*file, time(at))).collect();
            on_many_files(BTreeMap::from([(call, files)])).collect::<Vec<_>>()
        };
        let slow = found(&|_| [MS, 10 * MS]);
        let [Difference { what: What::Slower { side: Side::B, timed, .. }, objects, .. }] = &slow[..] else { panic!("{slow:?}") };
        assert_eq!((timed.time, objects.len(), timed.ratio(Side::B)), ([40 * MS, 400 * MS], 40, Some(10)));
        assert_eq!(found(&|at| if at < 5 { [MS, 100 * MS] } else { [MS, MS] }), []);
        assert_eq!(found(&|_| [MS, 4 * MS]), []);
        let centuries = found(&|_| [MS, u64::MAX / 2]);
        let [Difference { what: What::Slower { timed, .. }, .. }] = &centuries[..] else { panic!("{centuries:?}") };
        assert_eq!(timed.time, [40 * MS, u64::MAX], "a sum that is too large is the largest number");
    }
}
