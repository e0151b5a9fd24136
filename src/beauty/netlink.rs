//! Decodes netlink messages (man 7 netlink): consecutive messages, each with a header (`struct nlmsghdr`), a struct
//! that the type determines, and attributes.
//!
//! The protocol of the socket and the type of the message say what follows the header. Requests have `NLM_F_REQUEST`;
//! replies may begin with another struct. Like the decoder of attributes, this one accepts any bytes.

use super::attribute::{AttributeSet, NetlinkMessage, NetlinkProtocol};
use super::attributes::ALIGNMENT;
use super::errno;
use super::memory::{Memory, MemoryReader};
use super::row::{ConstantTable, Struct};
use super::structure::chosen;
use super::tables::{ATTRIBUTES_AFTER, NETLINK_PROTOCOLS, constants, sets, structs};
use super::value::{ArrayValue, StructValue, Value};
use crate::event::{Call, FdPlace, File, SocketAddresses};
use crate::kernel::print_fmt::{NamedNumber, NumberName};

/// `NLMSG_HDRLEN`
const HEAD: usize = 16;
/// `NLMSG_ERROR`, `NLMSG_DONE` and `NLMSG_MIN_TYPE`: smaller types have the same meaning in every protocol.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const FIRST_OF_PROTOCOL: u16 = 0x10;
/// `NLM_F_REQUEST`, `NLM_F_CAPPED` and `NLM_F_ACK_TLVS`
const REQUEST: u16 = 1;
const CAPPED: u16 = 0x100;
const HAS_ATTRIBUTES: u16 = 0x200;
/// The depth of messages inside of error messages. The kernel's have one.
const DEPTH_MAX: u32 = 2;

/// The type and the flags in the header of a message.
#[derive(Clone, Copy)]
struct Head {
    kind: u16,
    flags: u16,
}

/// Returns the protocol of the netlink socket in the argument of a call with this index, if it is one and if its
/// messages have rows.
pub fn protocol(call: &Call, argument: u8) -> Option<&'static NetlinkProtocol> {
    let Some(File::Socket(socket)) = call.file(FdPlace::Arg(argument)) else { return None };
    let SocketAddresses::Netlink { protocol, .. } = socket.ends else { return None };
    NETLINK_PROTOCOLS.iter().find(|known| known.number == protocol)
}

impl<'a> MemoryReader<'a> {
    /// Decodes the messages in a buffer that was written to a socket of the protocol or read from it. Bytes that do not
    /// begin with a header stay bytes.
    pub(super) fn netlink(&mut self, protocol: &'static NetlinkProtocol, memory: Memory<'a>) -> Value<'a> {
        if protocol.types.is_none() {
            return self.lines_of_text(memory);
        }
        let most = if self.context.is_brief { structs::NLMSGHDR.brief.elements as usize } else { self.elements_max() };
        let mut items = Vec::new();
        let mut at = 0;
        while let Some(length) = memory.record_length(at, 4, HEAD) {
            let Some(message) = memory.part(at, length).filter(|_| items.len() < most && self.spend_value()) else { break };
            items.push(self.netlink_message(protocol, message, 0));
            at = at.saturating_add(length.next_multiple_of(ALIGNMENT));
        }
        match items.is_empty() {
            true => self.text(memory, self.context.string_limit, false),
            false => Value::Array(ArrayValue { address: memory.address, items, more: (at as u64) < memory.wanted }),
        }
    }

    /// Decodes strings that NUL separates (a uevent of the kernel).
    fn lines_of_text(&mut self, memory: Memory<'a>) -> Value<'a> {
        let mut items = Vec::new();
        let mut at = 0;
        while at < memory.bytes.len() && items.len() < self.elements_max() && self.spend_value() {
            let end = memchr::memchr(0, &memory.bytes[at..]).map_or(memory.bytes.len(), |length| at + length + 1);
            let Some(text) = memory.part(at, end - at) else { break };
            items.push(self.text(text, usize::MAX, true));
            at = end;
        }
        Value::Array(ArrayValue { address: memory.address, items, more: at < memory.bytes.len() || memory.is_cut() })
    }

    /// Decodes a message. `depth` is the number of messages around it.
    fn netlink_message(&mut self, protocol: &'static NetlinkProtocol, memory: Memory<'a>, depth: u32) -> Value<'a> {
        let (mut members, mut more) = self.members(&structs::NLMSGHDR, memory.first(HEAD));
        if let (Some(kind), Some(flags)) = (memory.number(4, 2, false), memory.number(6, 2, false)) {
            let head = Head { kind: kind as u16, flags: flags as u16 };
            let row = protocol.message(head.kind).filter(|_| head.kind >= FIRST_OF_PROTOCOL);
            for (name, value) in &mut members {
                match *name {
                    "nlmsg_type" => *value = Value::Symbol { table: types(protocol, head.kind), value: kind },
                    "nlmsg_flags" => *value = Value::Flags { table: flags_of(row, head.kind), bits: flags },
                    _ => {}
                }
            }
            if memory.wanted > HEAD as u64 {
                let length = usize::try_from(memory.wanted).unwrap_or(usize::MAX) - HEAD;
                match memory.part(HEAD, length).filter(|_| self.spend_value() && self.spend_value()) {
                    Some(payload) => more |= self.payload(protocol, head, payload, depth, &mut members),
                    None => more = true,
                }
            }
        }
        Value::Struct(StructValue { name: "nlmsghdr", address: memory.address, members, more })
    }

    /// Adds what follows the header: `payload`, and `attributes` if there are any. Returns whether attributes may be
    /// missing because not all of the message was copied.
    fn payload(
        &mut self,
        protocol: &'static NetlinkProtocol,
        head: Head,
        memory: Memory<'a>,
        depth: u32,
        members: &mut Vec<(&'static str, Value<'a>)>,
    ) -> bool {
        let (value, attributes) = match (head.kind, protocol.message(head.kind)) {
            (ERROR, _) => self.error(protocol, head, memory, depth),
            (DONE, _) => {
                let after = memory.part(4, usize::MAX).filter(|_| head.flags & HAS_ATTRIBUTES != 0);
                (error_number(memory).unwrap_or(Value::Unread(memory.address)), after.map(|after| (Some(&sets::NLMSGERR), after)))
            }
            (FIRST_OF_PROTOCOL.., Some(row)) => self.of_row(row, head, memory),
            _ => (self.text(memory, self.context.string_limit, false), None),
        };
        members.push(("payload", value));
        let is_missing = attributes.is_none() && memory.is_cut();
        if let Some((set, memory)) = attributes {
            members.push(("attributes", self.attributes(set, memory, 0)));
        }
        is_missing
    }

    /// Decodes the struct of a message, and returns the attributes after it with their set.
    fn of_row(&mut self, row: &'static NetlinkMessage, head: Head, memory: Memory<'a>) -> (Value<'a>, Following<'a>) {
        let of = if head.flags & REQUEST != 0 { row.request } else { row.reply };
        let Some(of) = of else { return (self.text(memory, self.context.string_limit, false), None) };
        let abi = self.abi() as usize;
        let of = chosen(of, memory, abi).unwrap_or(of);
        let size = of.sizes[abi] as usize;
        let value = self.structure(of, memory.first(size));
        let set = row.set.or_else(|| set_after(of));
        (value, memory.part(size.next_multiple_of(ALIGNMENT), usize::MAX).map(|after| (set, after)))
    }

    /// Decodes an error message (`struct nlmsgerr`): the error, and the message that caused it. Of that message, only
    /// the header is there if the error is 0 or if the flags say so. The attributes of an extended acknowledgement
    /// follow.
    fn error(&mut self, protocol: &'static NetlinkProtocol, head: Head, memory: Memory<'a>, depth: u32) -> (Value<'a>, Following<'a>) {
        const NUMBER: usize = 4;
        let mut members = Vec::new();
        members.extend(error_number(memory).map(|error| ("error", error)));
        let named = memory.record_length(NUMBER, 4, HEAD).unwrap_or(HEAD);
        let length = if head.flags & CAPPED != 0 { HEAD } else { named };
        if let Some(cause) = memory.part(NUMBER, length).filter(|_| depth < DEPTH_MAX && self.spend_value()) {
            members.push(("msg", self.netlink_message(protocol, cause, depth + 1)));
        }
        let more = members.len() < 2;
        let after = NUMBER.saturating_add(length.next_multiple_of(ALIGNMENT));
        let attributes = memory.part(after, usize::MAX).filter(|_| head.flags & HAS_ATTRIBUTES != 0);
        let value = Value::Struct(StructValue { name: "nlmsgerr", address: memory.address, members, more });
        (value, attributes.map(|attributes| (Some(&sets::NLMSGERR), attributes)))
    }
}

/// The attributes that follow a struct, and their set.
type Following<'a> = Option<(Option<&'static AttributeSet>, Memory<'a>)>;

fn types(protocol: &'static NetlinkProtocol, kind: u16) -> &'static ConstantTable {
    protocol.types.filter(|_| kind >= FIRST_OF_PROTOCOL).unwrap_or(&constants::NETLINK_CONTROL_MESSAGE)
}

fn flags_of(row: Option<&'static NetlinkMessage>, kind: u16) -> &'static ConstantTable {
    match kind {
        ERROR | DONE => &constants::NETLINK_ACK_FLAGS,
        _ => row.and_then(|row| row.flags).unwrap_or(&constants::NETLINK_FLAGS),
    }
}

fn set_after(of: &'static Struct) -> Option<&'static AttributeSet> {
    ATTRIBUTES_AFTER.iter().find(|(known, _)| *known == of).map(|(_, set)| *set)
}

/// Decodes the number at the beginning of the memory as the negative of an error, if it is one.
fn error_number(memory: Memory<'_>) -> Option<Value<'static>> {
    let number = memory.number(0, 4, true)? as i64;
    let name = i32::try_from(-number).ok().and_then(errno::name);
    Some(match name {
        Some(name) => {
            let name = NumberName { separator: String::new(), name: format!("-{name}") };
            Value::Named(NamedNumber { number: number as u64, names: vec![name], rest: 0 })
        }
        None => Value::Int(number),
    })
}

#[cfg(test)]
mod tests;
