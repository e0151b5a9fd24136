//! Decodes the parts of socket addresses that are not numbers.

use super::super::memory::{Memory, MemoryReader};
use super::super::value::{Text, Value};
use std::borrow::Cow;
use std::net::Ipv6Addr;

/// Decodes `sun_path` (man 7 unix): a path, or, if the first byte is NUL, an abstract name of all bytes.
pub fn sun_path<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    reader.text(memory, usize::MAX, memory.bytes.first() != Some(&0))
}

/// Decodes an IPv6 address.
pub fn in6_addr<'a>(_: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    match <[u8; 16]>::try_from(memory.bytes) {
        Ok(bytes) => Value::Ip(Ipv6Addr::from(bytes).into()),
        Err(_) => Value::Str(Text { bytes: Cow::Borrowed(memory.bytes), address: memory.address, cut: true, ..Text::default() }),
    }
}
