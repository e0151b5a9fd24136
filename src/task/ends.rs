//! How tasks end: by exit or exit_group, or by the signal that killed them.
//!
//! The record of a task's end has no reason. The calls exit and exit_group show it, and so does a delivered signal that
//! the program does not handle. But for most fatal signals the kernel wakes all threads with a SIGKILL in the signal's
//! place (complete_signal() in kernel/signal.c). The original signal is known if the record of its sending was seen
//! (`signal:signal_generate`), or if the kernel's exit code could be read. Otherwise the end is unknown here, and the
//! status of wait(2) is used for the command.

use super::signals::{PendingSignals, SentSignal, dumps_core, is_fatal};
use crate::event::{Disposition, Signal, TaskEnd, TaskId};
use rustc_hash::FxHashMap;

/// What is known of how processes and threads will end.
#[derive(Debug, Default)]
pub struct TaskEnds {
    processes: FxHashMap<i32, Process>,
    /// Threads in exit(2), and threads whose exit code is known.
    threads: FxHashMap<i32, TaskEnd>,
}

#[derive(Debug, Default)]
struct Process {
    threads: u32,
    end: Option<TaskEnd>,
    /// Signals that were sent to the process and not delivered.
    sent: PendingSignals,
}

impl TaskEnds {
    /// Adds a thread.
    pub fn begin(&mut self, pid: i32) {
        self.processes.entry(pid).or_default().threads += 1;
    }

    /// Returns whether a thread of the process is known.
    pub fn has_threads(&self, pid: i32) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.threads > 0)
    }

    /// Handles a call of exit(2).
    pub fn exit(&mut self, tid: i32, status: u64) {
        self.threads.insert(tid, TaskEnd::Exited(status as i32 & 0xff));
    }

    /// Stores the kernel's exit code of a task that ends, which is the status word of wait(2).
    pub fn exit_code(&mut self, tid: i32, code: i32) {
        self.threads.insert(tid, of_status(code));
    }

    /// Handles a call of exit_group(2).
    pub fn exit_group(&mut self, pid: i32, status: u64) {
        let process = self.processes.entry(pid).or_default();
        process.end.get_or_insert(TaskEnd::Exited(status as i32 & 0xff));
    }

    /// Stores a signal that was sent to the process.
    pub fn sent(&mut self, pid: i32, sent: SentSignal) {
        self.processes.entry(pid).or_default().sent.add(sent);
    }

    /// Handles the delivery of a signal to a task, and returns the signal with all that is known of it.
    pub fn delivered(&mut self, task: TaskId, delivered: Signal) -> Signal {
        let process = self.processes.entry(task.pid).or_default();
        let mut signal = process.sent.join(task.tid, delivered);
        if signal.disposition == Disposition::Default && is_fatal(signal.number) {
            signal.disposition = Disposition::Kills;
            process.end.get_or_insert(killed_by(signal.number));
        }
        signal
    }

    /// Handles the delivery of a SIGKILL, which the kernel also uses to end the threads of a process that another
    /// signal kills; `number` is that signal if it is known. Returns the fatal signal, once for each process.
    pub fn killed(&mut self, pid: i32, number: Option<i32>) -> Option<Signal> {
        let process = self.processes.entry(pid).or_default();
        if process.end.is_some() {
            return None;
        }
        let only_number = || number.map(|number| Signal { number, ..Signal::default() });
        let signal = process.sent.fatal(number).or_else(only_number)?;
        process.end = Some(killed_by(signal.number));
        Some(Signal { disposition: Disposition::Kills, ..signal })
    }

    /// Returns whether the task is about to end, as far as it is known.
    pub fn is_over(&self, task: TaskId) -> bool {
        self.threads.contains_key(&task.tid) || self.processes.get(&task.pid).is_some_and(|process| process.end.is_some())
    }

    /// Forgets undelivered signals, because they may have been delivered in a gap of the stream.
    pub fn forget_sent(&mut self) {
        self.processes.values_mut().for_each(|process| process.sent.clear());
    }

    /// Handles an execve: signals that killed the other threads before it did not end the process.
    pub fn exec(&mut self, pid: i32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.end = None;
            process.sent.clear();
            process.threads = 1;
        }
    }

    /// Removes a thread that has ended, and returns how it ended.
    pub fn end(&mut self, pid: i32, tid: i32) -> TaskEnd {
        let own = self.threads.remove(&tid);
        let Some(process) = self.processes.get_mut(&pid) else { return own.unwrap_or(TaskEnd::Unknown) };
        let end = match (process.end, own) {
            // The exit code also says whether the kernel wrote a core dump.
            (Some(TaskEnd::Killed { signal, .. }), Some(code @ TaskEnd::Killed { signal: same, .. })) if signal == same => code,
            (end, own) => end.or(own).unwrap_or(TaskEnd::Unknown),
        };
        process.threads = process.threads.saturating_sub(1);
        if process.threads == 0 {
            self.processes.remove(&pid);
        }
        end
    }
}

/// Decodes the status word of wait(2).
pub fn of_status(status: i32) -> TaskEnd {
    if libc::WIFEXITED(status) {
        return TaskEnd::Exited(libc::WEXITSTATUS(status));
    }
    TaskEnd::Killed { signal: libc::WTERMSIG(status), core_dumped: Some(libc::WCOREDUMP(status)) }
}

/// Returns whether the kernel's exit code would add information to this end of a task.
pub fn is_incomplete(end: TaskEnd) -> bool {
    match end {
        TaskEnd::Unknown => true,
        TaskEnd::Killed { signal, core_dumped: None } => dumps_core(signal),
        _ => false,
    }
}

/// Returns the end by a signal for which it is not yet known whether the kernel wrote a core dump.
fn killed_by(signal: i32) -> TaskEnd {
    TaskEnd::Killed { signal, core_dumped: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::{SIGCHLD, SIGKILL, SIGSEGV, SIGTERM};

    const TASK: TaskId = TaskId { pid: 1, tid: 1 };

    fn signal(number: i32, disposition: Disposition) -> Signal {
        Signal { number, disposition, ..Signal::default() }
    }

    #[test]
    fn threads_end_with_the_status_of_exit_group() {
        let mut ends = TaskEnds::default();
        (0..3).for_each(|_| ends.begin(1));
        ends.exit(2, 0x107);
        assert!(ends.is_over(TaskId { pid: 1, tid: 2 }) && !ends.is_over(TASK));
        assert_eq!(ends.end(1, 2), TaskEnd::Exited(7));
        ends.exit_group(1, 3);
        assert_eq!(ends.killed(1, None), None, "the kernel ends the other threads this way");
        assert_eq!(ends.end(1, 3), TaskEnd::Exited(3));
        assert_eq!(ends.end(1, 1), TaskEnd::Exited(3));
        assert_eq!(ends.end(1, 1), TaskEnd::Unknown, "a process that reuses the pid has its own state");
    }

    #[test]
    fn a_sigkill_alone_leaves_the_fatal_signal_unknown() {
        let end = |sent: &[i32], known: Option<i32>| {
            let mut ends = TaskEnds::default();
            ends.begin(1);
            sent.iter().for_each(|&number| ends.sent(1, SentSignal { signal: signal(number, Disposition::Default), thread: None }));
            let shown = [ends.killed(1, known), ends.killed(1, known)].map(|signal| signal.map(|signal| signal.number));
            (shown, ends.end(1, 1))
        };
        assert_eq!(end(&[], None), ([None, None], TaskEnd::Unknown));
        assert_eq!(end(&[SIGTERM], None), ([Some(SIGTERM), None], killed_by(SIGTERM)));
        assert_eq!(end(&[SIGTERM, SIGKILL], None), ([Some(SIGKILL), None], killed_by(SIGKILL)));
        assert_eq!(end(&[], Some(SIGTERM)), ([Some(SIGTERM), None], killed_by(SIGTERM)));
    }

    #[test]
    fn the_exit_code_says_whether_a_core_was_dumped() {
        for (code, core_dumped) in [(SIGSEGV, false), (SIGSEGV | 0x80, true)] {
            let mut ends = TaskEnds::default();
            ends.begin(1);
            ends.delivered(TASK, signal(SIGSEGV, Disposition::Default));
            ends.exit_code(1, code);
            assert_eq!(ends.end(1, 1), TaskEnd::Killed { signal: SIGSEGV, core_dumped: Some(core_dumped) });
        }
        assert!(is_incomplete(killed_by(SIGSEGV)) && !is_incomplete(killed_by(SIGTERM)) && !is_incomplete(of_status(SIGSEGV)));
    }

    #[test]
    fn an_unhandled_fatal_signal_ends_the_process() {
        let end = |delivered: Signal| {
            let mut ends = TaskEnds::default();
            ends.begin(1);
            let disposition = ends.delivered(TASK, delivered).disposition;
            (disposition, ends.end(1, 1))
        };
        assert_eq!(end(signal(SIGSEGV, Disposition::Default)), (Disposition::Kills, killed_by(SIGSEGV)));
        assert_eq!(end(signal(SIGSEGV, Disposition::Handled)), (Disposition::Handled, TaskEnd::Unknown));
        assert_eq!(end(signal(SIGCHLD, Disposition::Default)), (Disposition::Default, TaskEnd::Unknown));
    }
}
