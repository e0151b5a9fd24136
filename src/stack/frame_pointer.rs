//! Finds the caller of a frame in code without unwind tables: a JIT compiler's, Go's, assembly.
//!
//! It follows the ABI's chain: the frame pointer points to the caller's frame pointer, and the return address is one
//! word above that. As the register may hold something other than a frame pointer, a chain is only followed to higher
//! addresses, and only if the return address is in mapped code.

use crate::stack::registers::Layout;
use crate::stack::space::AddressSpace;

/// The greatest length of a frame. A register that points further up is not a frame pointer.
const FRAME_BYTES_MAX: u64 = 64 << 20;

/// The program counter and registers of the caller.
#[derive(Debug, PartialEq, Eq)]
pub struct Caller {
    /// The return address: the instruction after the call.
    pub avma: u64,
    /// The stack pointer after the return, above the return address.
    pub stack_pointer: u64,
    /// The caller's own frame pointer; 0 if the chain ends with the caller.
    pub frame_pointer: u64,
}

/// The reason why no caller was found.
#[derive(Debug, PartialEq, Eq)]
pub enum Absent {
    /// The chain ends at this frame.
    End,
    /// The register is not a frame pointer, or does not point to a frame.
    NoFrame,
    /// A word of the stack is missing. The closure `memory` has recorded its address.
    NoWord,
}

/// Finds the caller of a frame by its stack and frame pointers.
///
/// `in_chain` says that a frame below had saved the frame pointer, so it is one. Otherwise it is the present value of
/// the register, which may be anything.
pub fn caller(
    layout: &Layout,
    space: &AddressSpace,
    (stack_pointer, frame_pointer, in_chain): (u64, u64, bool),
    memory: &mut impl FnMut(u64) -> Option<u64>,
) -> Result<Caller, Absent> {
    let word = u64::from(layout.word_bytes);
    if in_chain && frame_pointer == 0 {
        return Err(Absent::End);
    }
    if frame_pointer < stack_pointer || frame_pointer - stack_pointer > FRAME_BYTES_MAX || frame_pointer % word != 0 {
        return Err(Absent::NoFrame);
    }
    let above = frame_pointer.checked_add(2 * word).ok_or(Absent::NoFrame)?;
    let avma = memory(frame_pointer + word).ok_or(Absent::NoWord)? & layout.code_address_mask;
    let saved = memory(frame_pointer).ok_or(Absent::NoWord)?;
    if in_chain && avma == 0 && saved == 0 {
        return Err(Absent::End);
    }
    let is_frame = (saved == 0 || saved > frame_pointer) && avma != 0 && space.find(avma - 1, &mut 0).is_some();
    if is_frame { Ok(Caller { avma, stack_pointer: above, frame_pointer: saved }) } else { Err(Absent::NoFrame) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::registers::Architecture;

    fn at(frame: (u64, u64, bool), words: &[u64]) -> Result<Caller, Absent> {
        let mut space = AddressSpace::default();
        space.map_code(0x40_0000..0x50_0000);
        let mut memory = |address: u64| words.get((address.checked_sub(0x1000)? / 8) as usize).copied();
        caller(Architecture::X86_64.layout(), &space, frame, &mut memory)
    }

    #[test]
    fn a_chain_of_frame_pointers_ends_with_zero() {
        let words = [0, 0x1020, 0x40_0001, 0, 0, 0x40_0002];
        assert_eq!(at((0x1000, 0x1008, false), &words), Ok(Caller { avma: 0x40_0001, stack_pointer: 0x1018, frame_pointer: 0x1020 }));
        assert_eq!(at((0x1018, 0x1020, true), &words), Ok(Caller { avma: 0x40_0002, stack_pointer: 0x1030, frame_pointer: 0 }));
        assert_eq!(at((0x1030, 0, true), &words), Err(Absent::End));
    }

    #[test]
    fn registers_that_are_no_frame_pointers_are_not_followed() {
        let words = [0x1000, 0x40_0001, 0x2000, 0x1234, 0, 0];
        let below = at((0x1008, 0x1000, false), &words);
        let to_itself = at((0x1000, 0x1000, false), &words);
        let into_data = at((0x1000, 0x1010, false), &words);
        let unaligned = at((0x1000, 0x1004, false), &words);
        let far_away = at((0x1000, u64::MAX - 7, false), &words);
        let zero = at((0x1000, 0, false), &words);
        for none in [below, to_itself, into_data, unaligned, far_away, zero] {
            assert_eq!(none, Err(Absent::NoFrame));
        }
        assert_eq!(at((0x1000, 0x1020, false), &words), Err(Absent::NoFrame), "zeros end a chain only behind a saved frame pointer");
        assert_eq!(at((0x1000, 0x1020, true), &words), Err(Absent::End));
        assert_eq!(at((0x1000, 0x1028, true), &words), Err(Absent::NoWord));
    }
}
