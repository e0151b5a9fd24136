//! Where a call was made from.

use super::frame::{End, Frame};

/// The functions that had been entered and not left, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    pub frames: Box<[Frame]>,
    /// How many of the first are the kernel's own.
    pub kernel: usize,
    /// Why there are no more frames of user space; `None` where the kernel walked them, which does not say, or where none were asked for.
    pub end: Option<End>,
    /// Bytes of stack that were copied.
    pub copied: usize,
}

impl Stack {
    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.frames)
    }
}
