//! `--histogram`: the number of calls by duration, a line for each power of two.

use super::stat::Durations;
use crate::text::time_unit;
use std::fmt::Write;

/// The length of the longest bar in characters.
const BAR: u64 = 40;

/// The number of calls with durations from `from` to below `to`, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The lower bound in nanoseconds, which belongs to the bucket.
    pub from: u64,
    /// The upper bound in nanoseconds, which does not belong to the bucket.
    pub to: u64,
    /// The number of calls whose duration is between the bounds.
    pub calls: u64,
}

/// Counts the durations below 1 ns, from 1 to below 2 ns, from 2 to below 4 ns, and so on. Returns the buckets from the
/// first to the last that has a call.
pub fn buckets(times: &Durations) -> Vec<Bucket> {
    let mut counts = [0; 65];
    times.each(&mut |nanoseconds, count| counts[nanoseconds.checked_ilog2().map_or(0, |log| log as usize + 1)] += count);
    let bound = |at: usize| if at == 0 { 0 } else { 1u64.checked_shl(at as u32 - 1).unwrap_or(u64::MAX) };
    let first = counts.iter().position(|count| *count > 0).unwrap_or(counts.len());
    let last = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
    let bucket = |(at, calls): (usize, &u64)| Bucket { from: bound(at), to: bound(at + 1), calls: *calls };
    counts.iter().enumerate().take(last + 1).skip(first).map(bucket).collect()
}

/// Writes a line for each bucket.
pub fn write(out: &mut String, times: &Durations) {
    let buckets = buckets(times);
    let most = buckets.iter().map(|bucket| bucket.calls).max().unwrap_or(1).max(1);
    for Bucket { from, to, calls } in buckets {
        let bar = (u128::from(calls) * u128::from(BAR)).div_ceil(u128::from(most)) as usize;
        let (from, to) = (time_unit::short(from), time_unit::short(to));
        let _ = writeln!(out, "      {from:>9} .. {to:>9} {calls:>10} |{:<40}|", "#".repeat(bar));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_counted_in_a_bucket() {
        let mut times = Durations::default();
        (0..1000u64).for_each(|i| times.add(i * i * 17));
        assert_eq!(buckets(&times).iter().map(|bucket| bucket.calls).sum::<u64>(), 1000);
        assert_eq!(buckets(&Durations::default()), []);
    }

    #[test]
    fn the_length_of_a_bar_is_proportional_to_its_calls() {
        let mut times = Durations::default();
        [100, 127, 300, 1_500].into_iter().for_each(|value| times.add(value));
        let mut text = String::new();
        write(&mut text, &times);
        let bar = |count: usize| format!("|{:<40}|", "#".repeat(count));
        assert_eq!(
            text,
            format!(
                "          64 ns ..    128 ns          2 {}\n         128 ns ..    256 ns          0 {}\n         256 ns ..    512 ns          1 {}\n         512 ns ..   1.02 us          0 {}\n        1.02 us ..   2.05 us          1 {}\n",
                bar(40),
                bar(0),
                bar(20),
                bar(0),
                bar(20)
            )
        );
    }
}
