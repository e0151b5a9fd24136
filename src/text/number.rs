//! Formats numbers directly into a byte buffer. A line has a dozen numbers, and formatting them with `std::fmt` would
//! cost more than the rest of the line.

/// Appends a number in decimal.
pub fn uint(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a signed number in decimal.
pub fn int(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
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
pub fn hex_digits(out: &mut Vec<u8>, value: u64) {
    let digits = (16 - value.leading_zeros() as usize / 4).max(1);
    let mut text = [0; 16];
    for (byte, digit) in text[..digits].iter_mut().zip((0..digits).rev()) {
        *byte = HEX[(value >> (4 * digit)) as usize & 15];
    }
    out.extend_from_slice(&text[..digits]);
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
        for value in [0u64, 1, 7, 8, 15, 16, 63, 64, 0o644, 0xdead_beef, 1 << 63, u64::MAX] {
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
    fn milliseconds_are_rounded_and_aligned() {
        assert_eq!(text(|o| millis(o, 0, 6)), " 0.000");
        assert_eq!(text(|o| millis(o, 499, 6)), " 0.000");
        assert_eq!(text(|o| millis(o, 500, 6)), " 0.001");
        assert_eq!(text(|o| millis(o, 12_345_678, 10)), "    12.346");
        assert_eq!(text(|o| millis(o, -1_500_000, 10)), "    -1.500");
        assert_eq!(text(|o| millis(o, -1, 6)), " 0.000");
        assert_eq!(text(|o| millis(o, 123_456_789_012_345, 6)), "123456789.012");
        assert_eq!(text(|o| millis(o, i64::MIN, 3)), "-9223372036854.776");
    }
}
