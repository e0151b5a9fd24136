//! Calls that were summed up where they were made, instead of being told one by one.

use super::Abi;

/// Calls of one task, by syscall. All of them were entered, and have returned or never will; what has another fate is a
/// [`super::Call`] of its own. A task may have many tallies, one after the other: their
/// sums are disjoint and add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub sums: Vec<Sum>,
}

impl Tally {
    /// How many calls it stands for.
    pub fn calls(&self) -> u64 {
        self.sums.iter().map(|sum| sum.calls).sum()
    }
}

/// The calls of one syscall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub abi: Abi,
    /// As in [`super::Call::nr`].
    pub nr: i64,
    /// How many there were, those that never return included.
    pub calls: u64,
    /// Of those that returned.
    pub times: Times,
    /// How often each errno came. It may be of a call that stands in the tally before or after.
    pub errnos: Vec<(i32, u64)>,
}

/// How long calls took, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    pub total: u64,
    pub min: u64,
    pub max: u64,
    /// The sum of squares.
    pub squares: u128,
    /// Durations, right to half a percent, and how often each came. No order.
    pub spread: Vec<(u64, u64)>,
}

impl Times {
    /// Of how many calls they are.
    pub fn count(&self) -> u64 {
        self.spread.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}
