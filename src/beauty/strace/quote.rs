//! Strings in strace's quotes: octal escapes of C, and hexadecimal ones with `-x` and `-xx`.

use crate::show::strace::InHex;

/// Appends text in double quotes.
pub fn quoted(out: &mut Vec<u8>, bytes: &[u8], hex: InHex) {
    out.push(b'"');
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r');
    if hex == InHex::Always || (hex == InHex::NotAscii && !bytes.iter().all(is_text)) {
        bytes.iter().for_each(|byte| hexadecimal(out, *byte));
    } else if hex == InHex::Escapes {
        bytes.iter().for_each(|byte| match byte {
            byte if is_text(byte) => escaped(out, &[*byte], b"\""),
            byte => hexadecimal(out, *byte),
        });
    } else {
        escaped(out, bytes, b"\"");
    }
    out.push(b'"');
}

/// Appends bytes with octal escapes. The bytes in `more` are escaped by a backslash, too, as a backslash itself is.
pub fn escaped(out: &mut Vec<u8>, bytes: &[u8], more: &[u8]) {
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            byte if more.contains(byte) => out.extend_from_slice(&[b'\\', *byte]),
            b' '..=b'~' => out.push(*byte),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0b => out.extend_from_slice(b"\\v"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            byte => octal(out, *byte, bytes.get(at + 1).is_some_and(|next| matches!(next, b'0'..=b'7'))),
        }
    }
}

/// Appends the name of a task: `<sh>`.
pub fn comm(out: &mut Vec<u8>, comm: &[u8]) {
    out.push(b'<');
    escaped(out, comm, b"<>");
    out.push(b'>');
}

/// Appends the shortest octal escape; all three digits if a digit follows, which would belong to it otherwise.
fn octal(out: &mut Vec<u8>, byte: u8, is_before_digit: bool) {
    let digits = [byte >> 6, byte >> 3 & 7, byte & 7];
    let first = if is_before_digit { 0 } else { digits[..2].iter().position(|digit| *digit > 0).unwrap_or(2) };
    out.push(b'\\');
    out.extend(digits[first..].iter().map(|digit| b'0' + digit));
}

/// Appends the escape of a byte as two hexadecimal digits.
pub fn hexadecimal(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[b'\\', b'x', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], hex: InHex) -> String {
        let mut out = Vec::new();
        quoted(&mut out, bytes, hex);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_are_octal_and_as_short_as_possible() {
        assert_eq!(text(b"a\"b\\\n\t\r\x0b\x0c", InHex::Never), r#""a\"b\\\n\t\r\v\f""#);
        assert_eq!(text(b"\0\x001\08\x1b[\x7f\xff", InHex::Never), r#""\0\0001\08\33[\177\377""#);
    }

    #[test]
    fn whole_strings_are_hexadecimal() {
        assert_eq!(text(b"a\n", InHex::NotAscii), "\"a\\n\"");
        assert_eq!(text(b"a\0", InHex::NotAscii), r#""\x61\x00""#);
        assert_eq!(text(b"a\n", InHex::Always), r#""\x61\x0a""#);
    }
}
