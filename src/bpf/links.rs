//! The pointers in structs that the programs follow, by the rows of structs: the member that is the pointer, and the
//! number and size of the elements that it points to.
//!
//! Structs whose pointers need more than that (`copy=` in their rows) are handled by code in `nested.h`.

use super::capture::ELEMENTS_MAX;
use crate::beauty::row::{
    ArgumentKind, BitTest, Comparison, Condition, Flow, Length, MemoryNumber, MemoryType, Struct, StructLayout, StructMember,
};
use crate::event::Abi;

/// `LINKS_MAX`, `LINKS_OF_ONE`: the number of links of all structs, and of one.
pub(super) const LINKS_MAX: usize = 64;
const LINKS_OF_ONE: usize = 4;
/// `sizeof(struct link)`
pub(super) const LINK_BYTES: usize = 20;
/// `COUNT_RETURN` and `COUNT_ONE`, `OP_AT_ENTRY` and `OP_AT_EXIT`.
const COUNT_RETURN: u8 = 6;
const COUNT_ONE: u8 = 7;
const AT_ENTRY: u8 = 1;
const AT_EXIT: u8 = 2;

/// `struct link`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    offset: u16,
    count_offset: u16,
    bytes: u8,
    count_bytes: u8,
    count: u8,
    when: u8,
    size: u32,
    limit: u32,
    flags: u32,
}

/// All links. Those of one struct follow each other, and structs with equal links share them.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Link>);

impl Links {
    /// Returns the index of a struct's first link, and the number of its links.
    pub fn of(&mut self, of: &Struct, abi: Abi, string_limit: u32) -> (u8, u8) {
        let StructLayout::Members(all) = &of.layout else { return (0, 0) };
        let members = all[abi as usize];
        let own: Vec<Link> = members.iter().filter_map(|member| link(member, members, abi, string_limit)).take(LINKS_OF_ONE).collect();
        let place = self.0.windows(own.len().max(1)).position(|known| known == own).unwrap_or(self.0.len());
        if own.is_empty() || place + own.len() > LINKS_MAX {
            return (0, 0);
        }
        if place == self.0.len() {
            self.0.extend(&own);
        }
        (place as u8, own.len() as u8)
    }

    /// Returns the bytes of `links`.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.0.iter().flat_map(|link| link.bytes()).collect();
        bytes.resize(LINKS_MAX * LINK_BYTES, 0);
        bytes
    }
}

impl Link {
    fn bytes(&self) -> Vec<u8> {
        let halves = [self.offset, self.count_offset].into_iter().flat_map(u16::to_ne_bytes);
        let words = [self.size, self.limit, self.flags].into_iter().flat_map(u32::to_ne_bytes);
        halves.chain([self.bytes, self.count_bytes, self.count, self.when]).chain(words).collect()
    }
}

fn link(member: &StructMember, members: &[StructMember], abi: Abi, string_limit: u32) -> Option<Link> {
    let MemoryType::Number(number) = &member.memory_type else { return None };
    let (size, limit) = match number.kind {
        ArgumentKind::Bytes => (1, string_limit),
        ArgumentKind::Number { bytes, .. } => (u32::from(bytes), u32::from(bytes) * ELEMENTS_MAX),
        ArgumentKind::Struct(of) => (if number.length == Length::OfType { of.sizes[abi as usize] } else { 1 }, of.sizes[abi as usize]),
        _ => return None,
    };
    let counter = match number.length {
        Length::Arg(at) => members.get(usize::from(at)),
        Length::OfType | Length::Ret | Length::Fixed(_) => None,
    };
    let (count_offset, count_bytes) = match counter {
        Some(StructMember { offset, memory_type: MemoryType::Number(MemoryNumber { bytes, .. }), .. }) => (*offset, *bytes),
        _ => (0, 0),
    };
    let is_written = member.flow == Flow::Out;
    Some(Link {
        offset: member.offset as u16,
        count_offset: count_offset as u16,
        bytes: number.bytes,
        count_bytes,
        // For memory that the kernel writes, the member has the size of the buffer, and the return value says how much
        // was written.
        count: if is_written && counter.is_some() { COUNT_RETURN } else { COUNT_ONE },
        when: if is_written { AT_EXIT } else { AT_ENTRY },
        size,
        limit,
        flags: flags(&member.used, members),
    })
}

/// Returns the bits of the struct's first word of which at least one must be set for the link to be followed, or 0.
/// Other conditions are not tested.
fn flags(used: &Condition, members: &[StructMember]) -> u32 {
    match used {
        Condition::If { any: [BitTest { arg, mask, comparison: Comparison::SomeBit }], .. } => {
            let is_first = members.get(usize::from(*arg)).is_some_and(|member| member.offset == 0);
            if is_first { *mask } else { 0 }
        }
        _ => 0,
    }
}
