//! Decodes netlink attributes (linux/netlink.h, `struct nlattr`): consecutive values, each with its length and type.
//!
//! The bytes are those of the traced process or of its peer and may be anything. The decoder reads only what was
//! copied, follows nested attributes to a limited depth, and stops where a length does not fit.

use super::attribute::{AttributeContent, AttributeSet};
use super::memory::{Memory, MemoryReader};
use super::row::{MemoryType, StructLayout};
use super::tables::{constants, structs};
use super::value::{ArrayValue, StructValue, Value};
use crate::event::PieceState;

/// The depth of nested attributes that are decoded; the kernel's own are at most half as deep.
const DEPTH_MAX: u32 = 16;

/// `sizeof(struct nlattr)`
const HEAD: usize = 4;
/// `NLA_ALIGNTO`
pub(super) const ALIGNMENT: usize = 4;
/// `NLA_F_NESTED`, `NLA_F_NET_BYTEORDER` and `NLA_TYPE_MASK` (linux/netlink.h)
const NESTED: u16 = 1 << 15;
const BIG_ENDIAN: u16 = 1 << 14;
const TYPE_MASK: u16 = !(NESTED | BIG_ENDIAN);

/// An attribute in memory.
struct Attribute<'a> {
    memory: Memory<'a>,
    /// `nla_len`: the number of bytes with the header.
    length: usize,
    /// `nla_type`
    kind: u16,
}

/// What an attribute contains, by its row and its type.
enum Content {
    Memory(&'static MemoryType),
    Set(&'static AttributeSet),
    List(&'static AttributeSet),
    /// Attributes without names.
    Nested,
    Bytes,
}

/// Returns the attribute at an offset, if its header was copied and its length is possible.
fn attribute_at(memory: Memory<'_>, at: usize) -> Option<Attribute<'_>> {
    let length = memory.record_length(at, 2, HEAD)?;
    let kind = memory.number(at + 2, 2, false)? as u16;
    Some(Attribute { memory: memory.part(at, length)?, length, kind })
}

/// Returns the text of the first attribute with a number.
fn text_of(memory: Memory<'_>, number: u32) -> Option<&[u8]> {
    let mut at = 0;
    while let Some(attribute) = attribute_at(memory, at) {
        if u32::from(attribute.kind & TYPE_MASK) == number {
            let text = attribute.memory.bytes.get(HEAD..)?;
            return Some(text.split(|byte| *byte == 0).next().unwrap_or_default());
        }
        at += attribute.length.next_multiple_of(ALIGNMENT);
    }
    None
}

impl<'a> MemoryReader<'a> {
    /// Decodes consecutive attributes. Without a set, their types are numbers. `depth` is the number of attributes
    /// around them.
    pub(super) fn attributes(&mut self, set: Option<&'static AttributeSet>, memory: Memory<'a>, depth: u32) -> Value<'a> {
        self.each_attribute(memory, depth, |attribute| {
            let Some(set) = set else {
                let content = if attribute.kind & NESTED != 0 { Content::Nested } else { Content::Bytes };
                return (numbered(attribute.kind), content);
            };
            let number = u32::from(attribute.kind & TYPE_MASK);
            let kind = match attribute.kind & !TYPE_MASK {
                0 => Value::Symbol { table: set.table, value: number.into() },
                _ => Value::Flags { table: set.types, bits: attribute.kind.into() },
            };
            let content = match set.content(number, |by| text_of(memory, by)) {
                Some(AttributeContent::Memory(of)) => Content::Memory(of),
                Some(AttributeContent::Set(set)) => Content::Set(set),
                Some(AttributeContent::List(set)) => Content::List(set),
                None if attribute.kind & NESTED != 0 => Content::Nested,
                None => Content::Bytes,
            };
            (kind, content)
        })
    }

    /// Decodes attributes whose types are indices, and which contain attributes of one set each.
    fn attribute_list(&mut self, set: &'static AttributeSet, memory: Memory<'a>, depth: u32) -> Value<'a> {
        self.each_attribute(memory, depth, |attribute| (numbered(attribute.kind), Content::Set(set)))
    }

    /// Decodes consecutive attributes, whose types and contents the function returns.
    fn each_attribute(&mut self, memory: Memory<'a>, depth: u32, of: impl Fn(&Attribute<'a>) -> (Value<'a>, Content)) -> Value<'a> {
        let most = if self.context.is_brief { structs::NLATTR.brief.elements as usize } else { usize::MAX };
        let mut items = Vec::new();
        let mut at = 0;
        while let Some(attribute) = attribute_at(memory, at) {
            if items.len() == most || !self.spend_value() || !self.spend_value() {
                break;
            }
            let (kind, content) = of(&attribute);
            let mut members = Vec::with_capacity(3);
            if !self.context.is_brief {
                members.push(("nla_len", Value::Uint(attribute.length as u64)));
            }
            members.push(("nla_type", kind));
            if let Some(payload) = attribute.memory.part(HEAD, attribute.length - HEAD).filter(|_| attribute.length > HEAD) {
                members.push(("data", self.attribute_data(content, attribute.kind, payload, depth)));
            }
            let more = attribute.length > HEAD && members.last().is_none_or(|(name, _)| *name != "data");
            items.push(Value::Struct(StructValue { name: "nlattr", address: attribute.memory.address, members, more }));
            at += attribute.length.next_multiple_of(ALIGNMENT);
        }
        Value::Array(ArrayValue { address: memory.address, items, more: (at as u64) < memory.wanted })
    }

    fn attribute_data(&mut self, content: Content, kind: u16, payload: Memory<'a>, depth: u32) -> Value<'a> {
        let is_deep = depth >= DEPTH_MAX;
        match content {
            Content::Memory(of) => self.attribute_memory(of, payload, kind & BIG_ENDIAN != 0),
            Content::Set(set) if !is_deep => self.attributes(Some(set), payload, depth + 1),
            Content::List(set) if !is_deep => self.attribute_list(set, payload, depth + 1),
            Content::Nested if !is_deep => self.attributes(None, payload, depth + 1),
            _ => self.text(payload, self.context.string_limit, false),
        }
    }

    /// Decodes the data of an attribute or control message that has a type of its own. A number may have another width
    /// than its row says: `IP_TOS` is a byte when it is received, and numbers of newer netlink families have 32 or 64
    /// bits. Data that is not as long as a number or shorter than its array's element is bytes.
    pub(super) fn attribute_memory(&mut self, of: &'static MemoryType, data: Memory<'a>, big_endian: bool) -> Value<'a> {
        let as_bytes = |reader: &mut Self| reader.text(data, reader.context.string_limit, false);
        let value = match of {
            MemoryType::Number(number) => self.any_width(number, data, big_endian),
            MemoryType::Text(_) => {
                let state = if data.is_cut() { PieceState::Cut } else { data.state };
                Some(self.text(Memory { state, ..data }, usize::MAX, true))
            }
            MemoryType::Struct(of) if matches!(of.layout, StructLayout::Number(_)) && data.wanted != u64::from(of.sizes[0]) => None,
            _ => self.typed(of, data, None),
        };
        value.unwrap_or_else(|| as_bytes(self))
    }
}

/// Returns the type of an attribute whose name is not known.
fn numbered(kind: u16) -> Value<'static> {
    match kind & !TYPE_MASK {
        0 => Value::Uint(kind.into()),
        _ => Value::Flags { table: &constants::ATTRIBUTE_FLAGS, bits: kind.into() },
    }
}
