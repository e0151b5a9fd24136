//! The line about the beginning of a task, which the lines of strace's style and its table of calls print.

use crate::event::TaskId;

/// Appends that a new task is traced.
pub fn write(out: &mut Vec<u8>, task: TaskId) {
    out.extend_from_slice(format!("strace: Process {} attached\n", task.tid).as_bytes());
}
