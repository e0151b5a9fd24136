//! The stacks of events.

use super::{Elements, object};
use crate::beauty::style::StyleContext;
use crate::event::frame::StackEnd;
use crate::event::{Event, Stack};
use crate::stack::name::Names;

/// Writes the frames, innermost first, and the reason why there are no more of them.
pub(super) fn stack(o: &mut Elements, event: &Event, stack: Option<&Stack>, context: &StyleContext) {
    if let Some(stack) = stack {
        members(o, event.task.pid, stack, context.names);
    }
}

/// Writes an object with the same members for a stack of a process.
pub fn write(out: &mut Vec<u8>, pid: i32, stack: &Stack, names: &dyn Names) {
    object(out, |o| members(o, pid, stack, names));
}

fn members(o: &mut Elements, pid: i32, stack: &Stack, names: &dyn Names) {
    o.array("stack", |a| {
        names.frames(pid, stack, &mut |frame| {
            object(a.item(), |o| {
                o.hex("address", frame.address);
                o.hex("memory_address", frame.memory_address);
                frame.file.iter().for_each(|file| o.bytes("file", file));
                frame.build_id.iter().for_each(|build_id| o.word("build_id", &build_id.to_string()));
                frame.file_offset.iter().for_each(|offset| o.hex("file_offset", *offset));
                frame.function.iter().for_each(|function| o.bytes("function", function));
                frame.function_offset.iter().for_each(|offset| o.uint("offset", *offset));
                if let Some((file, line)) = frame.line {
                    o.bytes("source", file);
                    o.uint("line", u64::from(line));
                }
                o.mark("inlined", frame.is_inlined);
                o.mark("kernel", frame.kernel);
            });
        });
    });
    if let Some(end) = stack.end.filter(|end| *end != StackEnd::Root) {
        let why = match end {
            StackEnd::Root => "root",
            StackEnd::Limit => "limit",
            StackEnd::Truncated => "truncated",
            StackEnd::StackNotRead => "stack_not_read",
            StackEnd::OtherStack { .. } => "other_stack",
            StackEnd::NoRule { .. } => "no_unwind_rule",
            StackEnd::Unread { .. } => "file_not_read",
            StackEnd::NoRegister { .. } => "no_register",
            StackEnd::NoRegisters => "no_registers",
            StackEnd::Unmapped { .. } => "unmapped",
            StackEnd::NoCode { .. } => "no_code",
            StackEnd::NoProgress { .. } => "no_progress",
            StackEnd::ReturnProbe => "return_probe",
        };
        o.word("stack_ends", why);
        if matches!(end, StackEnd::Truncated | StackEnd::StackNotRead) {
            o.uint("stack_copied", stack.copied as u64);
        }
    }
}
