//! What a field of a struct is in memory, as rows write it: `u32`, `be16[4]`, `char[]`, or a struct's name.

use super::fault::is_name;
use super::kind;

/// What a field is in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Bytes in each ABI.
    Number {
        bytes: [u8; 4],
        signed: bool,
        big_endian: bool,
        pointer: bool,
    },
    /// A letter of a text that ends with NUL or with its array.
    Char,
    /// A byte of what is no text.
    Byte,
    Struct(String),
}

/// How many of a field there are in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    One,
    Array(u32),
    /// As many as there is memory for, at the end of a struct.
    Open,
}

pub fn split_array(text: &str) -> Result<(&str, Count), String> {
    let Some((word, count)) = text.split_once('[') else { return Ok((text, Count::One)) };
    let count = count.strip_suffix(']').ok_or_else(|| format!("`{text}` has an open bracket"))?;
    match count.parse() {
        _ if count.is_empty() => Ok((word, Count::Open)),
        Ok(count) if count > 0 => Ok((word, Count::Array(count))),
        _ => Err(format!("`{count}` is no number of elements")),
    }
}

/// `u32`, `be16`, `long`, `char`, or a struct's name.
pub fn type_of(word: &str) -> Result<Type, String> {
    let number = |bytes, signed, pointer| Type::Number { bytes, signed, big_endian: false, pointer };
    Ok(match word {
        // x32's own idea of a long is 32 bits, but most of its structs are x86-64's: __kernel_long_t.
        "long" => number([8, 4, 8, 8], true, false),
        "ulong" => number([8, 4, 8, 8], false, false),
        "word" => number([8, 4, 4, 8], false, false),
        "pointer" => number([8, 4, 4, 8], false, true),
        "char" => Type::Char,
        "byte" => Type::Byte,
        "be16" => Type::Number { bytes: [2; 4], signed: false, big_endian: true, pointer: false },
        "be32" => Type::Number { bytes: [4; 4], signed: false, big_endian: true, pointer: false },
        _ => match kind::number(word) {
            Some((bytes, signed)) => number([bytes; 4], signed, false),
            None if is_name(word) => Type::Struct(word.to_string()),
            None => return Err(format!("`{word}` is no type")),
        },
    })
}
