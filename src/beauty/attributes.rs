//! Decodes netlink attributes (linux/netlink.h, `struct nlattr`): consecutive values, each with its length and type.
//!
//! The bytes are those of the traced process or of its peer and may be anything. [`super::sized_records`] finds the
//! attributes in them.

use super::attribute::{AttributeChoice, AttributeContent, AttributeSet};
use super::memory::{Memory, MemoryReader};
use super::row::{MemoryType, Struct, StructLayout};
use super::sized_records::ATTRIBUTE;
use super::tables::{ATTRIBUTES_AFTER, constants};
use super::value::{StructValue, Value};
use crate::event::{Abi, PieceState};
use smallvec::SmallVec;
use std::cell::RefCell;

/// `sizeof(struct nlattr)`
const HEAD: usize = 4;
/// `NLA_ALIGNTO`
const ALIGNMENT: usize = 4;
/// `NLA_F_NESTED`, `NLA_F_NET_BYTEORDER` and `NLA_TYPE_MASK` (linux/netlink.h)
const NESTED: u16 = 1 << 15;
const BIG_ENDIAN: u16 = 1 << 14;
const TYPE_MASK: u16 = !(NESTED | BIG_ENDIAN);

/// What an attribute contains, by its row and its type.
enum Content {
    Row(&'static AttributeContent),
    /// Attributes without names.
    Nested,
    Bytes,
}

/// An attribute that decides what attributes beside it contain. It is searched at most once.
struct Decider<'a> {
    number: u32,
    /// `None` if it is not there.
    content: Option<&'a [u8]>,
}

/// Returns `nla_type` of an attribute, if it was copied.
fn kind_of(attribute: Memory<'_>) -> Option<u16> {
    attribute.number(2, 2, false).map(|kind| kind as u16)
}

/// Returns the content of the first attribute with a number.
fn content_of(memory: Memory<'_>, abi: Abi, number: u32) -> Option<&[u8]> {
    let is_this = |attribute: &Memory| kind_of(*attribute).is_some_and(|kind| u32::from(kind & TYPE_MASK) == number);
    ATTRIBUTE.records(memory, abi).find(is_this)?.bytes.get(HEAD..)
}

impl<'a> MemoryReader<'a> {
    /// Decodes consecutive attributes. Without a set, their types are numbers.
    pub(super) fn attributes(&mut self, set: Option<&'static AttributeSet>, memory: Memory<'a>) -> Value<'a> {
        let (abi, family) = (self.abi(), self.family);
        let known: RefCell<SmallVec<[Decider<'a>; 2]>> = RefCell::default();
        let beside = |by: u32| {
            if by == AttributeChoice::FAMILY {
                return family;
            }
            let mut known = known.borrow_mut();
            let found = known.iter().find(|decider| decider.number == by).map(|decider| decider.content);
            found.unwrap_or_else(|| {
                let content = content_of(memory, abi, by);
                known.push(Decider { number: by, content });
                content
            })
        };
        self.each_attribute(memory, |kind| {
            let Some(set) = set else {
                let content = if kind & NESTED != 0 { Content::Nested } else { Content::Bytes };
                return (numbered(kind), content);
            };
            let number = u32::from(kind & TYPE_MASK);
            let name = match kind & !TYPE_MASK {
                0 => Value::Symbol { table: set.table, value: number.into() },
                _ => Value::Flags { table: set.types, bits: kind.into() },
            };
            let content = match set.content(number, beside) {
                Some(of) => Content::Row(of),
                None if kind & NESTED != 0 => Content::Nested,
                None => Content::Bytes,
            };
            (name, content)
        })
    }

    /// Decodes consecutive attributes. For the type of each, the function returns what is shown of the type, and what
    /// the attribute contains.
    fn each_attribute(&mut self, memory: Memory<'a>, of: impl Fn(u16) -> (Value<'a>, Content)) -> Value<'a> {
        self.records(&ATTRIBUTE, memory, |reader, attribute| {
            let kind = kind_of(attribute).filter(|_| reader.spend_value())?;
            let (name, content) = of(kind);
            let mut members = Vec::with_capacity(3);
            if !reader.context.is_brief {
                members.push(("nla_len", Value::Uint(attribute.wanted)));
            }
            members.push(("nla_type", name));
            let payload = attribute.part(HEAD, usize::MAX);
            members.extend(payload.map(|payload| ("data", reader.attribute_data(content, kind, payload))));
            let more = attribute.wanted > HEAD as u64 && payload.is_none();
            Some(Value::Struct(StructValue { name: ATTRIBUTE.of.name, address: attribute.address, members, more }))
        })
    }

    fn attribute_data(&mut self, content: Content, kind: u16, payload: Memory<'a>) -> Value<'a> {
        match content {
            Content::Row(AttributeContent::Memory(of)) => match of {
                MemoryType::Struct(before) if set_after(before).is_some() => self.struct_with_attributes(before, payload),
                _ => self.attribute_memory(of, payload, kind & BIG_ENDIAN != 0),
            },
            Content::Row(AttributeContent::Set(set)) => self.attributes(Some(set), payload),
            Content::Row(AttributeContent::Each(of)) => self.each_attribute(payload, |kind| (numbered(kind), Content::Row(of))),
            Content::Nested => self.attributes(None, payload),
            Content::Bytes => self.text(payload, self.context.string_limit, false),
        }
    }

    /// Decodes a struct that attributes may follow (`VETH_INFO_PEER`).
    fn struct_with_attributes(&mut self, of: &'static Struct, payload: Memory<'a>) -> Value<'a> {
        let size = of.sizes[self.abi() as usize] as usize;
        let (mut members, mut more) = self.members(of, payload.first(size));
        let start = size.next_multiple_of(ALIGNMENT);
        if payload.wanted > start as u64 {
            match payload.part(start, usize::MAX) {
                Some(rest) => members.push(("attributes", self.attributes(set_after(of), rest))),
                None => more = true,
            }
        }
        Value::Struct(StructValue { name: of.name, address: payload.address, members, more })
    }

    /// Decodes the data of an attribute or control message that has a type of its own. A number may have another width
    /// than its row says: `IP_TOS` is a byte when it is received, and numbers of newer netlink families have 32 or 64
    /// bits. Data that is not as long as a number or shorter than its array's element is bytes.
    pub(super) fn attribute_memory(&mut self, of: &'static MemoryType, data: Memory<'a>, big_endian: bool) -> Value<'a> {
        let as_bytes = |reader: &mut Self| reader.text(data, reader.context.string_limit, false);
        let abi = self.abi() as usize;
        let value = match of {
            MemoryType::Number(number) => self.any_width(number, data, big_endian),
            MemoryType::Text(_) => {
                let state = if data.is_cut() { PieceState::Cut } else { data.state };
                Some(self.text(Memory { state, ..data }, usize::MAX, true))
            }
            MemoryType::Struct(of) if matches!(of.layout, StructLayout::Number(_)) && data.wanted != u64::from(of.sizes[abi]) => None,
            _ => self.typed(of, data, None),
        };
        value.unwrap_or_else(|| as_bytes(self))
    }
}

/// Returns the set of the attributes that follow a struct.
pub(super) fn set_after(of: &'static Struct) -> Option<&'static AttributeSet> {
    ATTRIBUTES_AFTER.iter().find(|(known, _)| std::ptr::eq(*known, of)).map(|(_, set)| *set)
}

/// Returns the type of an attribute whose name is not known.
fn numbered(kind: u16) -> Value<'static> {
    match kind & !TYPE_MASK {
        0 => Value::Uint(kind.into()),
        _ => Value::Flags { table: &constants::ATTRIBUTE_FLAGS, bits: kind.into() },
    }
}
