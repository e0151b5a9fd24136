//! Prints the stack frames of an event below its line, one line for each, indented as perf does it.
//!
//! ```text
//!                                       clock_nanosleep (/usr/lib/x86_64-linux-gnu/libc.so.6)
//!                                       /usr/bin/sleep+0x2a74
//! ```
//! An address without a symbol is printed as the file and the address in the file, as addr2line accepts it. If the
//! stack ends before the root, a last line in brackets states the reason.

use crate::event::Stack;
use crate::event::frame::StackEnd;
use crate::stack::name::{NamedFrame, Names};
use crate::text::{escape, number};

/// The indentation, in columns, that perf trace uses below a call.
pub const INDENT: usize = 38;

/// Writes the lines of a stack's frames, indented by `indent` columns.
pub fn write(out: &mut Vec<u8>, pid: i32, stack: &Stack, indent: usize, names: &dyn Names) {
    names.frames(pid, stack, &mut |frame| {
        number::blanks(out, indent);
        line(out, &frame);
        out.push(b'\n');
    });
    if let Some(why) = end(stack) {
        number::blanks(out, indent);
        out.extend_from_slice(why.as_bytes());
        out.push(b'\n');
    }
}

fn line(out: &mut Vec<u8>, frame: &NamedFrame) {
    match (frame.function, frame.file) {
        (Some(function), file) => {
            escape::plain(out, function);
            if let Some(file) = file {
                out.extend_from_slice(b" (");
                escape::plain(out, file);
                out.push(b')');
            }
        }
        (None, Some(file)) => {
            escape::plain(out, file);
            out.push(b'+');
            number::hex(out, frame.address);
        }
        (None, None) => number::hex(out, frame.address),
    }
    if let Some((file, line)) = frame.line {
        out.push(b' ');
        escape::plain(out, file);
        out.push(b':');
        number::uint(out, u64::from(line));
    }
}

/// Returns the message that states why the stack has no more frames; `None` if it reached the root or the limit.
fn end(stack: &Stack) -> Option<String> {
    Some(match stack.end? {
        StackEnd::Root | StackEnd::Limit => return None,
        StackEnd::Truncated => {
            format!("[only {} bytes of stack were copied; --call-graph dwarf,SIZE copies more of a deeper stack]", stack.copied)
        }
        StackEnd::StackNotRead => format!("[the callers are unknown: only {} bytes of this stack could be read]", stack.copied),
        StackEnd::OtherStack { .. } => "[the callers are on another stack, which was not copied]".to_owned(),
        StackEnd::NoRule { .. } => "[the callers are unknown: this address has no unwind table and no frame pointer]".to_owned(),
        StackEnd::Unread { .. } => "[the callers are unknown: this file could not be read]".to_owned(),
        StackEnd::NoRegister { .. } => {
            "[the callers are unknown: without BPF, only the stack pointer of a sleeping task is known (--engine bpf)]".to_owned()
        }
        StackEnd::Unmapped { .. } => "[no code is mapped at this address]".to_owned(),
        StackEnd::NoCode { .. } => "[the chain of frame pointers ends here; --call-graph dwarf needs none]".to_owned(),
        StackEnd::NoProgress { .. } => "[the unwind tables do not match this stack]".to_owned(),
        StackEnd::ReturnProbe => "[the callers are unknown: a return probe has replaced the return address of this function]".to_owned(),
        StackEnd::NoRegisters => "[the kernel recorded no registers]".to_owned(),
    })
}
