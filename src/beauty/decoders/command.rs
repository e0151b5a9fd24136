//! Decodes the data of ioctl commands of which only the direction and the size are known, or that are text.

use super::super::memory::{Memory, MemoryReader};
use super::super::value::Value;

/// Decodes the data as bytes.
pub fn ioctl_data<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let limit = reader.context.string_limit;
    reader.text(memory, limit, false)
}

/// Decodes a string that ends with NUL.
pub fn ioctl_text<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let limit = reader.context.string_limit;
    reader.text(memory, limit, true)
}
