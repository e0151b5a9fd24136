//! Writes JSON objects with serde, one per line.
//!
//! The style `beauty/json/` writes events without serde, because there are many of them. Both follow the rules that
//! rtrace-json(5) states: no reader can round an integer, and no byte is lost.

use super::escape;
use super::number::HEX;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The largest integer that every JSON reader represents exactly (RFC 8259, section 6).
pub const EXACT_MAX: u64 = 1 << 53;

/// Appends an object and a newline. Characters that could hide text on a terminal are escaped.
///
/// # Errors
/// The object cannot be represented in JSON, for example because the key of a map is not a string.
pub fn line(out: &mut Vec<u8>, object: &impl Serialize) -> serde_json::Result<()> {
    // Such characters occur only in strings, where JSON has an escape for every UTF-16 code unit.
    for c in serde_json::to_string(object)?.chars() {
        if escape::is_deceptive(c) {
            let units = &mut [0; 2];
            c.encode_utf16(units).iter().for_each(|unit| out.extend_from_slice(format!("\\u{unit:04x}").as_bytes()));
        } else {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    out.push(b'\n');
    Ok(())
}

/// A number, or a string with its digits if a reader might round it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Integer(pub u64);

impl Serialize for Integer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 <= EXACT_MAX { serializer.serialize_u64(self.0) } else { serializer.collect_str(&self.0) }
    }
}

/// A hexadecimal number as a string: `"0x1000"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex(pub u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

/// Arbitrary bytes: a string if they are UTF-8, otherwise an object with two hexadecimal digits for each byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let digits: String =
                    self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(HEX[usize::from(digit)])).collect();
                let mut object = serializer.serialize_map(Some(1))?;
                object.serialize_entry("bytes", &digits)?;
                object.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(object: &impl Serialize) -> String {
        let mut out = Vec::new();
        line(&mut out, object).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_that_a_reader_might_round_are_strings() {
        assert_eq!(written(&Integer(1 << 53)), "9007199254740992\n");
        assert_eq!(written(&Integer((1 << 53) + 1)), "\"9007199254740993\"\n");
        assert_eq!(written(&Hex(u64::MAX)), "\"0xffffffffffffffff\"\n");
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_digits() {
        assert_eq!(written(&Bytes("gr\u{fc}n".as_bytes())), "\"gr\u{fc}n\"\n");
        assert_eq!(written(&Bytes(b"ab\xff\x00")), "{\"bytes\":\"6162ff00\"}\n");
    }

    #[test]
    fn deceptive_characters_are_escaped_and_read_back() {
        for text in ["a\x1b[31m\n\x7f\"\\", "\u{9b}1m \u{202e}gpj \u{2028}", "\u{e0041} 😀"] {
            let line = written(&json!({ "text": text }));
            assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap()["text"], text, "{line}");
            assert!(!line.trim_end().chars().any(escape::is_deceptive), "{line:?}");
        }
    }
}
