//! Consecutive records in memory, each of which begins with a header that has the record's length: netlink messages,
//! their attributes, next hops, control messages, directory entries.
//!
//! The bytes are those of the traced process or of its peer and may be anything. One rule holds for all kinds of
//! records, that of the kernel's `nlmsg_ok()`, `nla_ok()`, `rtnh_ok()` and `CMSG_OK()`: the walk ends where the rest is
//! shorter than a header, where a length is shorter than the header, or where it exceeds the memory that the call
//! names. The bytes from there on are no record and are shown as bytes.

use super::memory::{Memory, MemoryReader, pointer_size};
use super::row::{MemoryType, Struct, StructLayout};
use super::tables::structs;
use super::value::{ArrayValue, Value};
use crate::event::Abi;

/// The depth of records inside of records that are decoded; the kernel's own are at most half as deep.
const DEPTH_MAX: u32 = 16;

/// The header of a kind of records.
#[derive(Debug)]
pub struct RecordHeader {
    /// The row of the header's struct.
    pub of: &'static Struct,
    /// The name of the member with the length of the record in bytes.
    pub length: &'static str,
    /// Whether the length includes the header.
    pub counts_header: bool,
    /// The next record begins at a multiple of this.
    pub alignment: Alignment,
    /// Whether the full form has at most as many records as elements of other arrays.
    pub has_limit: bool,
}

/// The alignment of consecutive records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// A number of bytes, which is a power of 2.
    Bytes(usize),
    /// A word of the ABI.
    Word,
}

/// `struct nlmsghdr`, with `NLMSG_ALIGNTO`
pub static NETLINK_MESSAGE: RecordHeader =
    RecordHeader { of: &structs::NLMSGHDR, length: "nlmsg_len", counts_header: true, alignment: Alignment::Bytes(4), has_limit: true };
/// `struct nlattr`, with `NLA_ALIGNTO`. Attributes are to a message what members are to a struct.
pub static ATTRIBUTE: RecordHeader =
    RecordHeader { of: &structs::NLATTR, length: "nla_len", counts_header: true, alignment: Alignment::Bytes(4), has_limit: false };
/// `struct rtnexthop`, with `RTNH_ALIGNTO`
pub static NEXT_HOP: RecordHeader =
    RecordHeader { of: &structs::RTNEXTHOP, length: "rtnh_len", counts_header: true, alignment: Alignment::Bytes(4), has_limit: true };
/// `struct cmsghdr`, with `CMSG_ALIGN()`
pub static CONTROL_MESSAGE: RecordHeader =
    RecordHeader { of: &structs::CMSGHDR, length: "cmsg_len", counts_header: true, alignment: Alignment::Word, has_limit: true };
/// `struct linux_dirent64`, whose length includes the padding.
pub static DIRENT64: RecordHeader =
    RecordHeader { of: &structs::DIRENT64, length: "d_reclen", counts_header: true, alignment: Alignment::Bytes(1), has_limit: true };
/// `struct linux_dirent`, whose length includes the padding.
pub static DIRENT: RecordHeader =
    RecordHeader { of: &structs::DIRENT, length: "d_reclen", counts_header: true, alignment: Alignment::Bytes(1), has_limit: true };

/// Iterates over the records in memory. Each is as long as its header says, and may be cut if not all of the memory was
/// copied.
#[derive(Clone, Copy, Debug)]
pub struct SizedRecords<'a> {
    memory: Memory<'a>,
    /// The offset of the next record.
    at: usize,
    /// The size of the header in bytes.
    header: usize,
    /// Offset and size of the length in the header, in bytes.
    length: (usize, usize),
    counts_header: bool,
    /// In bytes.
    alignment: usize,
}

/// What follows the records that were read.
#[derive(Clone, Copy, Debug)]
pub enum Rest<'a> {
    Nothing,
    /// Another record, or memory that was not copied.
    More,
    /// Bytes that are no record.
    Bytes(Memory<'a>),
}

impl RecordHeader {
    /// Returns the records in memory.
    pub fn records<'a>(&self, memory: Memory<'a>, abi: Abi) -> SizedRecords<'a> {
        let alignment = match self.alignment {
            Alignment::Bytes(bytes) => bytes,
            Alignment::Word => pointer_size(abi),
        };
        SizedRecords {
            memory,
            at: 0,
            header: self.bytes(abi),
            length: self.place_of_length(abi),
            counts_header: self.counts_header,
            alignment,
        }
    }

    /// Returns the size of the header in bytes.
    pub fn bytes(&self, abi: Abi) -> usize {
        self.of.sizes[abi as usize] as usize
    }

    /// Returns offset and size of the length. The size is 0, and there are no records, if the row of the header has no
    /// such member.
    fn place_of_length(&self, abi: Abi) -> (usize, usize) {
        let StructLayout::Members(layouts) = &self.of.layout else { return (0, 0) };
        let member = layouts[abi as usize].iter().find(|member| member.name == self.length);
        member.map_or((0, 0), |member| match &member.memory_type {
            MemoryType::Number(number) => (member.offset as usize, usize::from(number.bytes)),
            _ => (0, 0),
        })
    }
}

impl<'a> SizedRecords<'a> {
    /// Returns the number of bytes from the next record to the end of the memory that the call names.
    fn left(&self) -> u64 {
        self.memory.wanted.saturating_sub(self.at as u64)
    }

    /// Returns the length of the next record, with its header, or an error if it is impossible. It is `None` if the
    /// length was not copied.
    fn length(&self) -> Option<Result<usize, Impossible>> {
        if self.left() < self.header as u64 {
            return Some(Err(Impossible));
        }
        let length = self.memory.number(self.at.saturating_add(self.length.0), self.length.1, false)?;
        let length = if self.counts_header { Some(length) } else { length.checked_add(self.header as u64) };
        let length = length.filter(|length| *length >= self.header as u64 && *length <= self.left());
        Some(length.and_then(|length| usize::try_from(length).ok()).ok_or(Impossible))
    }

    /// Returns what follows the records that were read.
    pub fn rest(&self) -> Rest<'a> {
        match self.memory.part(self.at, usize::MAX) {
            _ if self.left() == 0 => Rest::Nothing,
            Some(rest) if matches!(self.length(), Some(Err(Impossible))) => Rest::Bytes(rest),
            _ => Rest::More,
        }
    }
}

/// A length that no record has.
#[derive(Debug)]
struct Impossible;

impl<'a> Iterator for SizedRecords<'a> {
    type Item = Memory<'a>;

    fn next(&mut self) -> Option<Memory<'a>> {
        let length = self.length()?.ok()?;
        let record = self.memory.part(self.at, length)?;
        self.at = self.at.saturating_add(length.checked_next_multiple_of(self.alignment).unwrap_or(usize::MAX));
        Some(record)
    }
}

impl<'a> MemoryReader<'a> {
    /// Decodes consecutive records by a function, which returns `None` if its record cannot be decoded. The brief form
    /// has as many records as the row of the header says. Bytes that are no record are the last element of the full
    /// form. Memory without a record is bytes, and so are records in too many others.
    pub(super) fn records(
        &mut self,
        header: &RecordHeader,
        memory: Memory<'a>,
        mut decode: impl FnMut(&mut Self, Memory<'a>) -> Option<Value<'a>>,
    ) -> Value<'a> {
        let most = match header.has_limit {
            _ if self.context.is_brief => header.of.brief.elements as usize,
            true => self.elements_max(),
            false => usize::MAX,
        };
        let mut records = header.records(memory, self.abi());
        let mut items = Vec::new();
        let mut is_whole = true;
        if self.depth < DEPTH_MAX {
            self.depth += 1;
            for record in records.by_ref().take(most) {
                let value = if self.spend_value() { decode(self, record) } else { None };
                is_whole = value.is_some();
                let Some(value) = value else { break };
                items.push(value);
            }
            self.depth -= 1;
        }
        let limit = self.context.string_limit;
        if items.is_empty() && memory.wanted > 0 {
            return self.text(memory, limit, false);
        }
        let mut more = !is_whole;
        match records.rest() {
            Rest::Nothing => {}
            Rest::Bytes(rest) if is_whole && !self.context.is_brief && self.spend_value() => items.push(self.text(rest, limit, false)),
            Rest::Bytes(_) | Rest::More => more = true,
        }
        Value::Array(ArrayValue { address: memory.address, items, more })
    }
}

#[cfg(test)]
mod tests;
