//! `strace -b execve`: what a process does after it has executed a program is not shown, nor what its children do.

use crate::beauty::lookup;
use crate::event::{Event, EventKind, ExitState};
use crate::syscall::special::Special;
use rustc_hash::FxHashSet;

/// The processes that are not shown any more.
#[derive(Debug)]
pub struct Detached {
    /// Whether the next program is the command, which is shown.
    starts_command: bool,
    processes: FxHashSet<i32>,
}

impl Detached {
    /// `starts_command`: the first program that is executed is the command.
    pub fn new(starts_command: bool) -> Detached {
        Detached { starts_command, processes: FxHashSet::default() }
    }

    /// Returns whether an event is of a process that is not shown any more. A call that executes a program is the last
    /// one of its process, and is marked.
    pub fn has(&mut self, event: &mut Event) -> bool {
        let pid = event.task.pid;
        if self.processes.contains(&pid) {
            match &event.kind {
                EventKind::Fork { child, .. } => _ = self.processes.insert(child.pid),
                EventKind::Exit(_) if event.task.tid == pid => _ = self.processes.remove(&pid),
                _ => {}
            }
            return true;
        }
        let EventKind::Call(call) = &mut event.kind else { return false };
        let executes = lookup::row(call.abi, call.nr).is_some_and(|row| matches!(row.does, Special::Execve | Special::Execveat));
        if executes && matches!(call.exit, ExitState::Returned { ret: 0, .. }) && !std::mem::take(&mut self.starts_command) {
            self.processes.insert(pid);
            call.detached = true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::samples;
    use crate::event::{Call, TaskEnd, TaskId, Time};

    fn event(pid: i32, kind: EventKind) -> Event {
        Event { task: TaskId { pid, tid: pid }, ..samples::event(Time(1), kind) }
    }

    fn execve(pid: i32, ret: i64) -> Event {
        let call = Call { nr: 59, exit: ExitState::Returned { at: Time(1), ret }, ..samples::call([0; 6], ret) };
        event(pid, EventKind::Call(Box::new(call)))
    }

    fn is_marked(event: &Event) -> bool {
        matches!(&event.kind, EventKind::Call(call) if call.detached)
    }

    #[test]
    fn processes_and_their_children_are_left_out_after_an_execve_that_is_not_the_commands_own() {
        let mut detached = Detached::new(true);
        let mut own = execve(7, 0);
        assert!(!detached.has(&mut own) && !is_marked(&own), "the command itself");
        let mut failed = execve(8, -2);
        assert!(!detached.has(&mut failed) && !is_marked(&failed));
        let mut second = execve(8, 0);
        assert!(!detached.has(&mut second) && is_marked(&second), "its line is the last one");
        let child = TaskId { pid: 9, tid: 9 };
        assert!(detached.has(&mut event(8, EventKind::Fork { child, flags: None })));
        assert!(detached.has(&mut execve(9, 0)) && !detached.has(&mut execve(7, -2)));
        assert!(detached.has(&mut event(8, EventKind::Exit(TaskEnd::Exited(0)))));
        assert!(!detached.has(&mut execve(8, -2)), "the number belongs to another process now");
    }
}
