//! A writer of JSON objects and arrays that appends to a buffer.
//!
//! Most of an object is text that the compiler knows. The functions with `inline(always)` put it together in an array
//! of fixed size, byte by byte, and the compiler makes a few moves of it that append a name with its punctuation.

use crate::text::json::EXACT_MAX;
use crate::text::number;

/// Maximum number of bytes that are put together before they are appended: a name with its punctuation.
const TEXT_MAX: usize = 40;

/// An object or array under construction. It writes the commas between the elements.
pub struct Elements<'o> {
    /// The buffer that the text is appended to. It keeps what it had before.
    pub out: &'o mut Vec<u8>,
    /// The byte before the next element: the opening bracket, or a comma.
    before: u8,
}

impl<'o> Elements<'o> {
    /// Continues an object that has members already.
    pub fn further(out: &'o mut Vec<u8>) -> Elements<'o> {
        Elements { out, before: b',' }
    }

    #[inline(always)]
    fn separator(&mut self) -> u8 {
        std::mem::replace(&mut self.before, b',')
    }

    /// Begins the next element of an array. The caller appends its value to the returned buffer.
    #[inline(always)]
    pub fn item(&mut self) -> &mut Vec<u8> {
        let separator = self.separator();
        self.out.push(separator);
        self.out
    }

    /// Writes a string without characters that need escapes as the next element of an array.
    #[inline(always)]
    pub fn word_item(&mut self, value: &str) {
        let separator = self.separator();
        self.out.extend_from_slice(&[separator, b'"']);
        self.out.extend_from_slice(value.as_bytes());
        self.out.push(b'"');
    }

    /// Begins the next member of an object. The caller appends its value to the returned buffer. The name is a literal
    /// without characters that need escapes; [`Elements::named`] is for other names.
    #[inline(always)]
    pub fn member(&mut self, name: &'static str) -> &mut Vec<u8> {
        self.begin(name, b"")
    }

    /// Begins the next member of an object with the first bytes of its value.
    #[inline(always)]
    fn begin<const BYTES: usize>(&mut self, name: &'static str, value: &[u8; BYTES]) -> &mut Vec<u8> {
        let colon = 3 + name.len();
        let end = colon + 1 + BYTES;
        if end > TEXT_MAX {
            let out = self.named(name);
            out.extend_from_slice(value);
            return out;
        }
        let mut text = [b'"'; TEXT_MAX];
        text[0] = self.separator();
        text[2..].iter_mut().zip(name.as_bytes()).for_each(|(to, from)| *to = *from);
        text[colon] = b':';
        text[colon + 1..].iter_mut().zip(value).for_each(|(to, from)| *to = *from);
        self.out.extend_from_slice(&text[..end]);
        self.out
    }

    /// Begins the next member of an object, whose name is not a literal. The name must not need escapes.
    #[inline]
    pub fn named(&mut self, name: &str) -> &mut Vec<u8> {
        let separator = self.separator();
        self.out.extend_from_slice(&[separator, b'"']);
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Appends members whose text begins with the comma before the first. The object has a member already.
    #[inline(always)]
    pub fn members(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    /// Writes a member that is a number, or a string with its digits if a reader might round it.
    #[inline(always)]
    pub fn uint(&mut self, name: &'static str, value: u64) {
        uint(self.member(name), value);
    }

    /// Writes a member that is a signed number, or a string with its digits if a reader might round it.
    #[inline(always)]
    pub fn int(&mut self, name: &'static str, value: i64) {
        int(self.member(name), value);
    }

    /// Writes a member that is a string with a hexadecimal number: `"0x1000"`.
    #[inline(always)]
    pub fn hex(&mut self, name: &'static str, value: u64) {
        let out = self.begin(name, b"\"0x");
        number::hex_digits(out, value);
        out.push(b'"');
    }

    /// Writes a member that is a string without characters that need escapes.
    #[inline(always)]
    pub fn word(&mut self, name: &'static str, value: &str) {
        let out = self.begin(name, b"\"");
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    }

    /// Writes a member of arbitrary bytes: a string if they are UTF-8, otherwise an object as [`bytes()`] writes it.
    #[inline(always)]
    pub fn bytes(&mut self, name: &'static str, value: &[u8]) {
        bytes(self.member(name), value);
    }

    /// Writes a member `true`, or omits the member if the value is false.
    #[inline(always)]
    pub fn mark(&mut self, name: &'static str, value: bool) {
        if value {
            self.begin(name, b"true");
        }
    }

    /// Writes a member that is an object, whose members `fill` adds.
    #[inline(always)]
    pub fn object(&mut self, name: &'static str, fill: impl FnOnce(&mut Elements)) {
        object(self.member(name), fill);
    }

    /// Writes a member that is an array, whose elements `fill` adds.
    #[inline(always)]
    pub fn array(&mut self, name: &'static str, fill: impl FnOnce(&mut Elements)) {
        array(self.member(name), fill);
    }

    /// Closes the object or array, which may be empty.
    #[inline(always)]
    fn close(self, open: u8, close: u8) {
        if self.before == open {
            self.out.push(open);
        }
        self.out.push(close);
    }
}

/// Writes an object whose members `fill` adds.
#[inline(always)]
pub fn object(out: &mut Vec<u8>, fill: impl FnOnce(&mut Elements)) {
    let mut members = Elements { out, before: b'{' };
    fill(&mut members);
    members.close(b'{', b'}');
}

/// Writes an array whose elements `fill` adds.
#[inline(always)]
pub fn array(out: &mut Vec<u8>, fill: impl FnOnce(&mut Elements)) {
    let mut items = Elements { out, before: b'[' };
    fill(&mut items);
    items.close(b'[', b']');
}

/// Writes a number, or a string with its digits if a reader might round it.
#[inline]
pub fn uint(out: &mut Vec<u8>, value: u64) {
    if value <= EXACT_MAX {
        return number::uint(out, value);
    }
    digits(out, value);
}

/// Writes a signed number, or a string with its digits if a reader might round it.
#[inline]
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
#[inline(always)]
pub fn word(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    out.extend_from_slice(value.as_bytes());
    out.push(b'"');
}

/// Writes arbitrary bytes: a string if they are UTF-8, otherwise an object with two hexadecimal digits for each byte.
pub fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    if is_plain(value) {
        out.push(b'"');
        out.extend_from_slice(value);
        return out.push(b'"');
    }
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

/// Returns whether all bytes are ASCII characters that need no escapes. Eight bytes are tested at once; the last eight
/// overlap those before.
fn is_plain(bytes: &[u8]) -> bool {
    let Some(last) = bytes.last_chunk() else {
        return bytes.iter().all(|byte| byte.is_ascii() && !IS_ESCAPED[usize::from(*byte)]);
    };
    let (chunks, _) = bytes.as_chunks();
    chunks.iter().all(|chunk| are_plain(*chunk)) && are_plain(*last)
}

/// Returns whether eight bytes are ASCII characters that need no escapes. The top bit of a byte is set in the result of
/// a test if the byte fails it. A borrow may also set that of the next byte, but only if there is a byte that fails.
#[inline(always)]
fn are_plain(bytes: [u8; 8]) -> bool {
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    let bytes = u64::from_ne_bytes(bytes);
    let is_control = bytes.wrapping_sub(each(0x20)) | bytes.wrapping_add(each(1));
    let is_quote = (bytes ^ each(b'"')).wrapping_sub(each(1));
    let is_backslash = (bytes ^ each(b'\\')).wrapping_sub(each(1));
    (bytes | is_control | is_quote | is_backslash) & each(0x80) == 0
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
    fn each_byte_is_escaped_at_each_place() {
        for (byte, length) in (0..=0xffu8).flat_map(|byte| (1..=17).map(move |length| (byte, length))) {
            for place in 0..length {
                let mut value = vec![b'a'; length];
                value[place] = byte;
                let json = written(|out| bytes(out, &value));
                let is_escaped = byte < 0x20 || matches!(byte, b'"' | b'\\' | 0x7f..);
                assert_eq!(json == format!("\"{}\"", String::from_utf8_lossy(&value)), !is_escaped, "{json}");
                match String::from_utf8(value) {
                    Ok(text) => assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text, "{json}"),
                    Err(_) => assert!(json.starts_with("{\"bytes\":\""), "{json}"),
                }
            }
        }
    }

    #[test]
    fn names_of_any_length_are_written() {
        let json = written(|out| {
            object(out, |o| {
                o.uint("a_name_that_is_longer_than_the_text_that_is_put_together", 1);
                o.word("a_name_of_36_bytes_is_put_in_3_parts", "x");
                o.word("a_name_of_35_bytes_is_put_together_", "x");
                o.named("b").extend_from_slice(b"null");
                o.mark("", true);
                o.hex("c", 0xabc);
            });
        });
        assert_eq!(
            json,
            "{\"a_name_that_is_longer_than_the_text_that_is_put_together\":1,\"a_name_of_36_bytes_is_put_in_3_parts\":\"x\",\
             \"a_name_of_35_bytes_is_put_together_\":\"x\",\"b\":null,\"\":true,\"c\":\"0xabc\"}"
        );
    }

    #[test]
    fn elements_are_separated_by_commas() {
        let json = written(|out| {
            object(out, |o| {
                o.uint("a", 1);
                o.mark("left_out", false);
                o.array("b", |a| (0..2).for_each(|i| int(a.item(), i)));
                o.object("c", |_| {});
                o.array("d", |_| {});
                o.array("e", |a| ["f", "g"].iter().for_each(|word| a.word_item(word)));
            });
        });
        assert_eq!(json, r#"{"a":1,"b":[0,1],"c":{},"d":[],"e":["f","g"]}"#);
    }
}
