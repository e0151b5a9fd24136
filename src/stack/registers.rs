//! The registers from which a stack is unwound, by their DWARF numbers.
//!
//! Nothing in this file is specific to one architecture: the files of its folder have a [`Layout`] for each.

pub mod aarch64;
pub mod x86;
pub mod x86_64;

use crate::event::Abi;

/// The number of registers that are stored: the general registers by their DWARF numbers, and the program counter.
const COUNT: usize = 33;

/// The architecture of a task, not of the machine: a 32-bit program on a 64-bit kernel is `X86`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// A 64-bit or x32 program of x86-64.
    X86_64,
    /// A 32-bit program of x86 (i386).
    X86,
    /// A 64-bit program of arm64.
    Aarch64,
}

/// The properties of an architecture that unwinding needs. Registers are DWARF numbers.
#[derive(Debug)]
pub struct Layout {
    /// The size of a stack slot: 8, or 4 in a 32-bit program.
    pub word_bytes: u8,
    /// The number of the program counter in [`Registers`]. On x86 it is also the psABI's return address column.
    pub program_counter: u8,
    /// The number of the stack pointer.
    pub stack_pointer: u8,
    /// The register that the ABI's chain of frames begins with: it points to the caller's frame pointer, and the return
    /// address is one word above that.
    pub frame_pointer: u8,
    /// The register in which a call instruction puts the return address, if it does not push it.
    pub link_register: Option<u8>,
    /// A bit for each register that a function preserves (callee-saved).
    pub preserved: u64,
    /// The bits of a code address. The others may be a pointer authentication code.
    pub code_address_mask: u64,
    /// The perf registers (`PERF_REG_*`, asm/perf_regs.h) that a sample should have, one bit each, for
    /// `sample_regs_user`.
    pub sample_mask: u64,
    /// The DWARF number of each perf register, or [`NONE`].
    pub of_perf: &'static [u8],
}

impl Layout {
    /// Whether a function preserves this register. Tables of a damaged file may have numbers of no register.
    pub fn preserves(&self, number: u8) -> bool {
        self.preserved.checked_shr(number.into()).is_some_and(|bits| bits & 1 == 1)
    }
}

/// The entry in [`Layout::of_perf`] of a register that unwinding does not use.
pub const NONE: u8 = u8::MAX;

impl Architecture {
    /// Returns the architecture of the programs with this ABI.
    #[must_use]
    pub const fn of(abi: Abi) -> Self {
        match abi {
            Abi::X86_64 | Abi::X32 => Self::X86_64,
            Abi::I386 => Self::X86,
            Abi::Aarch64 => Self::Aarch64,
        }
    }

    /// Returns the architecture that rtrace was built for, if its stacks can be unwound.
    #[must_use]
    pub const fn host() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// Returns the properties of the architecture that unwinding needs.
    #[must_use]
    pub const fn layout(self) -> &'static Layout {
        match self {
            Self::X86_64 => &x86_64::LAYOUT,
            Self::X86 => &x86::LAYOUT,
            Self::Aarch64 => &aarch64::LAYOUT,
        }
    }
}

/// A task's user registers, as far as their values are known.
#[derive(Clone, Debug)]
pub struct Registers {
    architecture: Architecture,
    values: [u64; COUNT],
    /// A bit for each register whose value is known.
    known: u64,
}

impl Registers {
    /// Creates registers without any value.
    #[must_use]
    pub const fn new(architecture: Architecture) -> Self {
        Self { architecture, values: [0; COUNT], known: 0 }
    }

    /// Decodes a PERF_SAMPLE_REGS_USER field. `mask` is the event's `sample_regs_user`, `values` has eight bytes for
    /// each of its bits, lowest bit first. Registers that are missing at the end have no value.
    #[must_use]
    pub fn from_sample(architecture: Architecture, mask: u64, values: &[u8]) -> Self {
        let mut registers = Self::new(architecture);
        let layout = architecture.layout();
        let mut left = mask;
        for value in values.as_chunks::<8>().0 {
            if left == 0 {
                break;
            }
            let perf = left.trailing_zeros() as usize;
            left &= left - 1;
            if let Some(&number) = layout.of_perf.get(perf).filter(|&&number| number != NONE) {
                registers.set(number, u64::from_ne_bytes(*value));
            }
        }
        registers
    }

    /// Returns the architecture of the task.
    #[must_use]
    pub const fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Sets a register by its DWARF number. Numbers of other registers than the general ones are ignored.
    pub fn set(&mut self, number: u8, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(number)) {
            *slot = value;
            self.known |= 1 << number;
        }
    }

    /// Returns the value of a register by its DWARF number; `None` if it is not known.
    #[must_use]
    pub fn get(&self, number: u8) -> Option<u64> {
        (number < COUNT as u8 && self.known >> number & 1 == 1).then(|| self.values[usize::from(number)])
    }

    /// Whether only the program counter and the stack pointer are known.
    #[must_use]
    pub fn are_pointers_alone(&self) -> bool {
        let layout = self.architecture.layout();
        self.known & !(1 << layout.program_counter | 1 << layout.stack_pointer) == 0
    }

    /// Returns the address of the next instruction of the task; `None` if it is not known.
    #[must_use]
    pub fn program_counter(&self) -> Option<u64> {
        self.get(self.architecture.layout().program_counter)
    }

    /// Returns the address of the lowest byte of the stack that is in use; `None` if it is not known.
    #[must_use]
    pub fn stack_pointer(&self) -> Option<u64> {
        self.get(self.architecture.layout().stack_pointer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_registers_are_decoded_in_perf_order() {
        // PERF_REG_X86_AX, _SP, _IP and _R15 are bits 0, 7, 8 and 23.
        let mask = 1 | 1 << 7 | 1 << 8 | 1 << 23;
        let bytes: Vec<u8> = [10_u64, 20, 30, 40].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let registers = Registers::from_sample(Architecture::X86_64, mask, &bytes);
        assert_eq!(
            (registers.get(0), registers.stack_pointer(), registers.program_counter(), registers.get(15)),
            (Some(10), Some(20), Some(30), Some(40))
        );
        assert_eq!((registers.get(6), registers.get(200)), (None, None));
        let cut = Registers::from_sample(Architecture::X86_64, mask, &bytes[..20]);
        assert_eq!((cut.stack_pointer(), cut.program_counter()), (Some(20), None));
    }

    #[test]
    fn the_sample_mask_has_exactly_the_registers_that_unwinding_uses() {
        for architecture in [Architecture::X86_64, Architecture::X86, Architecture::Aarch64] {
            let layout = architecture.layout();
            let mut numbers = Vec::new();
            for (perf, &number) in layout.of_perf.iter().enumerate() {
                assert_eq!(layout.sample_mask >> perf & 1 == 1, number != NONE, "{architecture:?} perf register {perf}");
                numbers.extend((number != NONE).then_some(number));
            }
            numbers.sort_unstable();
            let count = numbers.len();
            numbers.dedup();
            assert_eq!(count, numbers.len(), "{architecture:?}: two perf registers are the same DWARF register");
            for needed in [layout.program_counter, layout.stack_pointer, layout.frame_pointer] {
                assert!(numbers.contains(&needed), "{architecture:?} has no register {needed}");
            }
        }
    }
}
