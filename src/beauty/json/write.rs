//! A writer of JSON objects and arrays that appends to a buffer.

use crate::text::number;

/// The largest integer that every JSON reader represents exactly (RFC 8259, section 6).
const EXACT_MAX: u64 = 1 << 53;

/// An object or array under construction. It writes the commas between the elements.
pub struct Elements<'o> {
    pub out: &'o mut Vec<u8>,
    is_first: bool,
}

impl Elements<'_> {
    #[inline(always)]
    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
    }

    /// Begins the next element of an array. The caller appends its value to the returned buffer.
    pub fn item(&mut self) -> &mut Vec<u8> {
        self.separate();
        self.out
    }

    /// Begins the next member of an object. The caller appends its value to the returned buffer. The name must not need
    /// escapes.
    #[inline(always)]
    pub fn member(&mut self, name: &str) -> &mut Vec<u8> {
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    #[inline(always)]
    pub fn uint(&mut self, name: &str, value: u64) {
        uint(self.member(name), value);
    }

    #[inline(always)]
    pub fn int(&mut self, name: &str, value: i64) {
        int(self.member(name), value);
    }

    #[inline(always)]
    pub fn hex(&mut self, name: &str, value: u64) {
        hex(self.member(name), value);
    }

    /// Writes a member that is a string without characters that need escapes.
    #[inline(always)]
    pub fn word(&mut self, name: &str, value: &str) {
        word(self.member(name), value);
    }

    pub fn bytes(&mut self, name: &str, value: &[u8]) {
        bytes(self.member(name), value);
    }

    /// Writes a member `true`, or omits the member if the value is false.
    pub fn mark(&mut self, name: &str, value: bool) {
        if value {
            self.member(name).extend_from_slice(b"true");
        }
    }

    pub fn object(&mut self, name: &str, fill: impl FnOnce(&mut Elements)) {
        object(self.member(name), fill);
    }

    pub fn array(&mut self, name: &str, fill: impl FnOnce(&mut Elements)) {
        array(self.member(name), fill);
    }
}

/// Writes an object whose members `fill` adds.
pub fn object(out: &mut Vec<u8>, fill: impl FnOnce(&mut Elements)) {
    out.push(b'{');
    fill(&mut Elements { out, is_first: true });
    out.push(b'}');
}

/// Writes an array whose elements `fill` adds.
pub fn array(out: &mut Vec<u8>, fill: impl FnOnce(&mut Elements)) {
    out.push(b'[');
    fill(&mut Elements { out, is_first: true });
    out.push(b']');
}

/// Writes a number, or a string with its digits if a reader might round it.
pub fn uint(out: &mut Vec<u8>, value: u64) {
    if value <= EXACT_MAX {
        return number::uint(out, value);
    }
    digits(out, value);
}

/// Writes a signed number, or a string with its digits if a reader might round it.
pub fn int(out: &mut Vec<u8>, value: i64) {
    if value.unsigned_abs() <= EXACT_MAX {
        return number::int(out, value);
    }
    out.push(b'"');
    number::int(out, value);
    out.push(b'"');
}

/// Writes a string with the digits of a number.
fn digits(out: &mut Vec<u8>, value: u64) {
    out.push(b'"');
    number::uint(out, value);
    out.push(b'"');
}

/// Writes a hexadecimal number as a string: `"0x1000"`.
pub fn hex(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(b"\"0x");
    number::hex_digits(out, value);
    out.push(b'"');
}

/// Writes a string without characters that need escapes.
pub fn word(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    out.extend_from_slice(value.as_bytes());
    out.push(b'"');
}

/// Writes arbitrary bytes: a string if they are UTF-8, otherwise an object with two hexadecimal digits for each byte.
pub fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    match str::from_utf8(value) {
        Ok(text) => string(out, text),
        Err(_) => object(out, |o| {
            let digits = o.member("bytes");
            digits.push(b'"');
            for byte in value {
                digits.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
            }
            digits.push(b'"');
        }),
    }
}

/// Whether a byte of a string needs an escape.
const IS_ESCAPED: [bool; 256] = {
    let mut is_escaped = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        is_escaped[byte] = true;
        byte += 1;
    }
    (is_escaped[b'"' as usize], is_escaped[b'\\' as usize], is_escaped[0x7f]) = (true, true, true);
    is_escaped
};

/// Writes a string with the escapes of JSON (RFC 8259, section 7).
fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| IS_ESCAPED[usize::from(*byte)]) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            escaped @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', escaped]),
            control => {
                out.extend_from_slice(b"\\u00");
                out.extend([control >> 4, control & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_that_a_reader_might_round_are_strings() {
        assert_eq!(written(|out| uint(out, 1 << 53)), "9007199254740992");
        assert_eq!(written(|out| uint(out, (1 << 53) + 1)), "\"9007199254740993\"");
        assert_eq!(written(|out| int(out, i64::MIN)), "\"-9223372036854775808\"");
        assert_eq!(written(|out| int(out, -7)), "-7");
        assert_eq!(written(|out| hex(out, 0x7fff_0000_0001)), "\"0x7fff00000001\"");
    }

    #[test]
    fn any_bytes_are_parsed_back() {
        for text in ["", "plain", "a\"b\\c", "\n\t\r\u{1}\u{1f}\u{7f}", "äöü€😀", "\u{2028}"] {
            let json = written(|out| bytes(out, text.as_bytes()));
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text, "{json}");
        }
        assert_eq!(written(|out| bytes(out, b"ab\xff\x00")), "{\"bytes\":\"6162ff00\"}");
    }

    #[test]
    fn elements_are_separated_by_commas() {
        let json = written(|out| {
            object(out, |o| {
                o.uint("a", 1);
                o.mark("left_out", false);
                o.array("b", |a| (0..2).for_each(|i| int(a.item(), i)));
                o.object("c", |_| {});
            });
        });
        assert_eq!(json, r#"{"a":1,"b":[0,1],"c":{}}"#);
    }
}
