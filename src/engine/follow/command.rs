//! The command that rtrace starts: until it executes its program, it runs rtrace's own code.

use crate::event::{TaskId, Time};
use crate::task::fds::Ticket;

/// What is known of the command; nothing where tasks are traced that were there before.
#[derive(Default)]
pub(super) struct Command {
    task: Option<TaskId>,
    /// It has executed its program.
    runs: bool,
    /// When it was executed, where its execve may not have been seen.
    began: Time,
    /// The path that it is about to execute.
    path: Box<[u8]>,
    /// The descriptors it begins with.
    fds: Vec<(i32, Vec<u8>)>,
    /// The event of its end, if that waits for wait(2)'s word.
    end: Option<Ticket>,
}

impl Command {
    /// It was made, and will execute what is at this path.
    pub fn spawned(&mut self, task: TaskId, path: &[u8], fds: &[(i32, Vec<u8>)]) {
        self.task = Some(task);
        self.path = path.into();
        self.fds = fds.to_vec();
    }

    #[inline]
    pub fn is(&self, task: TaskId) -> bool {
        self.task == Some(task)
    }

    /// The task is the command, and runs rtrace's own code.
    #[inline]
    pub fn is_still_ours(&self, task: TaskId) -> bool {
        !self.runs && self.is(task)
    }

    /// The task has executed a program.
    pub fn executed(&mut self, task: TaskId) {
        self.runs |= self.is(task);
    }

    /// It had executed its program at this time.
    pub fn began(&mut self, time: Time) {
        self.began = time;
    }

    /// The task is the command, and a call that began then was rtrace's own. The last call before it executed may have
    /// ended
    /// after it told the time.
    #[inline]
    pub fn was_ours(&self, task: TaskId, start: Time) -> bool {
        self.is(task) && start < self.began
    }

    /// The path that it is about to execute, once; empty for other tasks.
    pub fn take_path(&mut self, task: TaskId) -> Box<[u8]> {
        if self.is(task) { std::mem::take(&mut self.path) } else { Box::default() }
    }

    /// The descriptors that it begins with, once; none for other tasks.
    pub fn take_fds(&mut self, task: TaskId) -> Vec<(i32, Vec<u8>)> {
        if self.is(task) { std::mem::take(&mut self.fds) } else { Vec::new() }
    }

    /// The event of its end waits for wait(2)'s word.
    pub fn end_waits(&mut self, ticket: Ticket) {
        self.end = Some(ticket);
    }

    /// The event of its end, if this is its process.
    pub fn take_end(&mut self, pid: i32) -> Option<Ticket> {
        self.end.take_if(|_| self.task.is_some_and(|task| task.pid == pid))
    }
}
