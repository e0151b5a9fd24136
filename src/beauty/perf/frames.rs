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
        StackEnd::Truncated => format!("[only {} bytes of stack were copied; --call-graph dwarf,SIZE copies more]", stack.copied),
        StackEnd::OtherStack { .. } => "[the callers are on another stack, which was not copied]".to_owned(),
        StackEnd::NoRule { .. } => "[the callers cannot be found: here are neither unwind tables nor a frame pointer]".to_owned(),
        StackEnd::Unread { .. } => "[the callers cannot be found: this file was not read, as its file system does not answer]".to_owned(),
        StackEnd::NoRegister { .. } => {
            "[the callers cannot be found: of a task that sleeps, only its stack pointer is known without BPF (--engine bpf)]".to_owned()
        }
        StackEnd::Unmapped { .. } => "[no code is known to be there]".to_owned(),
        StackEnd::NoCode { .. } => "[the chain of frame pointers ends here; --call-graph dwarf does without one]".to_owned(),
        StackEnd::NoProgress { .. } => "[the unwind tables do not fit this stack]".to_owned(),
        StackEnd::ReturnProbe => "[the callers cannot be found: a return probe keeps the address that this function returns to]".to_owned(),
        StackEnd::NoRegisters => "[the kernel gave no registers]".to_owned(),
    })
}
