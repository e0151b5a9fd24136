//! Messages in several parts of memory (`struct iovec`): a program may have the header, the struct and the attributes
//! of a message at addresses of their own (`ip` and `ss` do), and may read a message into several buffers.
//!
//! The part in which a message begins has the whole message. The following parts show none of its bytes, so that a key
//! that is left out of the message is not in the line either. The parts of such a message are put together in memory
//! that belongs to the decoded call. It has no address, because its bytes are at several ones.

use super::super::attribute::NetlinkProtocol;
use super::super::memory::{Memory, MemoryReader, pointer_size};
use super::super::sized_records::{NETLINK_MESSAGE, Rest};
use super::super::value::{ArrayValue, Value};
use super::{ALIGNMENT, HEAD};
use crate::event::PieceState;
use std::cell::OnceCell;

/// Memory that was put together from parts, for the time that a call is decoded.
#[derive(Debug, Default)]
pub struct Joined {
    next: OnceCell<Box<(Vec<u8>, Joined)>>,
}

impl Joined {
    /// Keeps the bytes.
    fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        let mut last = self;
        while let Some(next) = last.next.get() {
            last = &next.1;
        }
        &last.next.get_or_init(|| Box::new((bytes, Joined::default()))).0
    }
}

/// The parts of an array of `struct iovec`.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Address and length in bytes of the parts that were not decoded yet.
    following: Vec<(u64, u64)>,
    /// The number of bytes at the beginning of the next part that belong to a message in the parts before it.
    begun: u64,
}

impl<'a> MemoryReader<'a> {
    /// Notes the parts of an array of `struct iovec` before they are decoded.
    pub(in crate::beauty) fn begin_parts(&mut self, array: Memory<'a>) {
        let word = pointer_size(self.abi());
        let part = |at: usize| Some((array.number(at, word, false)?, array.number(at + word, word, false)?));
        let mut following: Vec<(u64, u64)> = (0..array.bytes.len()).step_by(2 * word).map_while(part).collect();
        following.reverse();
        self.parts = Parts { following, begun: 0 };
    }

    /// Decodes the messages of a protocol in memory, which may be a part.
    pub(super) fn netlink_part(&mut self, protocol: &'static NetlinkProtocol, memory: Memory<'a>) -> Value<'a> {
        let is_part = self.parts.following.iter().rposition(|(address, _)| *address == memory.address);
        let Some(at) = is_part else { return self.messages(protocol, memory) };
        self.parts.following.truncate(at);
        let begun = self.parts.begun.min(memory.wanted);
        self.parts.begun -= begun;
        let own = usize::try_from(begun).ok().filter(|_| begun < memory.wanted).and_then(|begun| memory.part(begun, usize::MAX));
        let Some(own) = own.filter(|_| memory.wanted > 0) else { return self.text(memory, 0, false) };
        let mut records = NETLINK_MESSAGE.records(own, self.abi());
        let whole: usize = records.by_ref().map(|record| record.wanted as usize).map(|bytes| bytes.next_multiple_of(ALIGNMENT)).sum();
        let joined = match records.rest() {
            Rest::Bytes(rest) => self.join(rest),
            _ => None,
        };
        let Some(joined) = joined.filter(|_| self.spend_value()) else { return self.messages(protocol, own) };
        let mut items = Vec::new();
        let mut more = false;
        if whole > 0 {
            match self.messages(protocol, own.first(whole)) {
                Value::Array(before) => (items, more) = (before.items, before.more),
                other => items.push(other),
            }
        }
        if !more {
            items.push(self.netlink_message(protocol, joined, 0));
        }
        Value::Array(ArrayValue { address: own.address, items, more })
    }

    /// Puts a message together that begins in the rest of a part and ends in the following parts. Returns `None` if its
    /// length is not known, or if it is longer than the parts.
    fn join(&mut self, rest: Memory<'a>) -> Option<Memory<'a>> {
        let keeper = self.context.joined.filter(|_| !rest.is_cut())?;
        let mut bytes = rest.bytes.to_vec();
        let mut room = rest.wanted;
        let mut is_cut = false;
        for (address, length) in self.parts.following.clone().into_iter().rev().filter(|(_, length)| *length > 0) {
            let wanted = length_in(&bytes);
            if wanted.is_some_and(|wanted| room >= wanted) {
                break;
            }
            let found = self.find(address, Some(length), Some(length)).filter(|_| !is_cut);
            bytes.extend_from_slice(found.map_or(&[][..], |found| found.bytes));
            is_cut |= found.is_none_or(|found| found.is_cut());
            room = room.saturating_add(found.map_or(length, |found| found.wanted));
        }
        let wanted = length_in(&bytes).filter(|wanted| *wanted >= HEAD as u64 && *wanted > rest.wanted && *wanted <= room)?;
        bytes.truncate(usize::try_from(wanted).ok()?);
        self.parts.begun = wanted.checked_next_multiple_of(ALIGNMENT as u64)?.min(room) - rest.wanted;
        let state = if is_cut { PieceState::Cut } else { PieceState::Ok };
        Some(Memory { bytes: keeper.keep(bytes), address: 0, wanted, state, count: None })
    }
}

/// Returns the length in the header of the message that begins with these bytes.
fn length_in(bytes: &[u8]) -> Option<u64> {
    let length = bytes.first_chunk().filter(|_| bytes.len() >= HEAD)?;
    Some(u32::from_le_bytes(*length).into())
}
