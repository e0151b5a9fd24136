//! Call chains.

use super::frame::{Frame, StackEnd};

/// A call chain, innermost frame first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// The frames of the kernel, if there are any, and then those of user space.
    pub frames: Box<[Frame]>,
    /// The number of kernel frames at the beginning.
    pub kernel: usize,
    /// Why there are no further frames of user space; `None` if the kernel walked the stack, which reports no reason,
    /// or if no user frames were requested.
    pub end: Option<StackEnd>,
    /// Bytes of stack that were copied.
    pub copied: usize,
}

impl Stack {
    /// Returns the heap memory that the frames take, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.frames)
    }
}
