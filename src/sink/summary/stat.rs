//! The numbers of one syscall in one group.

use crate::beauty::errno;
use crate::event::Times;
use hdrhistogram::Histogram;
use std::cmp::Reverse;

/// The most durations that are kept exactly. More are kept in a histogram, which takes kilobytes.
const FEW: usize = 64;
/// The significant decimal digits of a histogram's values: quantiles are accurate to 1%.
const DIGITS: u8 = 2;

/// The counts and durations of a syscall.
#[derive(Clone, Debug, Default)]
pub struct Stat {
    /// The number of calls, also of those without a known duration.
    pub calls: u64,
    /// The number of these calls that failed.
    pub errors: u64,
    /// The number of these calls that have a duration which is not known.
    pub untimed: u64,
    /// The durations of the calls whose duration is known.
    pub times: Durations,
    /// The number of calls by errno, if requested.
    pub errnos: Vec<(i32, u64)>,
}

impl Stat {
    /// Adds the numbers of another `Stat`.
    pub fn add(&mut self, other: &Stat) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.untimed += other.untimed;
        self.times.merge(&other.times);
        other.errnos.iter().for_each(|(errno, count)| self.count_errno(*errno, *count));
    }

    /// Adds the failure of a call, with `by_errno` also to the count of its errno. The kernel's internal codes
    /// ([`errno::is_restart`]) do not count as failures.
    pub fn failure(&mut self, errno: i32, by_errno: bool) {
        if errno::is_restart(errno) {
            return;
        }
        self.errors += 1;
        if by_errno {
            self.count_errno(errno, 1);
        }
    }

    /// Adds `more` calls with this errno.
    pub fn count_errno(&mut self, errno: i32, more: u64) {
        match self.errnos.iter_mut().find(|(known, _)| *known == errno) {
            Some((_, count)) => *count += more,
            None => self.errnos.push((errno, more)),
        }
    }

    /// Returns the number of calls by errno, the most frequent first.
    pub fn errnos_by_count(&self) -> Vec<(i32, u64)> {
        let mut errnos = self.errnos.clone();
        errnos.sort_by_key(|(errno, count)| (Reverse(*count), *errno));
        errnos
    }
}

/// Durations of calls in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    /// The number of calls that have been added.
    pub count: u64,
    /// The sum of all durations; [`u64::MAX`] if it is greater.
    pub total: u64,
    /// The shortest duration; 0 if there is none.
    pub min: u64,
    /// The longest duration; 0 if there is none.
    pub max: u64,
    /// The mean, updated with each value (Welford) so that no precision is lost by cancellation.
    mean: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
    spread: Spread,
}

#[derive(Clone, Debug)]
enum Spread {
    Few(Vec<u64>),
    Many(Box<Histogram<u32>>),
}

impl Default for Spread {
    fn default() -> Spread {
        Spread::Few(Vec::new())
    }
}

impl Durations {
    /// Adds the duration of a call.
    pub fn add(&mut self, nanoseconds: u64) {
        self.min = if self.count == 0 { nanoseconds } else { self.min.min(nanoseconds) };
        self.max = self.max.max(nanoseconds);
        self.count += 1;
        self.total = self.total.saturating_add(nanoseconds);
        let distance = nanoseconds as f64 - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (nanoseconds as f64 - self.mean);
        self.spread.add(nanoseconds, 1);
    }

    /// Adds `count` aggregated calls. Means and squared distances of disjoint sets add up without cancellation (Chan).
    pub fn add_all(&mut self, count: u64, times: &Times) {
        if count == 0 {
            return;
        }
        self.min = if self.count == 0 { times.min } else { self.min.min(times.min) };
        self.max = self.max.max(times.max);
        self.total = self.total.saturating_add(times.total);
        // Integers keep the precision where squares are large and distances small.
        let squares = times.squares.saturating_sub(u128::from(times.total).pow(2) / u128::from(count)) as f64;
        let (ours, theirs) = (self.count as f64, count as f64);
        let distance = times.total as f64 / theirs - self.mean;
        self.mean += distance * theirs / (ours + theirs);
        self.squares += squares + distance * distance * ours * theirs / (ours + theirs);
        self.count += count;
        times.spread.iter().for_each(|&(nanoseconds, count)| self.spread.add(nanoseconds, count));
    }

    /// Emits each duration with its count. Durations from a histogram are accurate to half a percent, and in the same
    /// power of two.
    pub fn each(&self, emit: &mut dyn FnMut(u64, u64)) {
        self.spread.each(emit);
    }

    /// Adds all durations of another `Durations`.
    pub fn merge(&mut self, other: &Durations) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            return self.clone_from(other);
        }
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.total = self.total.saturating_add(other.total);
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let distance = other.mean - self.mean;
        self.mean += distance * theirs / (ours + theirs);
        self.squares += other.squares + distance * distance * ours * theirs / (ours + theirs);
        self.count += other.count;
        other.spread.each(&mut |nanoseconds, count| self.spread.add(nanoseconds, count));
    }

    /// Returns the mean in nanoseconds, rounded down; 0 if there are no durations.
    pub fn average(&self) -> u64 {
        self.total.checked_div(self.count).unwrap_or(0)
    }

    /// Returns the relative standard error of the mean in percent, perf's "stddev": the uncertainty of the average. It
    /// is zero for fewer than two values.
    pub fn relative_error(&self) -> f64 {
        if self.count < 2 || self.mean == 0.0 {
            return 0.0;
        }
        let count = self.count as f64;
        100.0 * (self.squares / (count - 1.0) / count).sqrt() / self.mean
    }

    /// Returns the value that this share (0..=1) of the calls did not exceed.
    pub fn quantile(&self, share: f64) -> u64 {
        match &self.spread {
            Spread::Few(values) => {
                let mut sorted = values.clone();
                sorted.sort_unstable();
                let rank = (share * sorted.len() as f64).ceil() as usize;
                // Aggregated durations are accurate to half a percent.
                sorted.get(rank.saturating_sub(1)).map_or(0, |value| (*value).min(self.max).max(self.min))
            }
            Spread::Many(histogram) => histogram.value_at_quantile(share).min(self.max).max(self.min),
        }
    }
}

impl Spread {
    /// Emits each value with its count.
    fn each(&self, emit: &mut dyn FnMut(u64, u64)) {
        match self {
            Spread::Few(values) => values.iter().for_each(|value| emit(*value, 1)),
            Spread::Many(histogram) => {
                histogram.iter_recorded().for_each(|bucket| emit(bucket.value_iterated_to(), bucket.count_at_value().into()))
            }
        }
    }

    fn add(&mut self, nanoseconds: u64, count: u64) {
        match self {
            Spread::Many(histogram) => record(histogram, nanoseconds, count),
            Spread::Few(values) if values.len() as u64 + count <= FEW as u64 => {
                values.extend(std::iter::repeat_n(nanoseconds, count as usize));
            }
            // Creating the histogram fails only for more than 5 digits. If it did, the first values would be kept
            // alone.
            Spread::Few(values) => {
                if let Ok(mut histogram) = Histogram::new(DIGITS) {
                    values.iter().for_each(|value| record(&mut histogram, *value, 1));
                    record(&mut histogram, nanoseconds, count);
                    *self = Spread::Many(Box::new(histogram));
                }
            }
        }
    }
}

/// Records a value. The histogram grows with its values; a value that still does not fit counts as its largest.
fn record(histogram: &mut Histogram<u32>, nanoseconds: u64, count: u64) {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    if histogram.record_n(nanoseconds, count).is_err() {
        histogram.saturating_record_n(nanoseconds, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durations(values: impl IntoIterator<Item = u64>) -> Durations {
        let mut durations = Durations::default();
        values.into_iter().for_each(|value| durations.add(value));
        durations
    }

    #[test]
    fn mean_and_standard_error_are_exact() {
        let four = durations([2_000, 4_000, 4_000, 6_000]);
        assert_eq!((four.count, four.total, four.min, four.max, four.average()), (4, 16_000, 2_000, 6_000, 4_000));
        // The variance is 8/3 (in thousands squared), divided by 4 values; its root is divided by the mean of 4.
        assert!((four.relative_error() - 100.0 * (8.0f64 / 3.0 / 4.0).sqrt() / 4.0).abs() < 1e-9);
        assert_eq!(durations([5]).relative_error(), 0.0);
        assert_eq!(durations([0, 0]).relative_error(), 0.0);
        let steady = durations(std::iter::repeat_n(u64::from(u32::MAX), 100_000));
        assert!(steady.relative_error() < 1e-6, "{}", steady.relative_error());
        assert_eq!((durations([]).average(), durations([]).quantile(0.5)), (0, 0));
    }

    /// Aggregates values as the BPF programs do, but with every duration exact.
    fn times(values: &[u64]) -> Times {
        Times {
            total: values.iter().sum(),
            min: values.iter().copied().min().unwrap_or(0),
            max: values.iter().copied().max().unwrap_or(0),
            squares: values.iter().map(|value| u128::from(*value).pow(2)).sum(),
            spread: values.iter().map(|value| (*value, 1)).collect(),
        }
    }

    #[test]
    fn aggregates_have_the_same_statistics_as_single_calls() {
        let all: Vec<u64> = (0..5_000).map(|i| 1_000_000_000_000 + i * i % 977).chain([3, 1 << 37]).collect();
        for parts in [1, 2, 60, 4_000] {
            let (mut summed, single) = (Durations::default(), durations(all.iter().copied()));
            for part in all.chunks(all.len().div_ceil(parts)) {
                match part {
                    [alone] => summed.add(*alone),
                    part => summed.add_all(part.len() as u64, &times(part)),
                }
            }
            assert_eq!((summed.count, summed.total, summed.min, summed.max), (single.count, single.total, single.min, single.max));
            assert_eq!(
                [0.5, 0.95, 0.99, 1.0].map(|share| summed.quantile(share)),
                [0.5, 0.95, 0.99, 1.0].map(|share| single.quantile(share))
            );
            let (ours, theirs) = (summed.relative_error(), single.relative_error());
            assert!((ours / theirs - 1.0).abs() < 1e-9, "{parts} parts: {ours} and {theirs}");
        }
    }

    #[test]
    fn inconsistent_aggregates_are_handled_without_panic() {
        let mut wrong = Durations::default();
        let absurd = Times { total: u64::MAX, min: 9, max: 3, squares: 1, spread: vec![(u64::MAX, u64::MAX), (0, 0)] };
        wrong.add_all(0, &absurd);
        assert_eq!(wrong.count, 0);
        wrong.add_all(5, &absurd);
        wrong.add_all(5, &absurd);
        assert_eq!((wrong.count, wrong.total), (10, u64::MAX));
        assert!(wrong.relative_error() >= 0.0 && wrong.average() > 0);
        wrong.quantile(0.5);
    }

    #[test]
    fn few_values_have_exact_quantiles() {
        let ten = durations((1..=10).rev());
        assert_eq!([0.5, 0.95, 0.99].map(|share| ten.quantile(share)), [5, 10, 10]);
        assert_eq!(durations([7]).quantile(0.5), 7);
    }

    #[test]
    fn many_values_have_quantiles_accurate_to_a_percent() {
        let many = durations((1..=100_000).map(|value| value * 1_000));
        for (share, expected) in [(0.5, 50_000_000.0), (0.95, 95_000_000.0), (0.99, 99_000_000.0)] {
            let quantile = many.quantile(share) as f64;
            assert!((quantile / expected - 1.0).abs() < 0.01, "{share}: {quantile}");
        }
        assert_eq!(many.quantile(1.0), 100_000_000, "never beyond the longest");
        let long = durations((0..100).map(|i| if i == 50 { 1 << 62 } else { 1 }));
        assert_eq!((long.quantile(0.5), long.quantile(1.0)), (1, 1 << 62));
    }
}
