//! Decodes netlink messages, and the attributes in them that are no plain structs.

use super::super::memory::{Memory, MemoryReader};
use super::super::sized_records::NEXT_HOP;
use super::super::tables::sets;
use super::super::value::{BytesForm, FieldBytes, StructValue, Value};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Decodes the messages of a netlink socket, whose protocol the reader knows.
pub fn netlink_messages<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let limit = reader.context.string_limit;
    match reader.protocol {
        Some(protocol) => reader.netlink(protocol, memory),
        None => reader.text(memory, limit, false),
    }
}

/// Decodes one message.
pub fn netlink_message<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    netlink_messages(reader, memory)
}

/// Decodes an address whose length says whether it is an IPv4 or an IPv6 address. Other lengths are bytes, and so is an
/// address that was not copied completely.
pub fn net_address<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    match *memory.bytes {
        [a, b, c, d] if !memory.is_cut() => Value::Ip(Ipv4Addr::new(a, b, c, d).into()),
        _ => match <[u8; 16]>::try_from(memory.bytes) {
            Ok(bytes) if !memory.is_cut() => Value::Ip(Ipv6Addr::from(bytes).into()),
            _ => reader.text(memory, reader.context.string_limit, false),
        },
    }
}

/// Decodes the address of a network interface.
pub fn interface_address<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    /// `MAX_ADDR_LEN` (include/linux/netdevice.h)
    const BYTES_MAX: usize = 32;
    let length = reader.spend(memory.bytes.len().min(BYTES_MAX));
    let more = length < memory.bytes.len() || memory.is_cut();
    Value::Bytes(FieldBytes { bytes: memory.bytes[..length].to_vec(), form: BytesForm::Mac, more })
}

/// Decodes the next hops of a route (`RTA_MULTIPATH`): structs, each with its length and followed by attributes.
pub fn nexthops<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let head = NEXT_HOP.bytes(reader.abi());
    reader.records(&NEXT_HOP, memory, |reader, hop| {
        let (mut members, mut more) = reader.members(NEXT_HOP.of, hop.first(head));
        match hop.part(head, usize::MAX) {
            Some(attributes) => members.push(("attributes", reader.attributes(Some(&sets::ROUTE), attributes))),
            None => more |= hop.wanted > head as u64,
        }
        Some(Value::Struct(StructValue { name: NEXT_HOP.of.name, address: hop.address, members, more }))
    })
}
