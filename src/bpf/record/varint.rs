//! Numbers of variable length: small ones take few bytes.
//!
//! The number of zero bits at the end of the first byte is the number of bytes that follow it, up to 8. The other bits
//! are the value, from the lowest on. One shift encodes and decodes a number, without a loop over its bytes.

/// Appends a number. It takes a byte for each 7 bits, and 9 bytes if it has more than 56 bits.
#[inline]
pub fn append_number(value: u64, out: &mut Vec<u8>) {
    let more = (63 - (value | 1).leading_zeros()) as usize / 7;
    if more >= 8 {
        out.push(0);
        out.extend_from_slice(&value.to_le_bytes());
        return;
    }
    let end = out.len() + more + 1;
    // A store of a constant size is faster than one of the size that is needed.
    out.extend_from_slice(&((value << 1 | 1) << more).to_le_bytes());
    out.truncate(end);
}

/// Returns a number in which the sign is the lowest bit.
#[inline]
pub fn folded(value: u64) -> u64 {
    value << 1 ^ (value as i64 >> 63) as u64
}

/// Returns the number that [`folded`] took.
#[inline]
pub fn unfolded(value: u64) -> u64 {
    value >> 1 ^ (value & 1).wrapping_neg()
}

/// Takes a number from the beginning of these bytes; `None` if they end inside it.
#[inline]
pub fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (first, behind) = bytes.split_first()?;
    let more = first.trailing_zeros() as usize;
    if more == 0 {
        *bytes = behind;
        return Some(u64::from(first >> 1));
    }
    if more >= 8 {
        let (value, rest) = behind.split_first_chunk()?;
        *bytes = rest;
        return Some(u64::from_le_bytes(*value));
    }
    let rest = behind.get(more..)?;
    let word = match bytes.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => word_of_few(bytes),
    };
    *bytes = rest;
    let unused = 64 - 8 * (more as u32 + 1);
    Some(word << unused >> unused >> (more + 1))
}

/// Returns fewer than eight bytes as a number. The two halves overlap, which changes nothing, so no loop is needed.
#[inline]
fn word_of_few(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(low), Some(high)) => u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << (8 * (bytes.len() - 4)),
        _ => [0, bytes.len() / 2, bytes.len() - 1].iter().fold(0, |word, &at| word | u64::from(bytes[at]) << (8 * at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_takes_a_byte_for_each_seven_bits() {
        let size = |value: u64| {
            let mut out = Vec::new();
            append_number(value, &mut out);
            assert_eq!((number(&mut &out[..]), number(&mut &out[..out.len() - 1])), (Some(value), None));
            out.len()
        };
        for bits in 1..=56usize {
            assert_eq!(size((1 << bits) - 1), bits.div_ceil(7), "{bits} bits");
        }
        assert_eq!([0, 1 << 56, u64::MAX].map(size), [1, 9, 9]);
        assert_eq!([0, 1, -1, 63, -64, i64::MIN].map(|value: i64| folded(value as u64)), [0, 2, 1, 126, 127, u64::MAX]);
    }

    #[test]
    fn few_bytes_are_a_number() {
        for bytes in (1..8).map(|count| (1..=count).collect::<Vec<u8>>()) {
            let expected = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            assert_eq!(word_of_few(&bytes), expected);
        }
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(values: Vec<(u64, u8)>) {
            let mut out = Vec::new();
            let values: Vec<u64> = values.into_iter().map(|(value, bits)| value >> (bits % 64)).collect();
            values.iter().for_each(|value| append_number(folded(*value), &mut out));
            let mut rest = &out[..];
            values.iter().for_each(|value| assert_eq!(number(&mut rest).map(unfolded), Some(*value)));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            while number(&mut rest).is_some() {}
        }
    }
}
