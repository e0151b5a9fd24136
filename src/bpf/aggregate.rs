//! Decodes the aggregates of tasks that the BPF programs write: the counterpart of `aggregate.h`.
//!
//! Like the records of calls, aggregates are decoded in every build. Bytes that are not an aggregate yield nothing.

use super::settings::NR_COUNT;
use crate::event::{Abi, Aggregate, Sum, Times};

/// `SUMS_MAX`, `sizeof(struct sum)`, and for tests `SPREAD_MAX`.
pub(super) const SUMS_MAX: usize = 32;
pub(super) const SUM_BYTES: usize = 48;
#[cfg(test)]
const SPREAD_MAX: usize = 512;
/// `AGGREGATE_BODY`
#[cfg(test)]
pub(super) const BODY_BYTES: usize = SUMS_MAX * SUM_BYTES + SPREAD_MAX * 4;

/// `SPREAD_COUNT_BITS`, `SPREAD_VALUE_BITS`.
const COUNT_BITS: u32 = 14;
const VALUE_BITS: u32 = 12;

/// Decodes the bytes after the head of an aggregate's record; `None` if they are not one. `places` has a bit for each
/// sum that the record contains, as the first argument in the head says.
pub fn parse(body: &[u8], places: u64) -> Option<Aggregate> {
    let places: Vec<usize> = (0..SUMS_MAX).filter(|place| places >> place & 1 == 1).collect();
    let (found, spread) = body.split_at_checked(places.len() * SUM_BYTES)?;
    let mut sums: [Option<Sum>; SUMS_MAX] = std::array::from_fn(|_| None);
    places.iter().zip(found.chunks_exact(SUM_BYTES)).for_each(|(place, raw)| sums[*place] = sum(raw));
    for word in spread.chunks_exact(4) {
        let word = u32::from_le_bytes(word.try_into().unwrap_or_default());
        let (count, value) = (u64::from(word & ((1 << COUNT_BITS) - 1)), word >> COUNT_BITS);
        let (place, is_error, value) = (value >> (VALUE_BITS + 1), value >> VALUE_BITS & 1 == 1, value & ((1 << VALUE_BITS) - 1));
        match sums.get_mut(place as usize) {
            Some(Some(sum)) if count > 0 && is_error => sum.errnos.push((value as i32, count)),
            Some(Some(sum)) if count > 0 => sum.times.spread.push((middle_of_bucket(value), count)),
            _ => {}
        }
    }
    Some(Aggregate { sums: sums.into_iter().flatten().collect() })
}

fn sum(raw: &[u8]) -> Option<Sum> {
    let half = |at: usize| u32::from_le_bytes(raw[at..at + 4].try_into().unwrap_or_default());
    let word = |at: usize| u64::from_le_bytes(raw[at..at + 8].try_into().unwrap_or_default());
    let number = half(0).checked_sub(1)? as usize;
    let (abi, nr) = (*Abi::ALL.get(number / NR_COUNT)?, (number % NR_COUNT) as i64);
    let squares = u128::from(word(32)) | u128::from(word(40)) << 64;
    let times = Times { total: word(8), min: word(16), max: word(24), squares, spread: Vec::new() };
    Some(Sum { abi, nr, calls: half(4).into(), times, errnos: Vec::new() })
}

/// Returns the value in the middle of a bucket of `bucket_of`.
fn middle_of_bucket(bucket: u32) -> u64 {
    let doublings = (bucket / 128).saturating_sub(1);
    let least = u64::from(bucket - 128 * doublings) << doublings;
    least + (1 << doublings) / 2
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    /// A sum to encode: the syscall's number (the numbers of the ABIs follow each other), calls, total, min, max,
    /// squares; and its values with their counts.
    pub(crate) type Written<'a> = (u32, [u64; 4], u128, &'a [(u32, u32)]);

    pub(crate) const ERROR: u32 = 1 << VALUE_BITS;

    /// The bits of the sums in the aggregate of a living task: all of them.
    pub(crate) const ALL: u64 = (1 << SUMS_MAX) - 1;

    /// Encodes an aggregate as the programs do for a living task.
    pub(crate) fn written(sums: &[Written]) -> Vec<u8> {
        let mut body = vec![0; BODY_BYTES];
        let mut spread = SUMS_MAX * SUM_BYTES;
        for (at, (number, [calls, total, min, max], squares, values)) in sums.iter().enumerate() {
            let halves = [number + 1, *calls as u32].into_iter().flat_map(u32::to_le_bytes);
            let words = [*total, *min, *max, *squares as u64, (squares >> 64) as u64].into_iter().flat_map(u64::to_le_bytes);
            body.splice(at * SUM_BYTES..(at + 1) * SUM_BYTES, halves.chain(words));
            for (value, count) in *values {
                let word = ((at as u32) << (VALUE_BITS + 1) | value) << COUNT_BITS | count;
                body.splice(spread..spread + 4, word.to_le_bytes());
                spread += 4;
            }
        }
        body
    }

    /// Computes what `bucket_of` does.
    fn bucket(mut duration: u64) -> u32 {
        let mut doublings = 0;
        while duration > 255 {
            duration >>= 1;
            doublings += 1;
        }
        doublings * 128 + duration as u32
    }

    #[test]
    fn sums_are_decoded_with_their_values() {
        let lseek = (8, [5, 1_500, 100, 900], 1 << 70, &[(bucket(100), 3), (bucket(900), 2), (ERROR | 9, 4)][..]);
        let getpid32 = (1024 + 20, [1, 7, 7, 7], 49, &[(7, 1)][..]);
        let aggregate = parse(&written(&[lseek, getpid32]), ALL).unwrap();
        let times = Times { total: 1_500, min: 100, max: 900, squares: 1 << 70, spread: vec![(100, 3), (902, 2)] };
        assert_eq!(aggregate.sums[0], Sum { abi: Abi::X86_64, nr: 8, calls: 5, times, errnos: vec![(9, 4)] });
        assert_eq!((aggregate.sums[1].abi, aggregate.sums[1].nr, aggregate.sums.len(), aggregate.calls()), (Abi::I386, 20, 2, 6));
    }

    #[test]
    fn cut_records_and_unknown_numbers_yield_no_sums() {
        let body = written(&[(4 * 1024, [5, 5, 1, 1], 5, &[(1, 5)])]);
        assert_eq!(parse(&body, ALL), Some(Aggregate::default()), "no ABI has this number");
        assert_eq!(parse(&body[..SUMS_MAX * SUM_BYTES - 1], ALL), None);
    }

    /// When a task ends, the programs leave out sums and values that count nothing. A value names its sum by the index
    /// that the sum had before.
    #[test]
    fn packed_aggregates_equal_full_ones() {
        let [lseek, exit] = [(8, [5, 500, 100, 100], 7, &[(100, 5)][..]), (60, [1, 0, 0, 0], 0, &[][..])];
        let whole = written(&[(0, [0; 4], 0, &[]), lseek, (0, [0; 4], 0, &[]), exit]);
        let sum = |at: usize| &whole[at * SUM_BYTES..(at + 1) * SUM_BYTES];
        let spread = &whole[SUMS_MAX * SUM_BYTES..][..4];
        let packed = parse(&[sum(1), sum(3), spread].concat(), 1 << 1 | 1 << 3).unwrap();
        let of_all: Vec<_> = parse(&whole, ALL).unwrap().sums.into_iter().filter(|sum| sum.calls > 0).collect();
        assert_eq!(packed.sums, of_all);
        assert_eq!((packed.calls(), packed.sums[0].times.count(), packed.sums[1].times.count()), (6, 5, 0), "an exit takes no time");
    }

    /// The quantiles of a summary must not depend on whether calls are aggregated in the kernel.
    #[test]
    fn buckets_are_those_of_the_summary_s_histogram() {
        let histogram = Histogram::<u32>::new_with_max(1 << 40, 2).unwrap();
        let values = (0..38).flat_map(|bit| [1u64 << bit, (1 << bit) + (1 << bit) / 3, (2 << bit) - 1]).chain(0..5_000);
        for value in values.filter(|value| *value < 1 << 38) {
            let bucket = bucket(value);
            assert!(bucket < 1 << VALUE_BITS, "{value} is in bucket {bucket}");
            let middle = middle_of_bucket(bucket);
            assert!(histogram.equivalent(middle, value), "{value} became {middle}");
            assert!(middle.abs_diff(value) * 200 <= value, "{value} became {middle}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_decoded(seed in proptest::collection::vec(any::<u8>(), 1..200), len in 0..2 * BODY_BYTES, places: u64) {
            let raw: Vec<u8> = seed.into_iter().cycle().take(len).collect();
            let aggregate = parse(&raw, places);
            prop_assert_eq!(aggregate.is_some(), len >= (places & ALL).count_ones() as usize * SUM_BYTES);
            let aggregate = aggregate.unwrap_or_default();
            prop_assert!(aggregate.sums.len() <= SUMS_MAX);
            prop_assert!(aggregate.sums.iter().map(|sum| sum.errnos.len() + sum.times.spread.len()).sum::<usize>() <= len / 4);
            aggregate.calls();
        }
    }
}
