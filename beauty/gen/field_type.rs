//! The types of struct fields as rows write them: `u32`, `be16[4]`, `char[]`, or the name of a struct.

use super::fault::is_name;
use super::kind;

/// The type of a field in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Number {
        /// The size in each ABI.
        bytes: [u8; 4],
        signed: bool,
        big_endian: bool,
        pointer: bool,
    },
    /// A byte of text that ends at NUL or at the end of its array.
    Char,
    /// A byte of data that is not text.
    Byte,
    Struct(String),
}

/// The number of elements of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    One,
    Array(u32),
    /// A flexible array at the end of a struct: as many elements as the memory has room for.
    Open,
}

/// Splits a type into that of its elements and their number.
pub fn split_array(text: &str) -> Result<(&str, Count), String> {
    let Some((word, count)) = text.split_once('[') else { return Ok((text, Count::One)) };
    let count = count.strip_suffix(']').ok_or_else(|| format!("`{text}` has no closing bracket"))?;
    match count.parse() {
        _ if count.is_empty() => Ok((word, Count::Open)),
        Ok(count) if count > 0 => Ok((word, Count::Array(count))),
        _ => Err(format!("`{count}` is not a number of elements")),
    }
}

/// Parses the type of an element: `u32`, `be16`, `long`, `char`, or the name of a struct.
pub fn type_of(word: &str) -> Result<Type, String> {
    let number = |bytes, signed, pointer| Type::Number { bytes, signed, big_endian: false, pointer };
    Ok(match word {
        // A long of x32 has 32 bits in C, but its structs mostly have __kernel_long_t, which is x86-64's.
        "long" => number([8, 4, 8, 8], true, false),
        "ulong" => number([8, 4, 8, 8], false, false),
        "word" => number([8, 4, 4, 8], false, false),
        "sword" => number([8, 4, 4, 8], true, false),
        "pointer" => number([8, 4, 4, 8], false, true),
        // The IDs of calls without "32" in their names have 16 bits on i386 (kernel/uid16.c).
        "old_id" => number([4, 2, 4, 4], false, false),
        "char" => Type::Char,
        "byte" => Type::Byte,
        "be16" => Type::Number { bytes: [2; 4], signed: false, big_endian: true, pointer: false },
        "be32" => Type::Number { bytes: [4; 4], signed: false, big_endian: true, pointer: false },
        "be64" => Type::Number { bytes: [8; 4], signed: false, big_endian: true, pointer: false },
        "sbe32" => Type::Number { bytes: [4; 4], signed: true, big_endian: true, pointer: false },
        _ => match kind::number(word) {
            Some((bytes, signed)) => number([bytes; 4], signed, false),
            None if is_name(word) => Type::Struct(word.to_string()),
            None => return Err(format!("`{word}` is not a type")),
        },
    })
}
