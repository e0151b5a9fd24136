//! The registers a stack is unwound from, by their DWARF numbers, and what differs per architecture.
//!
//! Nothing here is specific to one architecture: the twin files of this folder are data of the same shape.

pub mod aarch64;
pub mod x86;
pub mod x86_64;

/// How many registers are kept: the DWARF numbers of general registers, and the program counter.
const COUNT: usize = 33;

/// Of a task, not of a machine: a 32-bit program on a 64-bit kernel is `X86`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    X86_64,
    X86,
    Aarch64,
}

/// What unwinding has to know of an architecture. Registers are DWARF numbers.
#[derive(Debug)]
pub struct Layout {
    pub name: &'static str,
    /// 8, or 4 in a 32-bit program. Stack slots have this size.
    pub word_bytes: u8,
    /// Its number here; on x86 the psABI's return address column, too.
    pub program_counter: u8,
    pub stack_pointer: u8,
    /// Where the ABI keeps the chain of frames: at it the caller's, one word above the return address.
    pub frame_pointer: u8,
    /// The register in which a call leaves the return address, where it does not push it.
    pub link_register: Option<u8>,
    /// Bit per register that a function gives back unchanged.
    pub preserved: u64,
    /// Bits of a code address; the others may be a signature.
    pub code_address_mask: u64,
    /// Bit per perf register (`PERF_REG_*`, asm/perf_regs.h) that a sample should have, for `sample_regs_user`.
    pub sample_mask: u64,
    /// DWARF number of each perf register, or [`NONE`].
    pub of_perf: &'static [u8],
}

impl Layout {
    /// A function gives this register back unchanged. What a file's tables call a register may be none.
    pub fn preserves(&self, number: u8) -> bool {
        self.preserved.checked_shr(number.into()).is_some_and(|bits| bits & 1 == 1)
    }
}

/// A perf register that unwinding has no use for.
pub const NONE: u8 = u8::MAX;

impl Architecture {
    /// What this program was built for, if stacks of it can be unwound.
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

    #[must_use]
    pub const fn layout(self) -> &'static Layout {
        match self {
            Self::X86_64 => &x86_64::LAYOUT,
            Self::X86 => &x86::LAYOUT,
            Self::Aarch64 => &aarch64::LAYOUT,
        }
    }
}

/// A task's user registers, as far as they are known.
#[derive(Clone, Debug)]
pub struct Registers {
    architecture: Architecture,
    values: [u64; COUNT],
    /// Bit per register.
    known: u64,
}

impl Registers {
    /// None is known.
    #[must_use]
    pub const fn new(architecture: Architecture) -> Self {
        Self { architecture, values: [0; COUNT], known: 0 }
    }

    /// From a PERF_SAMPLE_REGS_USER field: `mask` is the event's `sample_regs_user`, `values` holds eight bytes for each of its bits, lowest bit first. What is missing at the end
    /// stays unknown.
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

    #[must_use]
    pub const fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// A register by its DWARF number; numbers that are not kept are ignored.
    pub fn set(&mut self, number: u8, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(number)) {
            *slot = value;
            self.known |= 1 << number;
        }
    }

    #[must_use]
    pub fn get(&self, number: u8) -> Option<u64> {
        (number < COUNT as u8 && self.known >> number & 1 == 1).then(|| self.values[usize::from(number)])
    }

    /// Whether nothing is known but the program counter and the stack pointer.
    #[must_use]
    pub fn are_pointers_alone(&self) -> bool {
        let layout = self.architecture.layout();
        self.known & !(1 << layout.program_counter | 1 << layout.stack_pointer) == 0
    }

    #[must_use]
    pub fn program_counter(&self) -> Option<u64> {
        self.get(self.architecture.layout().program_counter)
    }

    #[must_use]
    pub fn stack_pointer(&self) -> Option<u64> {
        self.get(self.architecture.layout().stack_pointer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_its_registers_in_the_order_of_perf() {
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
    fn what_a_sample_is_asked_for_is_what_unwinding_knows() {
        for architecture in [Architecture::X86_64, Architecture::X86, Architecture::Aarch64] {
            let layout = architecture.layout();
            let mut numbers = Vec::new();
            for (perf, &number) in layout.of_perf.iter().enumerate() {
                assert_eq!(layout.sample_mask >> perf & 1 == 1, number != NONE, "{} perf register {perf}", layout.name);
                numbers.extend((number != NONE).then_some(number));
            }
            numbers.sort_unstable();
            let count = numbers.len();
            numbers.dedup();
            assert_eq!(count, numbers.len(), "{}: two perf registers are the same DWARF register", layout.name);
            for needed in [layout.program_counter, layout.stack_pointer, layout.frame_pointer] {
                assert!(numbers.contains(&needed), "{} has no register {needed}", layout.name);
            }
        }
    }
}
