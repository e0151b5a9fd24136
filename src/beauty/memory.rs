//! The copied memory of one argument: its own piece, and what stands behind the pointers in it, found by address.
//!
//! Nothing is read here and nothing is guessed: what was not copied stays the address of what was not copied. However the bytes look, what is made of them is bounded.

use super::decode::Context;
use super::value::Value;
use crate::event::{Abi, Call, FdPlace, File, Piece, PieceState, When};

/// A function of `crate::beauty::decoders`: from a struct's bytes to what they mean.
pub type Decoder = for<'a> fn(&mut Reader<'a>, Memory<'a>) -> Value<'a>;

/// What one argument's values may cost together beside one string of full length: so many bytes of text, a value counting as [`VALUE_COST`] of them.
const COST_MAX: usize = 64 << 10;
const VALUE_COST: usize = 16;

/// Elements of an array, members of a set and entries of a directory that are shown, and of arrays no more are copied
/// (`nested.h` has the same number).
pub const ELEMENTS_MAX: usize = 32;

/// A stretch of the traced program's memory.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    pub bytes: &'a [u8],
    pub address: u64,
    /// How many bytes the call names; more than there are if a bound cut them.
    pub wanted: u64,
    pub state: PieceState,
    /// What the length that belongs to it says, in the unit that the row means, where there is one.
    pub count: Option<u64>,
}

impl<'a> Memory<'a> {
    /// Whether the call names bytes that are not here.
    pub fn is_cut(&self) -> bool {
        self.wanted > self.bytes.len() as u64 || matches!(self.state, PieceState::Cut | PieceState::Altered { cut: true })
    }

    /// At most its first bytes; what the call names behind them does not count.
    pub fn first(self, bytes: usize) -> Memory<'a> {
        let whole = self.bytes.len() >= bytes;
        let state = if whole { PieceState::Ok } else { self.state };
        Memory { bytes: &self.bytes[..self.bytes.len().min(bytes)], wanted: self.wanted.min(bytes as u64), state, ..self }
    }

    /// A part of it: `None` if it ends before that begins.
    pub fn part(&self, offset: usize, bytes: usize) -> Option<Memory<'a>> {
        let rest = self.bytes.get(offset..).filter(|rest| !rest.is_empty() || bytes == 0)?;
        let rest = &rest[..rest.len().min(bytes)];
        let address = self.address.wrapping_add(offset as u64);
        let wanted = self.wanted.saturating_sub(offset as u64).min(bytes as u64);
        Some(Memory { bytes: rest, address, wanted, state: PieceState::Ok, count: None })
    }

    /// The whole number at an offset, sign-extended if it has a sign; `None` if not all of it is here.
    pub fn number(&self, offset: usize, bytes: usize, signed: bool) -> Option<u64> {
        load(self.bytes.get(offset..offset.checked_add(bytes)?)?, signed, false)
    }
}

/// A number of 1, 2, 4 or 8 bytes as a register would hold it; `None` if it has another size.
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

/// Which of an argument's pieces are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Those that tell what the kernel found.
    Entry,
    /// Those that tell what it left, and where there is none what it found.
    Exit,
}

/// Makes values of one argument's memory.
pub struct Reader<'a> {
    pub(super) call: &'a Call,
    pub(super) context: Context<'a>,
    arg: u8,
    moment: Moment,
    /// The call wrote nothing there, or not yet: members that only the kernel writes hold what the program had there before.
    pub(super) is_unwritten: bool,
    left: usize,
}

impl<'a> Reader<'a> {
    pub fn new(call: &'a Call, context: Context<'a>, arg: u8, moment: Moment) -> Reader<'a> {
        Reader { call, context, arg, moment, is_unwritten: moment == Moment::Entry, left: COST_MAX.saturating_add(context.string_limit) }
    }

    /// The same, of memory that the call did not write.
    pub fn without_written(self) -> Reader<'a> {
        Reader { is_unwritten: true, ..self }
    }

    pub fn abi(&self) -> Abi {
        self.call.abi
    }

    /// Whether one more value may be made.
    pub(super) fn spend_value(&mut self) -> bool {
        self.spend(VALUE_COST) == VALUE_COST
    }

    /// How many of so many bytes may be shown.
    pub(super) fn spend(&mut self, bytes: usize) -> usize {
        let granted = bytes.min(self.left);
        self.left -= granted;
        granted
    }

    /// The memory that was copied from an address. Where several pieces begin there, the one that was asked for with this length.
    pub(super) fn find(&self, address: u64, wanted: Option<u64>, count: Option<u64>) -> Option<Memory<'a>> {
        let pieces = |exit: bool| self.pieces_at(address).filter(move |piece| (piece.when == When::Exit) == exit);
        let best = |exit| pieces(exit).find(|piece| Some(piece.wanted) == wanted).or_else(|| pieces(exit).next());
        let piece = match self.moment {
            Moment::Entry => best(false),
            Moment::Exit => best(true).or_else(|| best(false)),
        }?;
        let bytes = self.call.bytes(piece);
        Some(Memory { bytes, address, wanted: piece.wanted.max(bytes.len() as u64), state: piece.state, count })
    }

    /// What a descriptor in this memory was, if that is known.
    pub(super) fn file(&self, fd: i32) -> Option<&'a File> {
        self.call.file(FdPlace::Inside { arg: self.arg, fd })
    }

    /// Whether the memory at an address was copied at that very moment.
    pub(super) fn has(&self, address: u64, exit: bool) -> bool {
        self.pieces_at(address).any(|piece| (piece.when == When::Exit) == exit)
    }

    /// Whether somebody tried to copy from an address.
    pub(super) fn was_tried(&self, address: u64) -> bool {
        self.all_pieces_at(address).next().is_some()
    }

    fn pieces_at(&self, address: u64) -> impl Iterator<Item = &'a Piece> {
        self.all_pieces_at(address).filter(|piece| piece.state != PieceState::Fault)
    }

    /// Those that could not be read too.
    fn all_pieces_at(&self, address: u64) -> impl Iterator<Item = &'a Piece> {
        let (arg, call) = (self.arg, self.call);
        // A 32-bit program's registers may hold anything above.
        let mask = if call.abi == Abi::I386 { u64::from(u32::MAX) } else { u64::MAX };
        call.pieces.iter().filter(move |piece| piece.arg == arg && piece.address & mask == address)
    }
}

/// Bytes of a user-space pointer.
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
    fn numbers_are_extended_as_their_type_says() {
        assert_eq!(load(&[0xfe, 0xff], true, false), Some(-2i64 as u64));
        assert_eq!(load(&[0xfe, 0xff], false, false), Some(0xfffe));
        assert_eq!(load(&[0x01, 0xbb], false, true), Some(443));
        assert_eq!(load(&[0xff; 8], true, false), Some(u64::MAX));
        assert_eq!((load(&[], true, false), load(&[0; 9], true, false)), (None, None));
    }

    #[test]
    fn parts_end_with_the_memory() {
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
