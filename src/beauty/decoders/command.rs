//! Decodes the data of ioctl commands that no row describes, of which only direction and size are known.

use super::super::memory::{Memory, MemoryReader};
use super::super::value::Value;

/// Decodes the data as bytes.
pub fn ioctl_data<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let limit = reader.context.string_limit;
    reader.text(memory, limit, false)
}
