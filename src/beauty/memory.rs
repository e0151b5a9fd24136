//! The copied memory of one argument: the memory that the argument points to, and that behind the pointers in it.
//! Pieces of memory are found by their addresses.
//!
//! This module reads no process's memory. If the memory behind a pointer was not copied, the value is the address. The
//! total size of the values of an argument is bounded, whatever the bytes contain.

use super::attribute::NetlinkProtocol;
use super::decode::Context;
use super::netlink::Parts;
use super::value::Value;
use crate::event::{Abi, Call, FdPlace, File, Piece, PieceState, PieceTime};

/// A function of `crate::beauty::decoders`: decodes the bytes of a struct.
pub type StructDecoder = for<'a> fn(&mut MemoryReader<'a>, Memory<'a>) -> Value<'a>;

/// The maximum total cost of an argument's values, in addition to one string of full length. A byte of text costs 1, a
/// value [`VALUE_COST`].
const COST_MAX: usize = 64 << 10;
const VALUE_COST: usize = 16;

/// The maximum number of elements of an array that the BPF programs copy (`nested.h` has the same number). It is also
/// the default of [`Context::elements_max`].
pub const ELEMENTS_MAX: usize = 32;

/// A copied range of the traced program's memory.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    /// The bytes that were copied. They may be fewer than `wanted`, or none.
    pub bytes: &'a [u8],
    /// The address of the first byte; 0 for memory that was put together from several parts.
    pub address: u64,
    /// The size in bytes that the call specifies; larger than `bytes` if a limit cut the copy.
    pub wanted: u64,
    /// Whether the copy is complete, and if not, why. A part of a copy has [`PieceState::Ok`], and only its `wanted`
    /// says that it was cut.
    pub state: PieceState,
    /// The length that belongs to the memory, in the unit of the row, if there is one.
    pub count: Option<u64>,
}

impl<'a> Memory<'a> {
    /// Returns whether the call specifies more bytes than were copied.
    pub fn is_cut(&self) -> bool {
        self.wanted > self.bytes.len() as u64 || matches!(self.state, PieceState::Cut | PieceState::Altered { cut: true })
    }

    /// Returns at most the first `bytes` bytes, as if the call specified no more than these.
    pub fn first(self, bytes: usize) -> Memory<'a> {
        let whole = self.bytes.len() >= bytes;
        let state = if whole { PieceState::Ok } else { self.state };
        Memory { bytes: &self.bytes[..self.bytes.len().min(bytes)], wanted: self.wanted.min(bytes as u64), state, ..self }
    }

    /// Returns at most `bytes` bytes from an offset, or `None` if the memory ends before the offset.
    pub fn part(&self, offset: usize, bytes: usize) -> Option<Memory<'a>> {
        let rest = self.bytes.get(offset..).filter(|rest| !rest.is_empty() || bytes == 0)?;
        let rest = &rest[..rest.len().min(bytes)];
        // Memory that was put together from several parts has no address.
        let address = if self.address == 0 { 0 } else { self.address.wrapping_add(offset as u64) };
        let wanted = self.wanted.saturating_sub(offset as u64).min(bytes as u64);
        Some(Memory { bytes: rest, address, wanted, state: PieceState::Ok, count: None })
    }

    /// Loads the number of `bytes` bytes at an offset, sign-extended if `signed`. Returns `None` if it was not copied
    /// completely.
    pub fn number(&self, offset: usize, bytes: usize, signed: bool) -> Option<u64> {
        load(self.bytes.get(offset..offset.checked_add(bytes)?)?, signed, false)
    }
}

/// Loads a number of 1, 2, 4 or 8 bytes and extends it to a register. Returns `None` for other sizes.
#[inline]
pub fn load(bytes: &[u8], signed: bool, big_endian: bool) -> Option<u64> {
    let (value, bits) = match *bytes {
        [byte] => (u64::from(byte), 8),
        [a, b] => (u64::from(u16::from_le_bytes([a, b])), 16),
        [a, b, c, d] => (u64::from(u32::from_le_bytes([a, b, c, d])), 32),
        _ => (u64::from_le_bytes(bytes.try_into().ok()?), 64),
    };
    let unused = 64 - bits;
    let value = if big_endian { value.swap_bytes() >> unused } else { value };
    Some(if signed { ((value << unused) as i64 >> unused) as u64 } else { value })
}

/// The time of the memory contents that are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The contents at entry.
    Entry,
    /// The contents at exit; memory that was not copied then has its contents at entry.
    Exit,
}

/// Decodes the copied memory of one argument.
pub struct MemoryReader<'a> {
    pub(super) call: &'a Call,
    pub(super) context: Context<'a>,
    arg: u8,
    moment: Moment,
    /// The protocol of the netlink socket that the bytes in the memory are written to or read from, if it is one.
    pub(super) protocol: Option<&'static NetlinkProtocol>,
    /// The address family at the beginning of the netlink message that is decoded, as one byte.
    pub(super) family: Option<&'a [u8]>,
    /// The parts of the messages that are decoded.
    pub(super) parts: Parts,
    /// The kernel has not written the memory, so output-only members have arbitrary contents and are omitted.
    pub(super) is_unwritten: bool,
    /// The number of records around those that are decoded (see [`super::sized_records`]).
    pub(super) depth: u32,
    /// The remaining cost of the argument's values (see [`COST_MAX`]).
    left: usize,
}

impl<'a> MemoryReader<'a> {
    pub fn new(call: &'a Call, context: Context<'a>, arg: u8, moment: Moment) -> MemoryReader<'a> {
        MemoryReader {
            call,
            context,
            arg,
            moment,
            protocol: None,
            family: None,
            parts: Parts::default(),
            is_unwritten: moment == Moment::Entry,
            depth: 0,
            left: COST_MAX.saturating_add(context.string_limit),
        }
    }

    /// Omits output-only members, for memory that the call did not write.
    pub fn without_written(self) -> MemoryReader<'a> {
        MemoryReader { is_unwritten: true, ..self }
    }

    /// Sets the protocol whose messages the bytes in the memory are.
    pub fn of_protocol(self, protocol: Option<&'static NetlinkProtocol>) -> MemoryReader<'a> {
        MemoryReader { protocol, ..self }
    }

    /// Returns the ABI of the call, which determines the layouts of structs and the size of pointers.
    pub fn abi(&self) -> Abi {
        self.call.abi
    }

    /// Returns the maximum number of elements that an array of the value has.
    pub(super) fn elements_max(&self) -> usize {
        self.context.elements_max
    }

    /// Deducts the cost of a value. Returns whether the limit permits it.
    pub(super) fn spend_value(&mut self) -> bool {
        self.spend(VALUE_COST) == VALUE_COST
    }

    /// Deducts the cost of up to `bytes` bytes of text. Returns how many of them the limit permits.
    pub(super) fn spend(&mut self, bytes: usize) -> usize {
        let granted = bytes.min(self.left);
        self.left -= granted;
        granted
    }

    /// Returns the memory that was copied from an address. If several pieces begin there, one that was requested with
    /// the length `wanted` is preferred.
    pub(super) fn find(&self, address: u64, wanted: Option<u64>, count: Option<u64>) -> Option<Memory<'a>> {
        let pieces = |exit: bool| self.pieces_at(address).filter(move |piece| (piece.when == PieceTime::Exit) == exit);
        let best = |exit| pieces(exit).find(|piece| Some(piece.wanted) == wanted).or_else(|| pieces(exit).next());
        let piece = match self.moment {
            Moment::Entry => best(false),
            Moment::Exit => best(true).or_else(|| best(false)),
        }?;
        let bytes = self.call.bytes(piece);
        Some(Memory { bytes, address, wanted: piece.wanted.max(bytes.len() as u64), state: piece.state, count })
    }

    /// Returns what was at the address of this memory when the call began, if the memory is that at the exit, and was
    /// copied at both times.
    pub(super) fn at_entry(&self, memory: Memory<'a>) -> Option<Memory<'a>> {
        if self.moment == Moment::Entry || memory.address == 0 {
            return None;
        }
        let before = self.call.pieces.iter().filter(|piece| piece.arg == self.arg && piece.when != PieceTime::Exit);
        let found = before.filter_map(|piece| {
            let offset = memory.address.checked_sub(piece.address & self.address_mask())?;
            self.call.bytes(piece).get(usize::try_from(offset).ok()?..).filter(|bytes| !bytes.is_empty())
        });
        found.map(|bytes| Memory { bytes, ..memory }).next()
    }

    /// Returns the file of a descriptor in this memory, if it is known.
    pub(super) fn file(&self, fd: i32) -> Option<&'a File> {
        self.call.file(FdPlace::Inside { arg: self.arg, fd })
    }

    /// Returns whether memory at an address was copied at exit (`exit`), or whether it was copied before (not `exit`).
    pub(super) fn was_copied(&self, address: u64, exit: bool) -> bool {
        self.pieces_at(address).any(|piece| (piece.when == PieceTime::Exit) == exit)
    }

    /// Returns whether there was an attempt to copy from an address, successful or not.
    pub(super) fn was_tried(&self, address: u64) -> bool {
        self.all_pieces_at(address).next().is_some()
    }

    fn pieces_at(&self, address: u64) -> impl Iterator<Item = &'a Piece> {
        self.all_pieces_at(address).filter(|piece| piece.state != PieceState::Fault)
    }

    /// Returns the bits of an address that count: the upper halves of a 32-bit program's registers are arbitrary.
    fn address_mask(&self) -> u64 {
        if self.call.abi == Abi::I386 { u64::from(u32::MAX) } else { u64::MAX }
    }

    /// Returns all pieces at an address, including those that could not be read.
    fn all_pieces_at(&self, address: u64) -> impl Iterator<Item = &'a Piece> {
        let (arg, call, mask) = (self.arg, self.call, self.address_mask());
        call.pieces.iter().filter(move |piece| piece.arg == arg && piece.address & mask == address)
    }
}

/// Returns the size of a user-space pointer in bytes.
pub fn pointer_size(abi: Abi) -> usize {
    match abi {
        Abi::X86_64 | Abi::Aarch64 => 8,
        Abi::I386 | Abi::X32 => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_numbers_are_extended_by_their_signedness() {
        assert_eq!(load(&[0xfe, 0xff], true, false), Some(-2i64 as u64));
        assert_eq!(load(&[0xfe, 0xff], false, false), Some(0xfffe));
        assert_eq!(load(&[0x01, 0xbb], false, true), Some(443));
        assert_eq!(load(&[0xff; 8], true, false), Some(u64::MAX));
        assert_eq!((load(&[], true, false), load(&[0; 9], true, false)), (None, None));
    }

    #[test]
    fn a_part_is_cut_where_the_memory_ends() {
        let memory = Memory { bytes: &[1, 2, 3, 4, 5, 6], address: 0x1000, wanted: 8, state: PieceState::Cut, count: None };
        assert!(memory.is_cut() && !memory.first(6).is_cut() && memory.first(7).is_cut());
        let part = memory.part(4, 4).expect("begins");
        assert_eq!((part.bytes, part.address, part.is_cut()), (&[5u8, 6][..], 0x1004, true));
        assert!(memory.part(6, 1).is_none() && memory.part(7, 1).is_none());
        assert_eq!(
            (memory.number(4, 2, false), memory.number(4, 4, false), memory.number(usize::MAX, 4, false)),
            (Some(0x0605), None, None)
        );
    }
}
