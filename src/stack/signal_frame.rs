//! Finds the function that a signal interrupted, if no unwind table covers the code that the handler returns to: musl's
//! and Go's, and the vdso's on aarch64.
//!
//! The kernel's signal frame is recognized by its contents: words that are zero, constants that the kernel writes, a
//! program counter in mapped code. Its layout is ABI.

use crate::stack::registers::Architecture;
use crate::stack::space::AddressSpace;

/// The registers of the interrupted function.
#[derive(Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The program counter: the address of the instruction that the function continues with.
    pub avma: u64,
    /// The stack pointer at the interruption.
    pub stack_pointer: u64,
    /// The value of the frame pointer's register, which may be anything.
    pub frame_pointer: u64,
    /// The link register, which may still have the return address; `None` on architectures without one.
    pub link_register: Option<u64>,
}

/// Reads a signal frame. `stack_pointer` is its value in the code that the handler returned to.
pub fn interrupted(
    architecture: Architecture,
    space: &AddressSpace,
    stack_pointer: u64,
    memory: &mut impl FnMut(u64) -> Option<u64>,
) -> Option<Interrupted> {
    let mut word = |offset: u64| memory(stack_pointer.checked_add(offset)?);
    let found = match architecture {
        Architecture::X86_64 => x86_64(&mut word)?,
        Architecture::Aarch64 => aarch64(&mut word)?,
        Architecture::X86 => return None,
    };
    space.find(found.avma, &mut 0).map(|_| found)
}

/// Reads a `struct rt_sigframe` without its return address. It begins with `struct ucontext`
/// (arch/x86/include/asm/sigframe.h, asm-generic/ucontext.h, uapi/asm/sigcontext.h).
fn x86_64(word: &mut impl FnMut(u64) -> Option<u64>) -> Option<Interrupted> {
    /// `UC_FP_XSTATE`, `UC_SIGCONTEXT_SS`, `UC_STRICT_RESTORE_SS`.
    const FLAGS: u64 = 7;
    /// `__USER_CS`.
    const CODE_SEGMENT: u64 = 0x33;
    /// `__USER_DS`, or 0 in kernels that do not save it.
    const STACK_SEGMENTS: [u64; 2] = [0, 0x2b];
    /// The bit that is always set in the flags register.
    const FIXED: u64 = 2;
    let (flags, link) = (word(0)?, word(8)?);
    if flags & !FLAGS != 0 || link != 0 {
        return None;
    }
    let (eflags, segments) = (word(176)?, word(184)?);
    if eflags >> 32 != 0 || eflags & FIXED == 0 || segments & 0xffff != CODE_SEGMENT || !STACK_SEGMENTS.contains(&(segments >> 48)) {
        return None;
    }
    Some(Interrupted { avma: word(168)?, stack_pointer: word(160)?, frame_pointer: word(120)?, link_register: None })
}

/// Reads a `struct rt_sigframe`: `siginfo_t` and `struct ucontext` (arch/arm64/kernel/signal.c,
/// arch/arm64/include/uapi/asm/{ucontext,sigcontext}.h).
fn aarch64(word: &mut impl FnMut(u64) -> Option<u64>) -> Option<Interrupted> {
    const UCONTEXT: u64 = 128;
    const REGISTERS: u64 = UCONTEXT + 184;
    /// The area behind the registers and padding. Its first record is that of the floating-point registers.
    const RESERVED: u64 = UCONTEXT + 176 + 288;
    /// `FPSIMD_MAGIC`, and the size of that record.
    const FPSIMD: u64 = 0x4650_8001 | 528 << 32;
    if word(UCONTEXT)? != 0 || word(UCONTEXT + 8)? != 0 || word(RESERVED)? != FPSIMD {
        return None;
    }
    let mut register = |number: u64| word(REGISTERS + number * 8);
    Some(Interrupted {
        avma: register(32)?,
        stack_pointer: register(31)?,
        frame_pointer: register(29)?,
        link_register: Some(register(30)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(architecture: Architecture, words: &[u64]) -> Option<Interrupted> {
        let mut space = AddressSpace::default();
        space.map_code(0x40_0000..0x50_0000);
        interrupted(architecture, &space, 0x1000, &mut |address| words.get((address.checked_sub(0x1000)? / 8) as usize).copied())
    }

    /// Returns a signal frame. Each word that is not needed to recognize it is its own index.
    fn frame(architecture: Architecture) -> Vec<u64> {
        let mut words: Vec<u64> = (0..100).collect();
        let changes: &[(usize, u64)] = match architecture {
            Architecture::X86_64 => &[(0, 7), (1, 0), (21, 0x40_0010), (22, 0x246), (23, 0x2b << 48 | 0x33)],
            _ => &[(16, 0), (17, 0), (16 + 23 + 32, 0x40_0010), (16 + 22 + 36, 0x210_4650_8001)],
        };
        for (place, value) in changes {
            words[*place] = *value;
        }
        words
    }

    #[test]
    fn registers_are_read_at_the_offsets_of_the_kernels_layout() {
        let x86_64 = Interrupted { avma: 0x40_0010, stack_pointer: 20, frame_pointer: 15, link_register: None };
        assert_eq!(at(Architecture::X86_64, &frame(Architecture::X86_64)), Some(x86_64));
        let aarch64 = Interrupted { avma: 0x40_0010, stack_pointer: 39 + 31, frame_pointer: 39 + 29, link_register: Some(39 + 30) };
        assert_eq!(at(Architecture::Aarch64, &frame(Architecture::Aarch64)), Some(aarch64));
    }

    #[test]
    fn words_with_other_contents_are_no_signal_frame() {
        for (architecture, places) in [(Architecture::X86_64, &[0, 1, 21, 22, 23][..]), (Architecture::Aarch64, &[16, 17, 71, 74][..])] {
            for place in places {
                let mut words = frame(architecture);
                words[*place] = 0x1234_0000_5678;
                assert_eq!(at(architecture, &words), None, "{architecture:?}, word {place}");
            }
            assert_eq!(at(architecture, &frame(architecture)[..20]), None);
            assert_eq!(at(architecture, &[0; 100]), None);
        }
    }
}
