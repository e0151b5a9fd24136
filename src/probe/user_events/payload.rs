//! Values as a person writes them (`count=3 msg=hello`) → the fields of a user event's record.

use crate::kernel::ctype::CType;
use crate::probe::grammar::Field;
use rtrace_mark::record::{CountedFrom, Record, TooLong, WORD_BYTES};

/// Why there is no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    #[error("`{word}` is no NAME=VALUE")]
    NoValue { word: String },
    #[error("the event has no field `{name}`: it has {fields}")]
    UnknownField { name: String, fields: String },
    #[error("the field `{name}` has two values")]
    Twice { name: String },
    #[error("no value for {missing}")]
    Missing { missing: String },
    #[error("`{value}` is no {kind}, which the field `{name}` is: {why}")]
    Value { name: String, kind: String, value: String, why: String },
    #[error("rtrace does not know how to write a `{kind}`, which the field `{name}` is")]
    Kind { name: String, kind: String },
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

/// How a field's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Integer {
        bytes: u8,
        signed: bool,
    },
    /// One character, or its number.
    Char,
    /// `char[N]`: as long, or filled up with NULs.
    Text(usize),
    /// `unsigned char[N]` and structs: in hexadecimal, so many.
    Bytes(usize),
    TextElsewhere(CountedFrom),
    /// Of any number, in hexadecimal.
    BytesElsewhere(CountedFrom),
}

/// A record of these fields with these values: words of the form `NAME=VALUE`, one for each field, in any order.
///
/// # Errors
/// [`PayloadError`]: a field that does not exist or has no value or two, a value that is not of its type.
pub fn record(fields: &[Field], words: &[String]) -> Result<Record, PayloadError> {
    let values = words.iter().map(|word| named(fields, word)).collect::<Result<Vec<_>, _>>()?;
    let of = |field: &Field| values.iter().filter(|(name, _)| *name == field.name).map(|(_, value)| *value).collect::<Vec<_>>();
    let missing: Vec<String> = fields.iter().filter(|field| of(field).is_empty()).map(ToString::to_string).collect();
    if !missing.is_empty() {
        return Err(PayloadError::Missing { missing: missing.join(", ") });
    }
    let kinds = fields.iter().map(Kind::of).collect::<Result<Vec<_>, _>>()?;
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

impl Kind {
    /// By the field's C type, as user_field_size() in kernel/trace/trace_events_user.c knows them.
    fn of(field: &Field) -> Result<Kind, PayloadError> {
        let unknown = || PayloadError::Kind { name: field.name.clone(), kind: field.kind.clone() };
        let kind = field.kind.as_str();
        let elsewhere = [("__data_loc ", CountedFrom::Record), ("__rel_loc ", CountedFrom::FieldEnd)];
        if let Some((of, from)) = elsewhere.into_iter().find_map(|(word, from)| Some((kind.strip_prefix(word)?, from))) {
            // The kernel wants a NUL at the end of whatever has char in its type.
            return Ok(if of.contains("char") { Kind::TextElsewhere(from) } else { Kind::BytesElsewhere(from) });
        }
        if let Some(bytes) = field.size {
            return Ok(Kind::Bytes(bytes as usize));
        }
        if let Some((of, length)) = kind.split_once('[') {
            let length = length.strip_suffix(']').and_then(|length| length.parse().ok()).ok_or_else(unknown)?;
            return match CType::of(of) {
                CType::Char => Ok(Kind::Text(length)),
                CType::Unsigned(1) => Ok(Kind::Bytes(length)),
                _ => Err(unknown()),
            };
        }
        match CType::of(kind) {
            CType::Char => Ok(Kind::Char),
            CType::Signed(bytes) => Ok(Kind::Integer { bytes, signed: true }),
            CType::Unsigned(bytes) => Ok(Kind::Integer { bytes, signed: false }),
            _ => Err(unknown()),
        }
    }

    /// What it takes among the fields.
    fn bytes(self) -> usize {
        match self {
            Kind::Integer { bytes, .. } => usize::from(bytes),
            Kind::Char => 1,
            Kind::Text(bytes) | Kind::Bytes(bytes) => bytes,
            Kind::TextElsewhere(_) | Kind::BytesElsewhere(_) => WORD_BYTES,
        }
    }

    fn put(self, value: &str, record: &mut Record) -> Result<(), String> {
        match self {
            Kind::Integer { bytes, signed } => record.put(&integer(value, bytes, signed)?.to_le_bytes()[..usize::from(bytes)]),
            Kind::Char => match value.as_bytes() {
                [byte] if !byte.is_ascii_digit() => record.put(&[*byte]),
                _ => record.put(&integer(value, 1, true)?.to_le_bytes()[..1]),
            },
            Kind::Text(length) => {
                let spare = length.checked_sub(value.len()).ok_or_else(|| format!("it has {} bytes", value.len()))?;
                record.put(value.as_bytes());
                record.put(&vec![0; spare]);
            }
            Kind::Bytes(length) => {
                let bytes = hex(value)?;
                if bytes.len() != length {
                    return Err(format!("these are {} bytes of {length}", bytes.len()));
                }
                record.put(&bytes);
            }
            Kind::TextElsewhere(from) => record.put_text(value.as_bytes(), from),
            Kind::BytesElsewhere(from) => record.put_elsewhere(&hex(value)?, from),
        }
        Ok(())
    }
}

/// A decimal or `0x` number that fits.
fn integer(value: &str, bytes: u8, signed: bool) -> Result<i128, String> {
    let (minus, digits) = value.strip_prefix('-').map_or((false, value), |digits| (true, digits));
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    // A second sign would be taken by the parser.
    let number = number.ok().filter(|number| digits.starts_with(|c: char| c.is_ascii_hexdigit()) && *number <= i128::from(u64::MAX));
    let number = number.map(|number| if minus { -number } else { number }).ok_or("it is not a number")?;
    let bits = u32::from(bytes) * 8;
    let (least, most) = if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    if (least..=most).contains(&number) { Ok(number) } else { Err(format!("it holds {least} to {most}")) }
}

/// Pairs of hexadecimal digits, perhaps behind `0x`.
fn hex(value: &str) -> Result<Vec<u8>, String> {
    let digits = value.strip_prefix("0x").unwrap_or(value).as_bytes();
    let pair = |pair: &[u8]| {
        std::str::from_utf8(pair).ok().filter(|text| !text.starts_with('+')).and_then(|text| u8::from_str_radix(text, 16).ok())
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(|chunk| pair(chunk).filter(|_| chunk.len() == 2)).collect();
    bytes.ok_or_else(|| "bytes are written as pairs of hexadecimal digits".to_owned())
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
    fn one_of_each() {
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

    /// As rtrace itself reads fields out of a record, which begins with the kernel's part.
    #[test]
    fn what_is_packed_is_read() {
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
    fn the_whole_range_of_64_bits() {
        let of = |kind: &str, value: &str| packed(&[field(kind, "x", None)], &[&format!("x={value}")]);
        assert_eq!(of("u64", "18446744073709551615").unwrap(), [0xff; 8]);
        assert_eq!(of("s64", "-9223372036854775808").unwrap(), i64::MIN.to_le_bytes());
        assert_eq!(of("int", "-1").unwrap(), [0xff; 4]);
        assert_eq!(of("char", "7").unwrap(), [7]);
    }

    #[test]
    fn mistakes_are_named() {
        let fields = [field("u8", "count", None), field("char[4]", "msg", None)];
        let wrong = |words: &[&str]| packed(&fields, words).unwrap_err();
        assert_eq!(wrong(&["count=256", "msg="]), "`256` is no u8, which the field `count` is: it holds 0 to 255");
        assert_eq!(wrong(&["count=+-1", "msg="]), "`+-1` is no u8, which the field `count` is: it is not a number");
        assert_eq!(wrong(&["count=1", "msg=hello"]), "`hello` is no char[4], which the field `msg` is: it has 5 bytes");
        assert_eq!(wrong(&["count=1", "count=2", "msg="]), "the field `count` has two values");
        assert_eq!(wrong(&["count=1"]), "no value for char[4] msg");
        assert_eq!(wrong(&["hello"]), "`hello` is no NAME=VALUE");
        assert_eq!(wrong(&["size=1"]), "the event has no field `size`: it has u8 count, char[4] msg");
        let bytes = [field("struct s", "s", Some(2))];
        let message = packed(&bytes, &["s=0102f"]).unwrap_err();
        assert_eq!(message, "`0102f` is no struct s, which the field `s` is: bytes are written as pairs of hexadecimal digits");
        assert!(packed(&bytes, &["s=01"]).unwrap_err().ends_with("these are 1 bytes of 2"));
        assert!(packed(&[field("long", "l", None)], &["l=x"]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_value_makes_it_panic(kind in "(u8|s64|char|char\\[[0-9]{0,6}\\]|struct x|__rel_loc u8\\[\\]|\\PC{0,9})", value in "\\PC{0,9}", size: Option<u16>) {
            let _ = packed(&[field(&kind, "x", size.map(u32::from))], &[&format!("x={value}")]);
        }
    }
}
