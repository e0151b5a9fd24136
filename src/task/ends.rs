//! How tasks end: from what they asked for, or from the signal that killed them.
//!
//! The record of a task's end does not say why. exit and exit_group do, and so does a delivered signal that nothing handles. One thing hides the reason: for most
//! fatal signals the kernel wakes all threads with a SIGKILL in the signal's place. Which one it was is known only where its sending was seen
//! (`signal:signal_generate`); otherwise the end is unknown here, and what wait(2) says of the command itself is used.

use crate::event::TaskEnd;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Signals sent and not delivered that are remembered for a process.
const SENT_MAX: usize = 8;

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
    /// Fatal signals that were sent and not delivered yet.
    sent: SmallVec<[i32; 2]>,
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

    /// A signal was sent to the process and will be delivered.
    pub fn sent(&mut self, pid: i32, signal: i32) {
        let process = self.processes.entry(pid).or_default();
        if is_fatal(signal) && process.sent.len() < SENT_MAX && !process.sent.contains(&signal) {
            process.sent.push(signal);
        }
    }

    /// A signal is delivered; `handler` is `sa_handler` (0: the default action).
    pub fn delivered(&mut self, pid: i32, signal: i32, handler: u64) {
        let process = self.processes.entry(pid).or_default();
        if handler == libc::SIG_DFL as u64 && is_fatal(signal) && process.end.is_none() {
            process.end = if signal == libc::SIGKILL { process.killer() } else { Some(signal) }.map(TaskEnd::Killed);
        }
        process.sent.retain(|sent| *sent != signal);
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

impl Process {
    /// Which signal a SIGKILL stands for.
    fn killer(&self) -> Option<i32> {
        match self.sent[..] {
            [one] => Some(one),
            _ => self.sent.contains(&libc::SIGKILL).then_some(libc::SIGKILL),
        }
    }
}

/// Whether the default action ends the process (signal(7)); real-time signals do.
fn is_fatal(signal: i32) -> bool {
    use libc::{SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH};
    (1..=64).contains(&signal) && ![SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH].contains(&signal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::{SIGCHLD, SIGKILL, SIGSEGV, SIGTERM};

    #[test]
    fn the_group_s_end_is_its_threads() {
        let mut ends = Ends::default();
        (0..3).for_each(|_| ends.begin(1));
        ends.exit(2, 0x107);
        assert_eq!(ends.end(1, 2), TaskEnd::Exited(7));
        ends.exit_group(1, 3);
        ends.delivered(1, SIGKILL, 0);
        assert_eq!(ends.end(1, 3), TaskEnd::Exited(3));
        assert_eq!(ends.end(1, 1), TaskEnd::Exited(3));
        assert_eq!(ends.end(1, 1), TaskEnd::Unknown, "the next process with this number is another one");
    }

    #[test]
    fn a_sigkill_alone_does_not_tell_which_signal_killed() {
        let end = |sent: &[i32], delivered: &[(i32, u64)]| {
            let mut ends = Ends::default();
            ends.begin(1);
            sent.iter().for_each(|&s| ends.sent(1, s));
            delivered.iter().for_each(|&(s, handler)| ends.delivered(1, s, handler));
            ends.end(1, 1)
        };
        assert_eq!(end(&[], &[(SIGKILL, 0)]), TaskEnd::Unknown);
        assert_eq!(end(&[SIGTERM], &[(SIGKILL, 0)]), TaskEnd::Killed(SIGTERM));
        assert_eq!(end(&[SIGKILL, SIGTERM], &[(SIGKILL, 0)]), TaskEnd::Killed(SIGKILL));
        assert_eq!(end(&[SIGSEGV], &[(SIGSEGV, 0)]), TaskEnd::Killed(SIGSEGV));
        assert_eq!(end(&[SIGSEGV], &[(SIGSEGV, 0x1234)]), TaskEnd::Unknown);
        assert_eq!(end(&[], &[(SIGCHLD, 0)]), TaskEnd::Unknown);
    }
}
