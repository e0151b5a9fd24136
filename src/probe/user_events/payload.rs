//! Encodes values that a user typed (`count=3 msg=hello`) into the payload of a user event.

use crate::kernel::ctype::CType;
use crate::probe::grammar::Field;
use rtrace_mark::record::{OffsetBase, Record, TooLong, WORD_BYTES};

/// Why values cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    #[error("`{word}` is not of the form NAME=VALUE")]
    NoValue { word: String },
    #[error("the event has no field `{name}`; its fields are {fields}")]
    UnknownField { name: String, fields: String },
    #[error("the field `{name}` has two values")]
    Twice { name: String },
    #[error("no value for {missing}")]
    Missing { missing: String },
    #[error("`{value}` is not a valid {kind} for the field `{name}`: {why}")]
    Value { name: String, kind: String, value: String, why: String },
    #[error("rtrace cannot write the field `{name}`: its type `{kind}` is not supported")]
    UnsupportedType { name: String, kind: String },
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

/// The encoding of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldEncoding {
    Integer {
        bytes: u8,
        signed: bool,
    },
    /// One character, typed as a character or as a number.
    Char,
    /// `char[N]`: at most N bytes, padded with NULs.
    Text(usize),
    /// `unsigned char[N]` and structs: exactly N bytes, typed in hexadecimal.
    Bytes(usize),
    /// A string of any length behind the fields, NUL-terminated.
    DynamicText(OffsetBase),
    /// Any number of bytes behind the fields, typed in hexadecimal.
    DynamicBytes(OffsetBase),
}

/// Encodes a record of these fields. Each word has the form `NAME=VALUE`; there is one for each field, in any order.
///
/// # Errors
/// [`PayloadError`]: a field does not exist, or has no value or two values, or a value does not fit its type.
pub fn record(fields: &[Field], words: &[String]) -> Result<Record, PayloadError> {
    let values = words.iter().map(|word| named(fields, word)).collect::<Result<Vec<_>, _>>()?;
    let of = |field: &Field| values.iter().filter(|(name, _)| *name == field.name).map(|(_, value)| *value).collect::<Vec<_>>();
    let missing: Vec<String> = fields.iter().filter(|field| of(field).is_empty()).map(ToString::to_string).collect();
    if !missing.is_empty() {
        return Err(PayloadError::Missing { missing: missing.join(", ") });
    }
    let kinds = fields.iter().map(FieldEncoding::of).collect::<Result<Vec<_>, _>>()?;
    let mut record = Record::of(kinds.iter().map(|kind| kind.bytes()).sum());
    for (field, kind) in fields.iter().zip(kinds) {
        match of(field)[..] {
            [value] => kind.put(value, &mut record).map_err(|why| wrong(field, value, why))?,
            _ => return Err(PayloadError::Twice { name: field.name.clone() }),
        }
    }
    record.fields()?;
    Ok(record)
}

fn named<'a>(fields: &[Field], word: &'a str) -> Result<(&'a str, &'a str), PayloadError> {
    let (name, value) = word.split_once('=').ok_or_else(|| PayloadError::NoValue { word: word.to_owned() })?;
    if fields.iter().any(|field| field.name == name) {
        return Ok((name, value));
    }
    let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
    let fields = if fields.is_empty() { "none".to_owned() } else { fields.join(", ") };
    Err(PayloadError::UnknownField { name: name.to_owned(), fields })
}

fn wrong(field: &Field, value: &str, why: String) -> PayloadError {
    PayloadError::Value { name: field.name.clone(), kind: field.kind.clone(), value: value.to_owned(), why }
}

impl FieldEncoding {
    /// Returns the encoding by the field's C type, as user_field_size() in kernel/trace/trace_events_user.c knows the
    /// types.
    fn of(field: &Field) -> Result<FieldEncoding, PayloadError> {
        let unknown = || PayloadError::UnsupportedType { name: field.name.clone(), kind: field.kind.clone() };
        let kind = field.kind.as_str();
        let elsewhere = [("__data_loc ", OffsetBase::Record), ("__rel_loc ", OffsetBase::FieldEnd)];
        if let Some((of, from)) = elsewhere.into_iter().find_map(|(word, from)| Some((kind.strip_prefix(word)?, from))) {
            // The kernel requires a NUL at the end of each dynamic array whose type contains `char`.
            return Ok(if of.contains("char") { FieldEncoding::DynamicText(from) } else { FieldEncoding::DynamicBytes(from) });
        }
        if let Some(bytes) = field.size {
            return Ok(FieldEncoding::Bytes(bytes as usize));
        }
        if let Some((of, length)) = kind.split_once('[') {
            let length = length.strip_suffix(']').and_then(|length| length.parse().ok()).ok_or_else(unknown)?;
            return match CType::of(of) {
                CType::Char => Ok(FieldEncoding::Text(length)),
                CType::Unsigned(1) => Ok(FieldEncoding::Bytes(length)),
                _ => Err(unknown()),
            };
        }
        match CType::of(kind) {
            CType::Char => Ok(FieldEncoding::Char),
            CType::Signed(bytes) => Ok(FieldEncoding::Integer { bytes, signed: true }),
            CType::Unsigned(bytes) => Ok(FieldEncoding::Integer { bytes, signed: false }),
            _ => Err(unknown()),
        }
    }

    /// Returns the size of the fixed part in bytes.
    fn bytes(self) -> usize {
        match self {
            FieldEncoding::Integer { bytes, .. } => usize::from(bytes),
            FieldEncoding::Char => 1,
            FieldEncoding::Text(bytes) | FieldEncoding::Bytes(bytes) => bytes,
            FieldEncoding::DynamicText(_) | FieldEncoding::DynamicBytes(_) => WORD_BYTES,
        }
    }

    fn put(self, value: &str, record: &mut Record) -> Result<(), String> {
        match self {
            FieldEncoding::Integer { bytes, signed } => record.put(&integer(value, bytes, signed)?.to_le_bytes()[..usize::from(bytes)]),
            FieldEncoding::Char => match value.as_bytes() {
                [byte] if !byte.is_ascii_digit() => record.put(&[*byte]),
                _ => record.put(&integer(value, 1, true)?.to_le_bytes()[..1]),
            },
            FieldEncoding::Text(length) => {
                let spare = length.checked_sub(value.len()).ok_or_else(|| format!("the value has {} bytes", value.len()))?;
                record.put(value.as_bytes());
                record.put(&vec![0; spare]);
            }
            FieldEncoding::Bytes(length) => {
                let bytes = hex(value)?;
                if bytes.len() != length {
                    return Err(format!("the value has {} bytes instead of {length}", bytes.len()));
                }
                record.put(&bytes);
            }
            FieldEncoding::DynamicText(from) => record.put_text(value.as_bytes(), from),
            FieldEncoding::DynamicBytes(from) => record.put_dynamic(&hex(value)?, from),
        }
        Ok(())
    }
}

/// Parses a decimal or `0x` number that fits into the field.
fn integer(value: &str, bytes: u8, signed: bool) -> Result<i128, String> {
    let (minus, digits) = value.strip_prefix('-').map_or((false, value), |digits| (true, digits));
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    // The parser would accept a second sign.
    let number = number.ok().filter(|number| digits.starts_with(|c: char| c.is_ascii_hexdigit()) && *number <= i128::from(u64::MAX));
    let number = number.map(|number| if minus { -number } else { number }).ok_or("the value is not a number")?;
    let bits = u32::from(bytes) * 8;
    let (least, most) = if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    if (least..=most).contains(&number) { Ok(number) } else { Err(format!("the value must be {least} to {most}")) }
}

/// Parses pairs of hexadecimal digits, with an optional `0x` before them.
fn hex(value: &str) -> Result<Vec<u8>, String> {
    let digits = value.strip_prefix("0x").unwrap_or(value).as_bytes();
    let pair = |pair: &[u8]| {
        std::str::from_utf8(pair).ok().filter(|text| !text.starts_with('+')).and_then(|text| u8::from_str_radix(text, 16).ok())
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(|chunk| pair(chunk).filter(|_| chunk.len() == 2)).collect();
    bytes.ok_or_else(|| "write bytes as pairs of hexadecimal digits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::format::Format;

    fn field(kind: &str, name: &str, size: Option<u32>) -> Field {
        Field { kind: kind.to_owned(), name: name.to_owned(), size }
    }

    fn packed(fields: &[Field], words: &[&str]) -> Result<Vec<u8>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let record = record(fields, &words).map_err(|error| error.to_string())?;
        Ok(record.fields().map_err(|error| error.to_string())?.to_vec())
    }

    #[test]
    fn every_encoding_is_packed() {
        let fields = [
            field("u32", "count", None),
            field("char[4]", "msg", None),
            field("struct point", "at", Some(2)),
            field("unsigned char[2]", "id", None),
            field("char", "letter", None),
            field("s8", "least", None),
            field("unsigned short", "most", None),
            field("__rel_loc char[]", "text", None),
        ];
        let words = ["text=héy", "count=0x10", "msg=ab", "at=0xfffe", "id=0102", "letter=x", "least=-128", "most=65535"];
        let bytes = packed(&fields, &words).unwrap();
        assert_eq!(bytes, [16, 0, 0, 0, b'a', b'b', 0, 0, 0xff, 0xfe, 1, 2, b'x', 0x80, 0xff, 0xff, 0, 0, 5, 0, b'h', 0xc3, 0xa9, b'y', 0]);
    }

    /// The record is read as rtrace reads it: with the kernel's common fields before the payload.
    #[test]
    fn packed_fields_are_read_back() {
        let kinds = ["u32", "__rel_loc char[]", "__data_loc u8[]", "u16"];
        let fields: Vec<Field> = kinds.iter().zip(["a", "b", "c", "d"]).map(|(kind, name)| field(kind, name, None)).collect();
        let packed = packed(&fields, &["a=7", "b=hello", "c=010203", "d=9"]).unwrap();
        let format = [
            "u32 a;offset:8;size:4;signed:0;",
            "__rel_loc char b[];offset:12;size:4;signed:1;",
            "__data_loc u8[] c;offset:16;size:4;signed:1;",
            "u16 d;offset:20;size:2;signed:0;",
        ];
        let format: String = format.iter().map(|field| format!("\tfield:{field}\n")).collect();
        let format = Format::parse(&format!("name: x\nID: 1\n{format}")).unwrap();
        let raw = [&[0; 8], &packed[..]].concat();
        let read: Vec<&[u8]> = format.fields.iter().map(|field| field.bytes(&raw).unwrap()).collect();
        assert_eq!(read, [&[7, 0, 0, 0][..], b"hello\0", &[1, 2, 3], &[9, 0]]);
    }

    #[test]
    fn the_full_range_of_64_bits_is_accepted() {
        let of = |kind: &str, value: &str| packed(&[field(kind, "x", None)], &[&format!("x={value}")]);
        assert_eq!(of("u64", "18446744073709551615").unwrap(), [0xff; 8]);
        assert_eq!(of("s64", "-9223372036854775808").unwrap(), i64::MIN.to_le_bytes());
        assert_eq!(of("int", "-1").unwrap(), [0xff; 4]);
        assert_eq!(of("char", "7").unwrap(), [7]);
    }

    #[test]
    fn invalid_values_are_explained() {
        let fields = [field("u8", "count", None), field("char[4]", "msg", None)];
        let wrong = |words: &[&str]| packed(&fields, words).unwrap_err();
        assert_eq!(wrong(&["count=256", "msg="]), "`256` is not a valid u8 for the field `count`: the value must be 0 to 255");
        assert_eq!(wrong(&["count=+-1", "msg="]), "`+-1` is not a valid u8 for the field `count`: the value is not a number");
        assert_eq!(wrong(&["count=1", "msg=hello"]), "`hello` is not a valid char[4] for the field `msg`: the value has 5 bytes");
        assert_eq!(wrong(&["count=1", "count=2", "msg="]), "the field `count` has two values");
        assert_eq!(wrong(&["count=1"]), "no value for char[4] msg");
        assert_eq!(wrong(&["hello"]), "`hello` is not of the form NAME=VALUE");
        assert_eq!(wrong(&["size=1"]), "the event has no field `size`; its fields are u8 count, char[4] msg");
        let bytes = [field("struct s", "s", Some(2))];
        let message = packed(&bytes, &["s=0102f"]).unwrap_err();
        assert_eq!(message, "`0102f` is not a valid struct s for the field `s`: write bytes as pairs of hexadecimal digits");
        assert!(packed(&bytes, &["s=01"]).unwrap_err().ends_with("the value has 1 bytes instead of 2"));
        assert!(packed(&[field("long", "l", None)], &["l=x"]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_value_makes_it_panic(kind in "(u8|s64|char|char\\[[0-9]{0,6}\\]|struct x|__rel_loc u8\\[\\]|\\PC{0,9})", value in "\\PC{0,9}", size: Option<u16>) {
            let _ = packed(&[field(&kind, "x", size.map(u32::from))], &[&format!("x={value}")]);
        }
    }
}
