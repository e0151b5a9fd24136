//! The results of stack unwinding: frames, and the reason why a stack ends.

use std::num::NonZeroU32;

/// Identifies one mapped file ([`crate::stack::image::Image`]) within this run of rtrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageId(pub(crate) NonZeroU32);

impl ImageId {
    /// Returns a key with the image in its upper 32 bits, and the lower 32 bits free for a relative address. It is
    /// never 0.
    #[inline]
    pub(crate) const fn key(self) -> u64 {
        (self.0.get() as u64) << 32
    }

    #[inline]
    pub(crate) fn of_key(key: u64) -> Option<Self> {
        NonZeroU32::new((key >> 32) as u32).map(Self)
    }
}

/// One stack frame: a function that was entered and has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The address at which the function continues: the instruction after the call, or the interrupted one.
    pub avma: u64,
    /// The same address as an address in the file; `avma` if no file is known.
    pub svma: u64,
    /// The file that is mapped at the address.
    pub image: Option<ImageId>,
    /// The address follows an instruction that has not completed (a call, a syscall instruction). That instruction may
    /// be the last one of its function.
    pub is_after: bool,
}

impl Frame {
    /// Returns an address inside the instruction that is being executed, for the lookup of function, line and inlined
    /// frames.
    #[must_use]
    pub const fn lookup_avma(&self) -> u64 {
        self.avma.wrapping_sub(self.is_after as u64)
    }

    /// Returns the same as an address in the file.
    #[must_use]
    pub const fn lookup_svma(&self) -> u64 {
        self.svma.wrapping_sub(self.is_after as u64)
    }
}

/// The reason why a stack has no further frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackEnd {
    /// The outermost function was reached: the unwind table marks it, or a chain of frame pointers ends with zero.
    Root,
    /// The requested number of frames was reached.
    Limit,
    /// Unwinding needs a word above the copied part of the stack; [`crate::stack::unwind::Unwound::stack_bytes`] is how
    /// far above.
    Truncated,
    /// Unwinding needs a word above the copied part of the stack, and the kernel could not read more of it.
    StackNotRead,
    /// Unwinding needs the word at this address, which is not on the copied stack: the program has switched stacks.
    OtherStack {
        /// The address of the word.
        address: u64,
    },
    /// The file has no unwind rule for the function at this address, and the frame pointer register does not hold a
    /// frame pointer.
    NoRule {
        /// The address in the function.
        avma: u64,
    },
    /// The function at this address is in a file that could not be read, and the frame pointer register does not hold a
    /// frame pointer.
    Unread {
        /// The address in the function.
        avma: u64,
    },
    /// The CFA or return address of the function at this address depends on a register whose value was not recorded.
    NoRegister {
        /// The address in the function.
        avma: u64,
    },
    /// No code is mapped at the last frame's address.
    Unmapped {
        /// The address of the last frame.
        avma: u64,
    },
    /// A chain of frame pointers leads to this address, which is not in code: the program does not maintain such a
    /// chain.
    NoCode {
        /// The address that the chain leads to.
        avma: u64,
    },
    /// The caller's frame would be at or below the frame of the function at this address: the stack does not match the
    /// unwind table.
    NoProgress {
        /// The address in the function.
        avma: u64,
    },
    /// A return probe has replaced the return address of the last frame's function on the stack by its trampoline; the
    /// kernel keeps the original address.
    ReturnProbe,
    /// The sample has no program counter or stack pointer.
    NoRegisters,
}
