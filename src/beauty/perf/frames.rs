//! The frames under a call: a line each, indented as perf indents them.
//!
//! ```text
//!                                       clock_nanosleep (/usr/lib/x86_64-linux-gnu/libc.so.6)
//!                                       /usr/bin/sleep+0x2a74
//! ```
//! An address that no symbol holds is the file and the address in it, as addr2line takes it. Where a stack ends too early, a last line in brackets says why.

use crate::event::Stack;
use crate::event::frame::End;
use crate::stack::name::{NamedFrame, Names};
use crate::text::{escape, number};

/// As perf does it under a call.
pub const INDENT: usize = 38;

/// The lines of a stack's frames, `indent` columns in.
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

/// Why there are no more frames, where there ought to be.
fn end(stack: &Stack) -> Option<String> {
    Some(match stack.end? {
        End::Root | End::Limit => return None,
        End::Truncated => format!("[only {} bytes of stack were copied; --call-graph dwarf,SIZE copies more]", stack.copied),
        End::OtherStack { .. } => "[the callers are on another stack, which was not copied]".to_owned(),
        End::NoRule { .. } => "[the callers cannot be found: here are neither unwind tables nor a frame pointer]".to_owned(),
        End::Unread { .. } => "[the callers cannot be found: this file was not read, as its file system does not answer]".to_owned(),
        End::NoRegister { .. } => {
            "[the callers cannot be found: of a task that sleeps, only its stack pointer is known without BPF (--engine bpf)]".to_owned()
        }
        End::Unmapped { .. } => "[no code is known to be there]".to_owned(),
        End::NoCode { .. } => "[the chain of frame pointers ends here; --call-graph dwarf does without one]".to_owned(),
        End::NoProgress { .. } => "[the unwind tables do not fit this stack]".to_owned(),
        End::ReturnProbe => "[the callers cannot be found: a return probe keeps the address that this function returns to]".to_owned(),
        End::NoRegisters => "[the kernel gave no registers]".to_owned(),
    })
}
