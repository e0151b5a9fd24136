//! Calls that the BPF programs summed up per task instead of recording each one.

use super::Abi;

/// Sums of one task's calls, by syscall. All of these calls were entered, and have returned or never will; any other
/// call is a [`super::Call`] event of its own. A task may have several such events, one after the other: their sums are
/// disjoint and add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    /// The sums, one for each ABI and syscall number.
    pub sums: Vec<Sum>,
}

impl Aggregate {
    /// Returns the number of calls that are summed up.
    pub fn calls(&self) -> u64 {
        self.sums.iter().map(|sum| sum.calls).sum()
    }
}

/// The calls of one syscall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The ABI of the calls.
    pub abi: Abi,
    /// As in [`super::Call::nr`].
    pub nr: i64,
    /// The number of calls, including those that never return.
    pub calls: u64,
    /// Durations of the calls that returned.
    pub times: Times,
    /// How often each errno was returned. The call itself may be counted in the aggregate before or after.
    pub errnos: Vec<(i32, u64)>,
}

/// Durations of calls, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The sum of the durations.
    pub total: u64,
    /// The shortest duration.
    pub min: u64,
    /// The longest duration.
    pub max: u64,
    /// The sum of the squares.
    pub squares: u128,
    /// Durations, accurate to half a percent, with the number of calls of each. They are in no order.
    pub spread: Vec<(u64, u64)>,
}

impl Times {
    /// Returns the number of calls that the durations belong to.
    pub fn count(&self) -> u64 {
        self.spread.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}
