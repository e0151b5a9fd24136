//! Formats numbers directly into a byte buffer. A line has a dozen numbers, and formatting them with `std::fmt` would
//! cost more than the rest of the line.

/// The numbers below this have at most eight digits.
const NINE_DIGITS_MIN: u64 = 100_000_000;

/// Appends a number in decimal.
#[inline]
pub fn uint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..10 => out.push(b'0' + value as u8),
        10..NINE_DIGITS_MIN => {
            let digits = eight_digits(value as u32);
            let zeros = digits.trailing_zeros() / 8;
            out.extend_from_slice(&(digits >> (8 * zeros) | ZEROS).to_le_bytes());
            out.truncate(out.len() - zeros as usize);
        }
        _ => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
    }
}

/// Appends a signed number in decimal.
#[inline]
pub fn int(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    uint(out, value.unsigned_abs());
}

/// Eight characters `0`.
const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);

/// Returns the eight decimal digits of a number below [`NINE_DIGITS_MIN`], the first in the lowest byte. The number is
/// split into two halves, these into pairs, and the pairs into digits, all parts at once. The products are quotients by
/// 100 and by 10 that are exact for numbers of four and of two digits.
#[inline]
fn eight_digits(value: u32) -> u64 {
    let halves = u64::from(value / 10_000) | u64::from(value % 10_000) << 32;
    let hundreds = (halves * 10_486) >> 20 & 0x0000_007f_0000_007f;
    let pairs = hundreds | (halves - 100 * hundreds) << 16;
    let tens = (pairs * 103) >> 10 & 0x000f_000f_000f_000f;
    tens | (pairs - 10 * tens) << 8
}

/// Returns the nine digits of a number below 1,000,000,000, with leading zeros.
#[inline]
pub fn nine_digits(value: u32) -> [u8; 9] {
    let mut text = [b'0' + (value / NINE_DIGITS_MIN as u32) as u8; 9];
    if let Some(rest) = text.last_chunk_mut() {
        *rest = (eight_digits(value % NINE_DIGITS_MIN as u32) | ZEROS).to_le_bytes();
    }
    text
}

/// Appends a number in hexadecimal with `0x`. Zero is `0`, as with C's `%#x`.
pub fn hex(out: &mut Vec<u8>, value: u64) {
    if value == 0 {
        return out.push(b'0');
    }
    out.extend_from_slice(b"0x");
    hex_digits(out, value);
}

/// Appends a number in hexadecimal without `0x`.
#[inline]
pub fn hex_digits(out: &mut Vec<u8>, value: u64) {
    if value < 16 {
        return out.push(HEX[value as usize]);
    }
    // The leading zeros are moved to the end, where they are cut off.
    let zeros = value.leading_zeros() / 4;
    let value = value << (4 * zeros);
    let text = u128::from(eight_hex_digits((value >> 32) as u32)) << 64 | u128::from(eight_hex_digits(value as u32));
    out.extend_from_slice(&text.to_be_bytes());
    out.truncate(out.len() - zeros as usize);
}

/// Returns the eight hexadecimal digits of a number, the first in the highest byte. The bits are spread, so that each
/// byte has four of them.
#[inline]
fn eight_hex_digits(value: u32) -> u64 {
    let wide = u64::from(value);
    let pairs = (wide | wide << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (pairs | pairs << 8) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (bytes | bytes << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let is_letter = (nibbles + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    nibbles + ZEROS + is_letter * u64::from(b'a' - b'0' - 10)
}

/// Appends a number in octal with a leading zero.
pub fn octal(out: &mut Vec<u8>, value: u64) {
    if value == 0 {
        return out.push(b'0');
    }
    let digits = (66 - value.leading_zeros() as usize) / 3;
    out.push(b'0');
    out.extend((0..digits).rev().map(|digit| b'0' + (value >> (3 * digit) & 7) as u8));
}

/// Appends a number in decimal with leading zeros up to `width` digits (at most 20).
pub fn zero_padded(out: &mut Vec<u8>, value: u64, width: usize) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value).as_bytes();
    out.extend_from_slice(&b"00000000000000000000"[..width.min(20).saturating_sub(digits.len())]);
    out.extend_from_slice(digits);
}

/// Appends nanoseconds as milliseconds with three decimals, rounded to the nearest, right-aligned in `width` columns
/// (at most 30).
pub fn millis(out: &mut Vec<u8>, nanoseconds: i64, width: usize) {
    let microseconds = nanoseconds.unsigned_abs().saturating_add(500) / 1000;
    if nanoseconds >= 0 && microseconds < NINE_DIGITS_MIN {
        let digits = eight_digits(microseconds as u32);
        let [a, b, c, d, e, f, g, h] = (digits | ZEROS).to_le_bytes();
        // One digit stays before the point.
        let zeros = (digits.trailing_zeros() as usize / 8).min(4);
        blanks(out, width.saturating_sub(9 - zeros));
        return out.extend_from_slice(&[a, b, c, d, e, b'.', f, g, h][zeros..]);
    }
    let mut text = [b' '; 30];
    let mut start = text.len();
    let mut rest = microseconds;
    for decimals in 0.. {
        if decimals == 3 {
            start -= 1;
            text[start] = b'.';
        }
        start -= 1;
        text[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 && decimals >= 3 {
            break;
        }
    }
    if nanoseconds < 0 && microseconds != 0 {
        start -= 1;
        text[start] = b'-';
    }
    out.extend_from_slice(&text[start.min(text.len().saturating_sub(width))..]);
}

/// Appends `count` blanks.
pub fn blanks(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, b' ');
}

pub(super) const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_formatted_as_by_std_fmt() {
        let lengths = (0..20).flat_map(|digits| [10u64.pow(digits) - 1, 10u64.pow(digits), 10u64.pow(digits) / 3 * 2]);
        let bits = (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1, 0x0123_4567_89ab_cdef_u64.rotate_left(bit) >> (bit / 2)]);
        let halves = (0..10_000).flat_map(|half| [half, 10_000 * half]);
        for value in [0o644, 0xdead_beef, 99_999_999, u64::MAX].into_iter().chain(lengths).chain(bits).chain(halves) {
            assert_eq!(text(|o| uint(o, value)), format!("{value}"));
            assert_eq!(text(|o| int(o, value as i64)), format!("{}", value as i64));
            if value != 0 {
                assert_eq!(text(|o| hex(o, value)), format!("{value:#x}"));
                assert_eq!(text(|o| octal(o, value)), format!("0{value:o}"));
            }
        }
        assert_eq!(text(|o| hex(o, 0)), "0");
        assert_eq!(text(|o| octal(o, 0)), "0");
        assert_eq!(text(|o| zero_padded(o, 7, 3)), "007");
        assert_eq!(text(|o| zero_padded(o, 1234, 3)), "1234");
    }

    #[test]
    fn nine_digits_begin_with_zeros() {
        for value in
            (0..9).flat_map(|digits| [10u32.pow(digits) - 1, 10u32.pow(digits), 123_456_789 / 10u32.pow(digits)]).chain([999_999_999])
        {
            assert_eq!(String::from_utf8(nine_digits(value).to_vec()).unwrap(), format!("{value:09}"));
        }
    }

    #[test]
    fn milliseconds_are_rounded_and_aligned() {
        assert_eq!(text(|o| millis(o, 0, 6)), " 0.000");
        assert_eq!(text(|o| millis(o, 499, 6)), " 0.000");
        assert_eq!(text(|o| millis(o, 500, 6)), " 0.001");
        assert_eq!(text(|o| millis(o, 12_345_678, 10)), "    12.346");
        assert_eq!(text(|o| millis(o, -1_500_000, 10)), "    -1.500");
        assert_eq!(text(|o| millis(o, -1, 6)), " 0.000");
        assert_eq!(text(|o| millis(o, 123_456_789_012_345, 6)), "123456789.012");
        assert_eq!(text(|o| millis(o, i64::MIN, 3)), "-9223372036854.776");
        let edges = (0..13).flat_map(|digits| [10i64.pow(digits) - 1, 10i64.pow(digits), 10i64.pow(digits) + 1]);
        for microseconds in edges {
            let expected = format!("{:>9}.{:03}", microseconds / 1000, microseconds % 1000);
            assert_eq!(text(|o| millis(o, 1000 * microseconds, 13)), expected);
        }
    }
}
