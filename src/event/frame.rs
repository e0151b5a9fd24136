//! What unwinding gives: frames, and why there are no more.

use std::num::NonZeroU32;

/// Of one mapped file ([`crate::stack::image::Image`]), in this run of rtrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageId(pub(crate) NonZeroU32);

impl ImageId {
    /// A number that leaves room for a relative address, and is never 0.
    #[inline]
    pub(crate) const fn key(self) -> u64 {
        (self.0.get() as u64) << 32
    }

    #[inline]
    pub(crate) fn of_key(key: u64) -> Option<Self> {
        NonZeroU32::new((key >> 32) as u32).map(Self)
    }
}

/// One function that had been entered and not left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it goes on: the instruction after the call, or the one that was interrupted.
    pub avma: u64,
    /// The same in its file; `avma` where there is none.
    pub svma: u64,
    /// The file that is mapped there.
    pub image: Option<ImageId>,
    /// The address is one after an instruction that did not end yet (a call, the system call), which may be the last one of its function.
    pub is_after: bool,
}

impl Frame {
    /// An address inside the instruction that runs: what function, line and inlined calls are to be looked up by.
    #[must_use]
    pub const fn lookup_avma(&self) -> u64 {
        self.avma.wrapping_sub(self.is_after as u64)
    }

    /// The same in its file.
    #[must_use]
    pub const fn lookup_svma(&self) -> u64 {
        self.svma.wrapping_sub(self.is_after as u64)
    }
}

/// Why a stack ends where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The function that nobody called: it says so, or a chain of frame pointers ends with zero.
    Root,
    /// As many frames as were asked for.
    Limit,
    /// A word above the dumped piece of the stack is needed: [`crate::stack::unwind::Unwound::stack_bytes`] says how far above.
    Truncated,
    /// A word is needed at this address, which is not on the stack that was dumped: the program has switched stacks.
    OtherStack { address: u64 },
    /// The file has nothing on how the function at this address is left, and its frame pointer is none.
    NoRule { avma: u64 },
    /// The function at this address is in a file that could not be read, and its frame pointer is none.
    Unread { avma: u64 },
    /// The caller of the function at this address is found by a register of which nobody told the value.
    NoRegister { avma: u64 },
    /// No code is mapped at the last frame's address.
    Unmapped { avma: u64 },
    /// A chain of frame pointers leads to this address, which is in no code: the program does not keep such a chain.
    NoCode { avma: u64 },
    /// The caller of this function would have its frame at or below it: the stack is not what the file says.
    NoProgress { avma: u64 },
    /// The kernel keeps the address that the last frame's function returns to, and has put that of its return probes there.
    ReturnProbe,
    /// The sample has no program counter or stack pointer.
    NoRegisters,
}
