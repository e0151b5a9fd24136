//! Decodes netlink messages (man 7 netlink): consecutive messages, each with a header (`struct nlmsghdr`), a struct
//! that the type determines, and attributes.
//!
//! The protocol of the socket and the type of the message say what follows the header. Requests have `NLM_F_REQUEST`;
//! replies may begin with another struct. Like the decoder of attributes, this one accepts any bytes.

use super::attribute::{AttributeSet, NetlinkMessage, NetlinkProtocol};
use super::attributes::set_after;
use super::errno;
use super::memory::{Memory, MemoryReader};
use super::row::{ConstantTable, MemoryType, Struct, StructLayout};
use super::sized_records::NETLINK_MESSAGE;
use super::structure::chosen;
use super::tables::{GENERIC_FAMILIES, NETFILTER_SUBSYSTEMS, NETLINK_PROTOCOLS, constants, sets, structs};
use super::value::{ArrayValue, StructValue, Value};
use crate::event::{Call, FdPlace, File, PieceState, SocketAddresses};
use crate::kernel::print_fmt::{NamedNumber, NumberName};

/// `NLMSG_HDRLEN`
const HEAD: usize = 16;
/// `NLMSG_ALIGNTO`
const ALIGNMENT: usize = 4;
/// `NLMSG_ERROR`, `NLMSG_DONE` and `NLMSG_MIN_TYPE`: smaller types have the same meaning in every protocol.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const FIRST_OF_PROTOCOL: u16 = 0x10;
/// `NLM_F_REQUEST`, `NLM_F_CAPPED` and `NLM_F_ACK_TLVS`
const REQUEST: u16 = 1;
const CAPPED: u16 = 0x100;
const HAS_ATTRIBUTES: u16 = 0x200;
/// `NETLINK_NETFILTER` and `NETLINK_GENERIC`
const NETFILTER: u32 = 12;
const GENERIC: u32 = 16;
/// `GENL_ID_CTRL`, the number of the only family that has always the same one, and its name.
const CONTROLLER: u16 = 0x10;
const CONTROLLER_NAME: &str = "nlctrl";
/// The depth of messages inside of error messages. The kernel's have one.
const DEPTH_MAX: u32 = 2;

/// The type and the flags in the header of a message.
#[derive(Clone, Copy)]
struct Head {
    kind: u16,
    flags: u16,
}

impl Head {
    /// Returns the rows of the subsystem of netfilter whose message this is.
    fn subsystem(self, protocol: &'static NetlinkProtocol) -> Option<&'static NetlinkProtocol> {
        let of_type = |subsystem: &&NetlinkProtocol| subsystem.number == u32::from(self.kind >> 8);
        NETFILTER_SUBSYSTEMS.iter().find(of_type).filter(|_| protocol.number == NETFILTER)
    }

    /// Returns the row of the message.
    fn row(self, protocol: &'static NetlinkProtocol) -> Option<&'static NetlinkMessage> {
        let is_request = self.flags & REQUEST != 0;
        let of_subsystem = self.subsystem(protocol).and_then(|subsystem| subsystem.message(self.kind & 0xff, is_request));
        of_subsystem.or_else(|| protocol.message(self.kind, is_request))
    }
}

/// Returns the protocol of the netlink socket in the argument of a call with this index, if it is one and if its
/// messages have rows.
pub fn protocol(call: &Call, argument: u8) -> Option<&'static NetlinkProtocol> {
    let Some(File::Socket(socket)) = call.file(FdPlace::Arg(argument)) else { return None };
    let SocketAddresses::Netlink { protocol, .. } = socket.ends else { return None };
    NETLINK_PROTOCOLS.iter().find(|known| known.number == protocol)
}

impl<'a> MemoryReader<'a> {
    /// Decodes the messages in a buffer that was written to a socket of the protocol or read from it.
    pub(super) fn netlink(&mut self, protocol: &'static NetlinkProtocol, memory: Memory<'a>) -> Value<'a> {
        if protocol.types.is_none() {
            return self.lines_of_text(memory);
        }
        self.netlink_part(protocol, memory)
    }

    /// Decodes consecutive messages.
    fn messages(&mut self, protocol: &'static NetlinkProtocol, memory: Memory<'a>) -> Value<'a> {
        self.records(&NETLINK_MESSAGE, memory, |reader, message| Some(reader.netlink_message(protocol, message, 0)))
    }

    /// Decodes strings that NUL separates (a uevent of the kernel).
    fn lines_of_text(&mut self, memory: Memory<'a>) -> Value<'a> {
        let mut items = Vec::new();
        let mut at = 0;
        while at < memory.bytes.len() && items.len() < self.elements_max() && self.spend_value() {
            let length = memchr::memchr(0, &memory.bytes[at..]);
            let end = length.map_or(memory.bytes.len(), |length| at + length + 1);
            let Some(text) = memory.part(at, end - at) else { break };
            let state = if length.is_none() && memory.is_cut() { PieceState::Cut } else { text.state };
            items.push(self.text(Memory { state, ..text }, usize::MAX, true));
            at = end;
        }
        Value::Array(ArrayValue { address: memory.address, items, more: at < memory.bytes.len() || memory.is_cut() })
    }

    /// Decodes a message. `depth` is the number of messages around it.
    fn netlink_message(&mut self, protocol: &'static NetlinkProtocol, memory: Memory<'a>, depth: u32) -> Value<'a> {
        let (mut members, mut more) = self.members(&structs::NLMSGHDR, memory.first(HEAD));
        if let (Some(kind), Some(flags)) = (memory.number(4, 2, false), memory.number(6, 2, false)) {
            let head = Head { kind: kind as u16, flags: flags as u16 };
            let row = head.row(protocol).filter(|_| head.kind >= FIRST_OF_PROTOCOL);
            for (name, value) in &mut members {
                match *name {
                    "nlmsg_type" => *value = self.message_type(protocol, head),
                    "nlmsg_flags" => *value = Value::Flags { table: flags_of(row, head.kind), bits: flags },
                    _ => {}
                }
            }
            // Messages inside of this one may be of another family.
            let around = std::mem::replace(&mut self.family, memory.bytes.get(HEAD..HEAD + 1));
            if memory.wanted > HEAD as u64 {
                let length = usize::try_from(memory.wanted).unwrap_or(usize::MAX) - HEAD;
                match memory.part(HEAD, length).filter(|_| self.spend_value() && self.spend_value()) {
                    Some(payload) => more |= self.payload(protocol, head, payload, depth, &mut members),
                    None => more = true,
                }
            }
            self.family = around;
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
        let (value, attributes) = match (head.kind, head.row(protocol)) {
            (ERROR, _) => self.error(protocol, head, memory, depth),
            (DONE, _) => {
                let after = memory.part(4, usize::MAX).filter(|_| head.flags & HAS_ATTRIBUTES != 0);
                let error = error_number(memory).unwrap_or_else(|| self.text(memory, self.context.string_limit, false));
                (error, after.map(|after| (Some(&sets::NLMSGERR), after)))
            }
            (FIRST_OF_PROTOCOL.., Some(_)) if protocol.number == GENERIC => self.of_generic(head, memory),
            (FIRST_OF_PROTOCOL.., Some(row)) => self.of_row(row, head, memory),
            _ => (self.text(memory, self.context.string_limit, false), None),
        };
        members.push(("payload", value));
        let is_missing = attributes.is_none() && memory.is_cut();
        if let Some((set, memory)) = attributes {
            members.push(("attributes", self.attributes(set, memory)));
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
        let set = row.set.or_else(|| set_after(of));
        if set.is_none() && is_open(of, abi) {
            return (self.structure(of, memory), None);
        }
        let value = self.structure(of, memory.first(size));
        (value, memory.part(size.next_multiple_of(ALIGNMENT), usize::MAX).map(|after| (set, after)))
    }

    /// Returns the type of a message. That of netfilter's messages is the subsystem and the message.
    fn message_type(&self, protocol: &'static NetlinkProtocol, head: Head) -> Value<'a> {
        let value = head.kind.into();
        if head.kind < FIRST_OF_PROTOCOL {
            return Value::Symbol { table: &constants::NETLINK_CONTROL_MESSAGE, value };
        }
        if protocol.number == NETFILTER && head.kind >> 8 != 0 {
            let message = u64::from(head.kind & 0xff);
            let types = head.subsystem(protocol).and_then(|subsystem| subsystem.types);
            let members = vec![
                ("subsystem", Value::Symbol { table: &constants::NETFILTER_SUBSYSTEM, value: u64::from(head.kind >> 8) }),
                ("message", types.map_or(Value::Uint(message), |table| Value::Symbol { table, value: message })),
            ];
            return Value::Packed { name: "netfilter_message", raw: value, members };
        }
        match self.context.families.and_then(|families| families.name(head.kind)) {
            Some(name) if protocol.number == GENERIC && head.kind != CONTROLLER => {
                let names = vec![NumberName { separator: String::new(), name: name.to_owned() }];
                Value::Named(NamedNumber { number: value, names, rest: 0 })
            }
            _ => Value::Symbol { table: protocol.types.unwrap_or(&constants::NETLINK_CONTROL_MESSAGE), value },
        }
    }

    /// Decodes a message of a generic family: its header with the command (`struct genlmsghdr`), a header of the
    /// family, and attributes. The family of most numbers is only known if the kernel told it before (see
    /// [`Families`]).
    fn of_generic(&mut self, head: Head, memory: Memory<'a>) -> (Value<'a>, Following<'a>) {
        let bytes = structs::GENLMSGHDR.sizes[self.abi() as usize] as usize;
        let (mut members, more) = self.members(&structs::GENLMSGHDR, memory.first(bytes));
        let is_request = head.flags & REQUEST != 0;
        let name =
            if head.kind == CONTROLLER { Some(CONTROLLER_NAME) } else { self.context.families.and_then(|known| known.name(head.kind)) };
        let family = name.and_then(|name| GENERIC_FAMILIES.iter().find(|family| family.name == name));
        let after = memory.part(bytes, usize::MAX);
        let (Some(family), Some(command)) = (family, memory.number(0, 1, false)) else {
            let value = Value::Struct(StructValue { name: structs::GENLMSGHDR.name, address: memory.address, members, more });
            return (value, after.map(|after| (None, after)));
        };
        if let Some(table) = family.types(is_request) {
            let named = members.iter_mut().filter(|(name, _)| *name == "cmd");
            named.for_each(|(_, value)| *value = Value::Symbol { table, value: command });
        }
        let row = family.message(command as u16, is_request);
        let header = row.and_then(|row| if is_request { row.request } else { row.reply });
        let size = header.map_or(0, |of| (of.sizes[self.abi() as usize] as usize).next_multiple_of(ALIGNMENT));
        if let (Some(of), Some(after)) = (header, after) {
            members.push(("header", self.structure(of, after.first(size))));
        }
        let value = Value::Struct(StructValue { name: structs::GENLMSGHDR.name, address: memory.address, members, more });
        let set = row.and_then(|row| row.set);
        (value, memory.part(bytes + size, usize::MAX).map(|after| (set, after)))
    }

    /// Decodes an error message (`struct nlmsgerr`): the error, and the message that caused it. Of that message, only
    /// the header is there if the error is 0 or if the flags say so. The attributes of an extended acknowledgement
    /// follow.
    fn error(&mut self, protocol: &'static NetlinkProtocol, head: Head, memory: Memory<'a>, depth: u32) -> (Value<'a>, Following<'a>) {
        const NUMBER: usize = 4;
        let mut members = Vec::new();
        members.extend(error_number(memory).map(|error| ("error", error)));
        let named = memory.part(NUMBER, usize::MAX).and_then(|cause| NETLINK_MESSAGE.records(cause, self.abi()).next());
        let named = named.map_or(HEAD, |cause| usize::try_from(cause.wanted).unwrap_or(usize::MAX));
        let length = if head.flags & CAPPED != 0 { HEAD } else { named };
        if let Some(cause) = memory.part(NUMBER, length).filter(|_| depth < DEPTH_MAX && self.spend_value()) {
            members.push(("msg", self.netlink_message(protocol, cause, depth + 1)));
        }
        let more = members.len() < 2;
        let after = NUMBER.saturating_add(length.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX));
        let attributes = memory.part(after, usize::MAX).filter(|_| head.flags & HAS_ATTRIBUTES != 0);
        let value = Value::Struct(StructValue { name: "nlmsgerr", address: memory.address, members, more });
        (value, attributes.map(|attributes| (Some(&sets::NLMSGERR), attributes)))
    }
}

/// The attributes that follow a struct, and their set.
type Following<'a> = Option<(Option<&'static AttributeSet>, Memory<'a>)>;

fn flags_of(row: Option<&'static NetlinkMessage>, kind: u16) -> &'static ConstantTable {
    match kind {
        ERROR | DONE => &constants::NETLINK_ACK_FLAGS,
        _ => row.and_then(|row| row.flags).unwrap_or(&constants::NETLINK_FLAGS),
    }
}

/// Returns whether a struct ends with as many bytes as the message has.
fn is_open(of: &'static Struct, abi: usize) -> bool {
    let StructLayout::Members(layouts) = &of.layout else { return false };
    matches!(layouts[abi].last().map(|member| &member.memory_type), Some(MemoryType::Bytes(0)))
}

/// Decodes the number at the beginning of the memory as the negative of an error, if it is one.
fn error_number(memory: Memory<'_>) -> Option<Value<'static>> {
    let number = memory.number(0, 4, true)? as i64;
    let error = i32::try_from(-number).ok().filter(|error| errno::name(*error).is_some());
    Some(error.map_or(Value::Int(number), Value::Errno))
}

mod families;
mod parts;
#[cfg(test)]
mod tests;

pub use families::Families;
pub use parts::{Joined, Parts};
