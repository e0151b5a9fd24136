//! The names of a frame, and the trait of what looks them up.

use super::symbols::BuildId;
use crate::event::Stack;
use crate::event::frame::Frame;

/// A frame as it is shown: a function, or one that the compiler inlined into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedFrame<'a> {
    /// The function's name, `None` if no symbol covers the address. It comes from a foreign file: the code that prints
    /// it escapes it.
    pub function: Option<&'a [u8]>,
    /// The mapped file's path in the process's mount namespace, `[kernel]`, or a module's name in brackets; `None` for
    /// memory without a file.
    pub file: Option<&'a [u8]>,
    /// The address as the file's headers and symbols state it (svma), or the address in memory if there is no file.
    pub address: u64,
    /// The address in the memory of the process, or of the kernel (avma).
    pub memory_address: u64,
    /// The build-id of the file, by which its debug file can be found later; `None` if the file has none.
    pub build_id: Option<BuildId>,
    /// The position in the file of the byte at the address.
    pub file_offset: Option<u64>,
    /// The distance of the address from the start of the function, in bytes; `None` for an inlined function.
    pub function_offset: Option<u64>,
    /// Whether the compiler inlined the function into that of the next frame.
    pub is_inlined: bool,
    /// Source file and line, if requested and known.
    pub line: Option<(&'a [u8], u32)>,
    /// Whether the frame is one of the kernel's.
    pub kernel: bool,
}

impl NamedFrame<'_> {
    /// Returns the shortest name: the function, else file and address, else the address.
    pub fn label(&self) -> Vec<u8> {
        match (self.function, self.file) {
            (Some(function), _) => function.to_vec(),
            (None, Some(file)) => [file, format!("+{:#x}", self.address).as_bytes()].concat(),
            (None, None) => format!("{:#x}", self.address).into_bytes(),
        }
    }
}

/// Looks up the names of frames. A name whose symbols are still being downloaded is missing at first.
pub trait Names {
    /// Calls `each` with the frames of a process's stack, innermost first.
    fn frames(&self, pid: i32, stack: &Stack, each: &mut dyn FnMut(NamedFrame));

    /// Returns the function of a frame of a process, and the offset in bytes from its start at which it goes on.
    fn function(&self, pid: i32, frame: &Frame) -> Option<(Box<[u8]>, u64)>;

    /// Returns the kernel's function at an address, and the offset of the address in bytes from its start.
    fn kernel(&self, address: u64) -> Option<(Box<[u8]>, u64)>;
}

/// A [`Names`] that has no name for any frame.
#[derive(Debug)]
pub struct Nameless;

impl Names for Nameless {
    fn frames(&self, _: i32, stack: &Stack, each: &mut dyn FnMut(NamedFrame)) {
        for (at, frame) in stack.frames.iter().enumerate() {
            let (address, kernel) = (frame.avma, at < stack.kernel);
            each(NamedFrame { address, memory_address: address, kernel, ..NamedFrame::default() });
        }
    }

    fn function(&self, _: i32, _: &Frame) -> Option<(Box<[u8]>, u64)> {
        None
    }

    fn kernel(&self, _: u64) -> Option<(Box<[u8]>, u64)> {
        None
    }
}
