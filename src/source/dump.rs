//! The stack data of a sample: the call chain that the kernel walked, and the user-space registers and stack memory
//! that it copied.
//!
//! The layout is that of perf_event_open(2) (PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER). The
//! module `stack` unwinds these bytes and names the frames.

use super::frame::field;
use crate::event::synthesized::StackMemory;

/// User-space registers and stack memory at the moment of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dump<'a> {
    /// The width of the registers, which is that of the program that ran.
    pub abi: RegisterAbi,
    /// The registers that are present: one bit for each `PERF_REG_*`, as in the event's `sample_regs_user`.
    pub mask: u64,
    /// The register values in the order of the bits in `mask`, 8 bytes each.
    pub registers: &'a [u8],
    /// The memory from the stack pointer upwards, as much as was requested and could be read.
    pub stack: &'a [u8],
    /// Whether the kernel could read less than was requested: the stack ends there, or the next page was not in memory.
    pub is_cut: bool,
}

/// `enum perf_sample_regs_abi`: the width of the task's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterAbi {
    /// Registers of 32 bits (PERF_SAMPLE_REGS_ABI_32).
    Bits32,
    /// Registers of 64 bits (PERF_SAMPLE_REGS_ABI_64).
    Bits64,
}

impl<'a> Dump<'a> {
    /// Parses the dump at the end of a sample. `layout` is the event's `sample_type`, and `mask` its
    /// `sample_regs_user`. Returns `None` if the sample has no dump, as samples of kernel threads.
    pub fn parse(bytes: &'a [u8], layout: u64, mask: u64) -> Option<Dump<'a>> {
        if layout & field::REGS_USER == 0 {
            return None;
        }
        let (abi, rest) = word(bytes)?;
        let abi = match abi {
            1 => RegisterAbi::Bits32,
            2 => RegisterAbi::Bits64,
            _ => return None,
        };
        let (registers, rest) = rest.split_at_checked(8 * mask.count_ones() as usize)?;
        let mut dump = Dump { abi, mask, registers, stack: &[], is_cut: false };
        if layout & field::STACK_USER != 0 {
            let (size, rest) = word(rest)?;
            let (stack, rest) = rest.split_at_checked(usize::try_from(size).ok()?)?;
            let used = if size == 0 { 0 } else { word(rest)?.0 };
            dump.stack = stack.get(..usize::try_from(used).ok()?)?;
            dump.is_cut = used < size;
        }
        Some(dump)
    }
}

impl<'a> From<&'a StackMemory> for Dump<'a> {
    fn from(memory: &'a StackMemory) -> Dump<'a> {
        let abi = if memory.is_wide { RegisterAbi::Bits64 } else { RegisterAbi::Bits32 };
        Dump { abi, mask: memory.mask, registers: &memory.registers, stack: &memory.stack, is_cut: false }
    }
}

/// The part of the system to which an address of a call chain belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The kernel (PERF_CONTEXT_KERNEL).
    Kernel,
    /// The program (PERF_CONTEXT_USER).
    User,
}

/// Returns the addresses of a call chain, innermost frame first: the interrupted instruction, then the return
/// addresses.
///
/// Context markers (`enum perf_callchain_context`) are not returned. They set the side of the addresses that follow
/// them.
pub fn chain(bytes: &[u8]) -> impl Iterator<Item = (Side, u64)> + '_ {
    /// PERF_CONTEXT_MAX, the smallest marker.
    const MARKERS: u64 = -4095i64 as u64;
    const KERNEL: u64 = -128i64 as u64;
    const USER: u64 = -512i64 as u64;
    let mut side = None;
    words(bytes).filter_map(move |address| match address {
        KERNEL => {
            side = Some(Side::Kernel);
            None
        }
        USER => {
            side = Some(Side::User);
            None
        }
        // Markers of a hypervisor or a guest.
        MARKERS.. => {
            side = None;
            None
        }
        address => side.map(|side| (side, address)),
    })
}

fn word(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*word), rest))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + use<'_> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: u64 = field::REGS_USER | field::STACK_USER;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_handwritten_dump_is_parsed() {
        // The ABI, two registers, the size, and three words of stack, of which two are used.
        let record = bytes(&[2, 7, 8, 24, 0xa, 0xb, 0xc, 16]);
        let dump = Dump::parse(&record, BOTH, 0b1001).unwrap();
        assert_eq!((dump.abi, dump.registers), (RegisterAbi::Bits64, &bytes(&[7, 8])[..]));
        assert_eq!((dump.stack, dump.is_cut), (&bytes(&[0xa, 0xb])[..], true));
        let whole = bytes(&[1, 7, 8, 8, 0xa, 8]);
        let dump = Dump::parse(&whole, BOTH, 0b1001).unwrap();
        assert_eq!((dump.abi, dump.stack.len(), dump.is_cut), (RegisterAbi::Bits32, 8, false));
    }

    #[test]
    fn kernel_threads_have_no_dump() {
        assert_eq!(Dump::parse(&bytes(&[0, 0]), BOTH, 0b11), None);
        assert_eq!(Dump::parse(&[], 0, 0), None);
        let without_stack = bytes(&[2, 7, 0]);
        assert!(Dump::parse(&without_stack, BOTH, 1).unwrap().stack.is_empty());
    }

    #[test]
    fn context_markers_separate_kernel_and_user_addresses() {
        let record = bytes(&[5, -128i64 as u64, 0xffff_ffff_8100_0000, -512i64 as u64, 0x40_1000, 0x40_2000, -1024i64 as u64, 9]);
        let expected = [(Side::Kernel, 0xffff_ffff_8100_0000), (Side::User, 0x40_1000), (Side::User, 0x40_2000)];
        assert_eq!(chain(&record).collect::<Vec<_>>(), expected);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_panic(bytes: Vec<u8>, registers: u64) {
            if let Some(dump) = Dump::parse(&bytes, BOTH, registers) {
                prop_assert_eq!(dump.registers.len(), 8 * registers.count_ones() as usize);
                prop_assert!(dump.stack.len() <= bytes.len());
            }
            prop_assert!(chain(&bytes).count() <= bytes.len() / 8);
        }
    }
}
