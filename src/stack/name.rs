//! What a frame is called.

use crate::event::Stack;
use crate::event::frame::Frame;

/// A frame as it is shown: a function that runs, or one that the compiler put into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedFrame<'a> {
    /// `None` where nothing names the address. Bytes from a foreign file: to be escaped.
    pub function: Option<&'a [u8]>,
    /// The file as the process knows it, `[kernel]`, a module's name in brackets; `None` where there is none.
    pub file: Option<&'a [u8]>,
    /// In the file, as its own headers count; in memory where there is no file.
    pub address: u64,
    /// Source file and line, if asked for and known.
    pub line: Option<(&'a [u8], u32)>,
    pub kernel: bool,
}

impl NamedFrame<'_> {
    /// As short as it can be told: the function, or file and address.
    pub fn label(&self) -> Vec<u8> {
        match (self.function, self.file) {
            (Some(function), _) => function.to_vec(),
            (None, Some(file)) => [file, format!("+{:#x}", self.address).as_bytes()].concat(),
            (None, None) => format!("{:#x}", self.address).into_bytes(),
        }
    }
}

/// Who knows names. Those that must be fetched first may come later.
pub trait Names {
    /// Gives the frames of a process's stack, innermost first.
    fn frames(&self, pid: i32, stack: &Stack, each: &mut dyn FnMut(NamedFrame));

    /// A process's function, and how many bytes behind its beginning it goes on.
    fn function(&self, pid: i32, frame: &Frame) -> Option<(Box<[u8]>, u64)>;

    /// The kernel's function at an address, and how many bytes behind its beginning that is.
    fn kernel(&self, address: u64) -> Option<(Box<[u8]>, u64)>;
}

/// Knows none.
#[cfg(test)]
#[derive(Debug)]
pub struct Nameless;

#[cfg(test)]
impl Names for Nameless {
    fn frames(&self, _: i32, stack: &Stack, each: &mut dyn FnMut(NamedFrame)) {
        for (at, frame) in stack.frames.iter().enumerate() {
            each(NamedFrame { address: frame.avma, kernel: at < stack.kernel, ..NamedFrame::default() });
        }
    }

    fn function(&self, _: i32, _: &Frame) -> Option<(Box<[u8]>, u64)> {
        None
    }

    fn kernel(&self, _: u64) -> Option<(Box<[u8]>, u64)> {
        None
    }
}
