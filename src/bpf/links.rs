//! The pointers in structs that the programs follow, by the rows of structs: the member that is the pointer, and the
//! number and size of the elements that it points to.
//!
//! Structs whose pointers need more than that (`copy=` in their rows) are handled by code in `nested.h`.

use super::capture::ELEMENTS_MAX;
use super::conditions::{IS, coded};
use crate::beauty::row::{ArgumentKind, Condition, Flow, Length, MemoryNumber, MemoryType, Struct, StructLayout, StructMember};
use crate::event::Abi;

/// `LINKS_MAX`, `LINKS_OF_ONE`: the number of links of all structs, and of one.
pub(super) const LINKS_MAX: usize = 192;
const LINKS_OF_ONE: usize = 16;
/// `sizeof(struct link)`
pub(super) const LINK_BYTES: usize = 24;
/// The maximum number of structs inside each other whose pointers are followed.
const DEPTH_MAX: usize = 4;
/// The maximum number of bytes of a path name, as of one piece.
const PATH_BYTES_MAX: u32 = 4096;
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
    /// Bytes of an element, or 0 for a string that ends with NUL.
    size: u32,
    limit: u32,
    test_mask: u32,
    test_offset: u16,
    test: u8,
}

/// All links. Those of one struct follow each other, and structs with equal links share them.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Link>);

impl Links {
    /// Returns the index of a struct's first link, and the number of its links.
    pub fn of(&mut self, of: &Struct, abi: Abi, string_limit: u32) -> (u8, u8) {
        let mut own = links(of, 0, abi, string_limit, DEPTH_MAX);
        own.truncate(LINKS_OF_ONE);
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
        let words = [self.size, self.limit, self.test_mask].into_iter().flat_map(u32::to_ne_bytes);
        let numbers = halves.chain([self.bytes, self.count_bytes, self.count, self.when]).chain(words);
        numbers.chain(self.test_offset.to_ne_bytes()).chain([self.test, 0]).collect()
    }
}

/// The test under which a link is followed: its code, its mask, and the offset of the number that it tests.
type LinkTest = (u8, u32, u16);

/// Returns the links of a struct, of the structs inside it, and of those that a member selects. The struct begins at
/// `base` in the memory that is copied.
fn links(of: &Struct, base: u32, abi: Abi, string_limit: u32, depth: usize) -> Vec<Link> {
    let StructLayout::Members(all) = &of.layout else { return Vec::new() };
    let members = all[abi as usize];
    let mut found = Vec::new();
    for member in members {
        let own = match member.memory_type {
            MemoryType::Struct(inner) if depth > 0 => links(inner, base + member.offset, abi, string_limit, depth - 1),
            _ => link(member, members, base, abi, string_limit).into_iter().collect(),
        };
        found.extend(tested(own, test(&member.used, members, base)));
    }
    for (value, chosen) in of.choice.iter().flat_map(|choice| choice.structs).filter(|_| depth > 0) {
        let chooser = of.choice.and_then(|choice| members.get(usize::from(choice.member))).map_or(0, |member| member.offset);
        found.extend(tested(links(chosen, base, abi, string_limit, depth - 1), (IS, *value as u32, (base + chooser) as u16)));
    }
    found
}

/// Sets the test of links that have none of their own.
fn tested(links: Vec<Link>, (test, test_mask, test_offset): LinkTest) -> impl Iterator<Item = Link> {
    links.into_iter().map(move |link| if link.test == 0 { Link { test, test_mask, test_offset, ..link } } else { link })
}

fn link(member: &StructMember, members: &[StructMember], base: u32, abi: Abi, string_limit: u32) -> Option<Link> {
    let MemoryType::Number(number) = &member.memory_type else { return None };
    let fixed = if let Length::Fixed(count) = number.length { count as u32 } else { 1 };
    let (size, limit) = match number.kind {
        ArgumentKind::Bytes => (fixed, string_limit),
        ArgumentKind::Str => (0, string_limit),
        ArgumentKind::Path => (0, PATH_BYTES_MAX),
        ArgumentKind::Number { bytes, .. } => (u32::from(bytes) * fixed, u32::from(bytes) * ELEMENTS_MAX),
        ArgumentKind::Struct(of) => (if number.length == Length::OfType { of.sizes[abi as usize] } else { fixed }, of.sizes[abi as usize]),
        ArgumentKind::StructArray(of) => (of.sizes[abi as usize] * fixed, of.sizes[abi as usize] * ELEMENTS_MAX),
        _ => return None,
    };
    let counter = match number.length {
        Length::Arg(at) => members.get(usize::from(at)),
        Length::OfType | Length::Ret | Length::Fixed(_) => None,
    };
    let (count_offset, count_bytes) = match counter {
        Some(StructMember { offset, memory_type: MemoryType::Number(MemoryNumber { bytes, .. }), .. }) => (base + offset, *bytes),
        _ => (0, 0),
    };
    let is_written = member.flow == Flow::Out;
    // For memory that the kernel writes, the member has the size of the buffer, and the return value says how much was
    // written, unless the kernel writes that number to the member too.
    let returned = is_written && counter.is_some_and(|counter| counter.flow != Flow::InOut);
    Some(Link {
        offset: (base + member.offset) as u16,
        count_offset: count_offset as u16,
        bytes: number.bytes,
        count_bytes,
        count: if returned { COUNT_RETURN } else { COUNT_ONE },
        when: match member.flow {
            Flow::In => AT_ENTRY,
            Flow::Out => AT_EXIT,
            Flow::InOut => AT_ENTRY | AT_EXIT,
        },
        size,
        limit,
        test_mask: 0,
        test_offset: 0,
        test: 0,
    })
}

/// Returns the test for the condition of a member. Its code is 0 if the link is always followed, also because the
/// programs have no such test.
fn test(used: &Condition, members: &[StructMember], base: u32) -> LinkTest {
    let tested = |at: u8| match members.get(usize::from(at)) {
        Some(StructMember { offset, memory_type: MemoryType::Number(MemoryNumber { bytes: 4 | 8, .. }), .. }) => Some(base + offset),
        _ => None,
    };
    match coded(used) {
        Some((test @ 1.., arg, mask)) => tested(arg).map_or((0, 0, 0), |offset| (test, mask, offset as u16)),
        Some((0, ..)) | None => (0, 0, 0),
    }
}
