//! How tasks end: from what they asked for, or from the signal that killed them.
//!
//! The record of a task's end does not say why. exit and exit_group do, and so does a delivered signal that nothing
//! handles. One thing hides the reason: for most
//! fatal signals the kernel wakes all threads with a SIGKILL in the signal's place (complete_signal() in
//! kernel/signal.c). Which one it was is known where its sending was seen
//! (`signal:signal_generate`) or the kernel's own word for it could be read; otherwise the end is unknown here, and
//! what wait(2) says of the command itself is used.

use super::signals::{Pending, Sent, is_fatal};
use crate::event::{Fate, Signal, TaskEnd, TaskId};
use rustc_hash::FxHashMap;

/// What is known of how processes and threads will end.
#[derive(Debug, Default)]
pub struct Ends {
    processes: FxHashMap<i32, Process>,
    /// Threads in exit(2), and those of which the kernel told.
    threads: FxHashMap<i32, TaskEnd>,
}

#[derive(Debug, Default)]
struct Process {
    threads: u32,
    end: Option<TaskEnd>,
    /// Signals that were sent to it.
    sent: Pending,
}

impl Ends {
    pub fn begin(&mut self, pid: i32) {
        self.processes.entry(pid).or_default().threads += 1;
    }

    /// Whether any thread of a process is there yet.
    pub fn has_threads(&self, pid: i32) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.threads > 0)
    }

    /// exit(2)
    pub fn exit(&mut self, tid: i32, status: u64) {
        self.threads.insert(tid, TaskEnd::Exited(status as i32 & 0xff));
    }

    /// What the kernel has as the task's exit code, when it ends: wait(2)'s status word.
    pub fn told(&mut self, tid: i32, code: i32) {
        self.threads.insert(tid, of_status(code));
    }

    /// exit_group(2)
    pub fn exit_group(&mut self, pid: i32, status: u64) {
        let process = self.processes.entry(pid).or_default();
        process.end.get_or_insert(TaskEnd::Exited(status as i32 & 0xff));
    }

    /// A signal was sent to the process and will be given to it, unless it takes it by other means.
    pub fn sent(&mut self, pid: i32, sent: Sent) {
        self.processes.entry(pid).or_default().sent.add(sent);
    }

    /// A task is given a signal: what is known of it.
    pub fn given(&mut self, task: TaskId, given: Signal) -> Signal {
        let process = self.processes.entry(task.pid).or_default();
        let mut signal = process.sent.join(task.tid, given);
        if signal.fate == Fate::Default && is_fatal(signal.number) {
            signal.fate = Fate::Kills;
            process.end.get_or_insert(TaskEnd::Killed(signal.number));
        }
        signal
    }

    /// A task is given a SIGKILL, which stands for whatever ends its process: this signal, if that is known. The signal
    /// that it is, once for each process.
    pub fn killed(&mut self, pid: i32, number: Option<i32>) -> Option<Signal> {
        let process = self.processes.entry(pid).or_default();
        if process.end.is_some() {
            return None;
        }
        let alone = || number.map(|number| Signal { number, ..Signal::default() });
        let signal = process.sent.fatal(number).or_else(alone)?;
        process.end = Some(TaskEnd::Killed(signal.number));
        Some(Signal { fate: Fate::Kills, ..signal })
    }

    /// Whether the task is about to end, as far as is known.
    pub fn is_over(&self, task: TaskId) -> bool {
        self.threads.contains_key(&task.tid) || self.processes.get(&task.pid).is_some_and(|process| process.end.is_some())
    }

    /// The stream has a gap: what was on its way may have been given.
    pub fn forget_sent(&mut self) {
        self.processes.values_mut().for_each(|process| process.sent.clear());
    }

    /// A program is started: signals sent before that ended other threads did not end the process.
    pub fn exec(&mut self, pid: i32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.end = None;
            process.sent.clear();
            process.threads = 1;
        }
    }

    /// The thread is gone: how.
    pub fn end(&mut self, pid: i32, tid: i32) -> TaskEnd {
        let own = self.threads.remove(&tid);
        let Some(process) = self.processes.get_mut(&pid) else { return own.unwrap_or(TaskEnd::Unknown) };
        let end = process.end.or(own).unwrap_or(TaskEnd::Unknown);
        process.threads = process.threads.saturating_sub(1);
        if process.threads == 0 {
            self.processes.remove(&pid);
        }
        end
    }
}

/// What wait(2)'s status word says.
pub fn of_status(status: i32) -> TaskEnd {
    if libc::WIFEXITED(status) { TaskEnd::Exited(libc::WEXITSTATUS(status)) } else { TaskEnd::Killed(libc::WTERMSIG(status)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::{SIGCHLD, SIGKILL, SIGSEGV, SIGTERM};

    const TASK: TaskId = TaskId { pid: 1, tid: 1 };

    fn signal(number: i32, fate: Fate) -> Signal {
        Signal { number, fate, ..Signal::default() }
    }

    #[test]
    fn the_group_s_end_is_its_threads() {
        let mut ends = Ends::default();
        (0..3).for_each(|_| ends.begin(1));
        ends.exit(2, 0x107);
        assert!(ends.is_over(TaskId { pid: 1, tid: 2 }) && !ends.is_over(TASK));
        assert_eq!(ends.end(1, 2), TaskEnd::Exited(7));
        ends.exit_group(1, 3);
        assert_eq!(ends.killed(1, None), None, "a thread is ended so");
        assert_eq!(ends.end(1, 3), TaskEnd::Exited(3));
        assert_eq!(ends.end(1, 1), TaskEnd::Exited(3));
        assert_eq!(ends.end(1, 1), TaskEnd::Unknown, "the next process with this number is another one");
    }

    #[test]
    fn a_sigkill_alone_does_not_tell_which_signal_killed() {
        let end = |sent: &[i32], known: Option<i32>| {
            let mut ends = Ends::default();
            ends.begin(1);
            sent.iter().for_each(|&number| ends.sent(1, Sent { signal: signal(number, Fate::Default), thread: None }));
            let shown = [ends.killed(1, known), ends.killed(1, known)].map(|signal| signal.map(|signal| signal.number));
            (shown, ends.end(1, 1))
        };
        assert_eq!(end(&[], None), ([None, None], TaskEnd::Unknown));
        assert_eq!(end(&[SIGTERM], None), ([Some(SIGTERM), None], TaskEnd::Killed(SIGTERM)));
        assert_eq!(end(&[SIGTERM, SIGKILL], None), ([Some(SIGKILL), None], TaskEnd::Killed(SIGKILL)));
        assert_eq!(end(&[], Some(SIGTERM)), ([Some(SIGTERM), None], TaskEnd::Killed(SIGTERM)));
    }

    #[test]
    fn what_nothing_handles_ends_the_process() {
        let end = |given: Signal| {
            let mut ends = Ends::default();
            ends.begin(1);
            let fate = ends.given(TASK, given).fate;
            (fate, ends.end(1, 1))
        };
        assert_eq!(end(signal(SIGSEGV, Fate::Default)), (Fate::Kills, TaskEnd::Killed(SIGSEGV)));
        assert_eq!(end(signal(SIGSEGV, Fate::Handled)), (Fate::Handled, TaskEnd::Unknown));
        assert_eq!(end(signal(SIGCHLD, Fate::Default)), (Fate::Default, TaskEnd::Unknown));
    }
}
