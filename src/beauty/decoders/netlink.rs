//! Decodes netlink messages, and the attributes in them that are no plain structs.

use super::super::memory::{Memory, MemoryReader};
use super::super::structure::Members;
use super::super::tables::{sets, structs};
use super::super::value::{ArrayValue, BytesForm, FieldBytes, StructValue, Value};
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

/// Decodes an address whose length says whether it is an IPv4 or an IPv6 address. Other lengths are bytes.
pub fn net_address<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    if let Ok(bytes) = <[u8; 4]>::try_from(memory.bytes) {
        return Value::Ip(Ipv4Addr::from(bytes).into());
    }
    match <[u8; 16]>::try_from(memory.bytes) {
        Ok(bytes) => Value::Ip(Ipv6Addr::from(bytes).into()),
        Err(_) => reader.text(memory, reader.context.string_limit, false),
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
    let head = structs::RTNEXTHOP.sizes[reader.abi() as usize] as usize;
    let most = if reader.context.is_brief { structs::RTNEXTHOP.brief.elements as usize } else { reader.elements_max() };
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(length) = memory.number(at, 2, false).map(|length| length as usize).filter(|length| *length >= head) {
        let Some(hop) = memory.part(at, length).filter(|_| items.len() < most && reader.spend_value()) else { break };
        let (mut members, mut more): (Members<'a>, bool) = reader.members(&structs::RTNEXTHOP, hop.first(head));
        match hop.part(head, length - head) {
            Some(attributes) if length > head => members.push(("attributes", reader.attributes(Some(&sets::ROUTE), attributes, 1))),
            _ => more |= length > head,
        }
        items.push(Value::Struct(StructValue { name: "rtnexthop", address: hop.address, members, more }));
        at += length.next_multiple_of(super::super::attributes::ALIGNMENT);
    }
    Value::Array(ArrayValue { address: memory.address, items, more: (at as u64) < memory.wanted })
}
