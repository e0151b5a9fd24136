//! Socket addresses: which struct it is, its first two bytes tell.

use super::super::memory::{Memory, Reader};
use super::super::row::Struct;
use super::super::structure::Members;
use super::super::tables::{constants, structs};
use super::super::value::{Record, Text, Value};
use std::borrow::Cow;
use std::net::Ipv6Addr;

const FAMILY_BYTES: usize = 2;

/// A struct sockaddr (man 2 bind): of the families in the rows as these say, of others the bytes.
pub fn sockaddr<'a>(reader: &mut Reader<'a>, memory: Memory<'a>) -> Value<'a> {
    let Some(family) = memory.number(0, FAMILY_BYTES, false) else {
        return record(memory, Vec::new());
    };
    match of_family(family) {
        // The kernel looks at no more than its struct, but programs like to give the size of a larger one.
        Some(of) => reader.structure(of, memory.first(of.sizes[reader.abi() as usize] as usize)),
        None => unknown(reader, family, memory),
    }
}

fn of_family(family: u64) -> Option<&'static Struct> {
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

fn unknown<'a>(reader: &mut Reader<'a>, family: u64, memory: Memory<'a>) -> Value<'a> {
    let mut members = vec![("sa_family", Value::Symbol { table: &constants::SOCKET_FAMILY, value: family })];
    let rest = memory.wanted.saturating_sub(FAMILY_BYTES as u64) as usize;
    if let Some(data) = memory.part(FAMILY_BYTES, rest).filter(|_| rest > 0) {
        members.push(("sa_data", reader.text(data, memory.bytes.len(), false)));
    }
    record(memory, members)
}

/// An address of a family that no row describes.
fn record<'a>(memory: Memory<'a>, members: Members<'a>) -> Value<'a> {
    Value::Struct(Record { name: "sockaddr", address: memory.address, members, more: memory.is_cut() })
}

/// `sun_path` (man 7 unix): a path, or with a NUL before it an abstract name that is all the bytes there are.
pub fn sun_path<'a>(reader: &mut Reader<'a>, memory: Memory<'a>) -> Value<'a> {
    reader.text(memory, usize::MAX, memory.bytes.first() != Some(&0))
}

/// An IPv6 address.
pub fn in6_addr<'a>(_: &mut Reader<'a>, memory: Memory<'a>) -> Value<'a> {
    match <[u8; 16]>::try_from(memory.bytes) {
        Ok(bytes) => Value::Ip(Ipv6Addr::from(bytes).into()),
        Err(_) => Value::Str(Text { bytes: Cow::Borrowed(memory.bytes), address: memory.address, cut: true, ..Text::default() }),
    }
}
