//! The command that rtrace starts. It runs rtrace's own code until it executes its program.

use crate::event::{TaskId, Time};
use crate::task::fds::Ticket;

/// The state of the command; empty if existing tasks are traced.
#[derive(Default)]
pub(super) struct Command {
    task: Option<TaskId>,
    /// The command has executed its program.
    runs: bool,
    /// The time of the execve, if its records may be missing.
    began: Time,
    /// The path that it is about to execute.
    path: Box<[u8]>,
    /// The descriptors that it begins with, and their files.
    fds: Vec<(i32, Vec<u8>)>,
    /// The event of its end, if that waits for the status of wait(2).
    end: Option<Ticket>,
}

impl Command {
    /// Stores the forked command, with the path that it will execute.
    pub fn spawned(&mut self, task: TaskId, path: &[u8], fds: &[(i32, Vec<u8>)]) {
        self.task = Some(task);
        self.path = path.into();
        self.fds = fds.to_vec();
    }

    /// Returns whether the task is the command.
    #[inline]
    pub fn is(&self, task: TaskId) -> bool {
        self.task == Some(task)
    }

    /// Returns whether the task is the command, and runs rtrace's own code.
    #[inline]
    pub fn runs_rtrace_code(&self, task: TaskId) -> bool {
        !self.runs && self.is(task)
    }

    /// Stores that the task has executed a program.
    pub fn executed(&mut self, task: TaskId) {
        self.runs |= self.is(task);
    }

    /// Stores that the command had executed its program at this time.
    pub fn began(&mut self, time: Time) {
        self.began = time;
    }

    /// Returns whether the task is the command, and its call that began at `start` was rtrace's own. The last such
    /// call can return after the recorded time of the execve.
    #[inline]
    pub fn ran_rtrace_code(&self, task: TaskId, start: Time) -> bool {
        self.is(task) && start < self.began
    }

    /// Takes the path that the command is about to execute; empty for other tasks.
    pub fn take_path(&mut self, task: TaskId) -> Box<[u8]> {
        if self.is(task) { std::mem::take(&mut self.path) } else { Box::default() }
    }

    /// Takes the descriptors that the command begins with; empty for other tasks.
    pub fn take_fds(&mut self, task: TaskId) -> Vec<(i32, Vec<u8>)> {
        if self.is(task) { std::mem::take(&mut self.fds) } else { Vec::new() }
    }

    /// Stores the event of the command's end, which waits for the status of wait(2).
    pub fn end_waits(&mut self, ticket: Ticket) {
        self.end = Some(ticket);
    }

    /// Takes the event of the command's end, if `pid` is the command's process.
    pub fn take_end(&mut self, pid: i32) -> Option<Ticket> {
        self.end.take_if(|_| self.task.is_some_and(|task| task.pid == pid))
    }
}
