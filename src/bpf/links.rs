//! Pointers in structs that the programs follow: which member points to how much of what, from the rows of structs.
//!
//! Structs whose pointers need more than that (`copy=` in their rows) `nested.h` knows by itself.

use super::capture::ELEMENTS_MAX;
use crate::beauty::row::{Condition, Flow, Form, How, Kind, Layout, Length, Member, Number, Struct, Test};
use crate::event::Abi;

/// `LINKS_MAX`, `LINKS_OF_ONE`: links of all structs, and of one.
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

/// All links, each once; a struct's stand together.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Link>);

impl Links {
    /// Where those of a struct begin, and how many they are.
    pub fn of(&mut self, of: &Struct, abi: Abi, string_limit: u32) -> (u8, u8) {
        let Layout::Members(all) = &of.layout else { return (0, 0) };
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

    /// The bytes of `links`.
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

fn link(member: &Member, members: &[Member], abi: Abi, string_limit: u32) -> Option<Link> {
    let Form::Number(number) = &member.form else { return None };
    let (size, limit) = match number.kind {
        Kind::Bytes => (1, string_limit),
        Kind::Number { bytes, .. } => (u32::from(bytes), u32::from(bytes) * ELEMENTS_MAX),
        Kind::Struct(of) => (if number.length == Length::OfType { of.sizes[abi as usize] } else { 1 }, of.sizes[abi as usize]),
        _ => return None,
    };
    let counter = match number.length {
        Length::Arg(at) => members.get(usize::from(at)),
        Length::OfType | Length::Ret | Length::Fixed(_) => None,
    };
    let (count_offset, count_bytes) = match counter {
        Some(Member { offset, form: Form::Number(Number { bytes, .. }), .. }) => (*offset, *bytes),
        _ => (0, 0),
    };
    let is_written = member.flow == Flow::Out;
    Some(Link {
        offset: member.offset as u16,
        count_offset: count_offset as u16,
        bytes: number.bytes,
        count_bytes,
        // What a member counts is room for what the kernel writes; the return says how much of it that was.
        count: if is_written && counter.is_some() { COUNT_RETURN } else { COUNT_ONE },
        when: if is_written { AT_EXIT } else { AT_ENTRY },
        size,
        limit,
        flags: flags(&member.used, members),
    })
}

/// The bits of the struct's first word of which one asks for what is written, or 0: other conditions are not tested.
fn flags(used: &Condition, members: &[Member]) -> u32 {
    match used {
        Condition::If { any: [Test { arg, mask, how: How::SomeBit }], .. } => {
            let is_first = members.get(usize::from(*arg)).is_some_and(|member| member.offset == 0);
            if is_first { *mask } else { 0 }
        }
        _ => 0,
    }
}
