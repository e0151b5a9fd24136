//! The text about the end of a task, which two styles print.

use crate::event::TaskEnd;
use crate::text::number;

/// Appends how a task ended: `+++ exited with 0 +++`. `name` appends the name of a signal; the styles write those of
/// real-time signals differently.
pub fn write(out: &mut Vec<u8>, end: TaskEnd, name: impl FnOnce(&mut Vec<u8>, i32)) {
    out.extend_from_slice(b"+++ ");
    match end {
        TaskEnd::Exited(status) => {
            out.extend_from_slice(b"exited with ");
            number::int(out, i64::from(status));
        }
        TaskEnd::Killed { signal, core_dumped } => {
            out.extend_from_slice(b"killed by ");
            name(out, signal);
            out.extend_from_slice(if core_dumped == Some(true) { b" (core dumped)" } else { b"" });
        }
        TaskEnd::Unknown => out.extend_from_slice(b"exited with ?"),
        TaskEnd::NotTraced => out.extend_from_slice(b"not traced any more: a set-user-ID program"),
    }
    out.extend_from_slice(b" +++");
}
