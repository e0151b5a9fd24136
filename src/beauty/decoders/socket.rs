//! Decodes socket addresses. The first two bytes, the address family, determine the struct.

use super::super::memory::{Memory, MemoryReader};
use super::super::row::Struct;
use super::super::structure::Members;
use super::super::tables::{constants, structs};
use super::super::value::{StructValue, Text, Value};
use std::borrow::Cow;
use std::net::Ipv6Addr;

const FAMILY_BYTES: usize = 2;

/// Decodes a struct sockaddr (man 2 bind): by the row of its family, or as bytes if the family has no row.
pub fn sockaddr<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let Some(family) = memory.number(0, FAMILY_BYTES, false) else {
        return record(memory, Vec::new());
    };
    match struct_of_family(family) {
        // The kernel reads no more than the struct of the family, but programs often pass the size of a larger struct.
        Some(of) => reader.structure(of, memory.first(of.sizes[reader.abi() as usize] as usize)),
        None => unknown(reader, family, memory),
    }
}

fn struct_of_family(family: u64) -> Option<&'static Struct> {
    Some(match family {
        1 => &structs::SOCKADDR_UN,
        2 => &structs::SOCKADDR_IN,
        10 => &structs::SOCKADDR_IN6,
        16 => &structs::SOCKADDR_NL,
        17 => &structs::SOCKADDR_LL,
        40 => &structs::SOCKADDR_VM,
        _ => return None,
    })
}

fn unknown<'a>(reader: &mut MemoryReader<'a>, family: u64, memory: Memory<'a>) -> Value<'a> {
    let mut members = vec![("sa_family", Value::Symbol { table: &constants::SOCKET_FAMILY, value: family })];
    let rest = memory.wanted.saturating_sub(FAMILY_BYTES as u64) as usize;
    if let Some(data) = memory.part(FAMILY_BYTES, rest).filter(|_| rest > 0) {
        members.push(("sa_data", reader.text(data, memory.bytes.len(), false)));
    }
    record(memory, members)
}

/// Returns the value of an address whose family no row describes.
fn record<'a>(memory: Memory<'a>, members: Members<'a>) -> Value<'a> {
    Value::Struct(StructValue { name: "sockaddr", address: memory.address, members, more: memory.is_cut() })
}

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
