//! Prints the callers of a call below its line (`-k`): ` > /lib/libc.so.6(read+0x10) [0x10e1a0]`.

use super::quote;
use crate::event::Stack;
use crate::event::frame::StackEnd;
use crate::stack::name::{NamedFrame, Names};
use std::io::Write;

/// Appends a line for each frame of the program.
pub fn write(out: &mut Vec<u8>, pid: i32, stack: &Stack, names: &dyn Names) {
    names.frames(pid, stack, &mut |frame| {
        if !frame.kernel {
            line(out, &frame);
        }
    });
    if stack.end == Some(StackEnd::Limit) {
        out.extend_from_slice(b" > too many stack frames\n");
    }
}

/// Appends a line: the file with the function and the offset in it, the position in the file, and the source line if it
/// was asked for.
fn line(out: &mut Vec<u8>, frame: &NamedFrame) {
    out.extend_from_slice(b" > ");
    if let Some(file) = frame.file {
        quote::escaped(out, file, b"");
        out.push(b'(');
        frame.function.iter().for_each(|function| quote::escaped(out, function, b""));
        // Writing to a Vec does not fail.
        _ = write!(out, "+{:#x}) ", frame.function_offset.unwrap_or_default());
    }
    _ = write!(out, "[{:#x}]", frame.file_offset.unwrap_or(frame.address));
    if let Some((file, line)) = frame.line {
        out.push(b' ');
        quote::escaped(out, file, b"");
        _ = write!(out, ":{line}");
    }
    out.push(b'\n');
}
