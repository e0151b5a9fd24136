//! What goes with an ioctl's command of which no row says more than direction and size: bytes.

use super::super::memory::{Memory, Reader};
use super::super::value::Value;

/// The bytes that a command names.
pub fn ioctl_data<'a>(reader: &mut Reader<'a>, memory: Memory<'a>) -> Value<'a> {
    let limit = reader.context.string_limit;
    reader.text(memory, limit, false)
}
