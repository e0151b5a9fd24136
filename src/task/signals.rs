//! Signals that were sent to a process and not given to it yet, to know who sent what it is given.
//!
//! Nobody says when a signal is taken out of the queue by other means (sigwaitinfo(2), a signalfd). So a signal that
//! may be one of several is given without its sender.

use crate::event::Signal;

/// No more are remembered of one process: the oldest go first.
const PENDING_MAX: usize = 64;

/// A signal that is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub signal: Signal,
    /// The thread that it is meant for; `None`: any of the process.
    pub thread: Option<i32>,
}

/// Those of one process, in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub struct Pending(Vec<Sent>);

impl Pending {
    pub fn add(&mut self, sent: Sent) {
        if !is_queued(sent.signal.number) {
            // Of these, one can be on its way at a time: the one before was taken.
            self.0.retain(|other| (other.signal.number, other.thread) != (sent.signal.number, sent.thread));
        }
        if self.0.len() == PENDING_MAX {
            self.0.remove(0);
        }
        self.0.push(sent);
    }

    /// A thread is given a signal: the same, with what was known of its sending. What is for the thread alone comes
    /// first (dequeue_signal() in kernel/signal.c).
    pub fn join(&mut self, tid: i32, given: Signal) -> Signal {
        let is_it = |sent: &Sent, thread: Option<i32>| {
            let (other, same) = (&sent.signal, sent.signal.number == given.number && sent.thread == thread);
            let fits = given.members.are_unknown() || other.members.are_unknown() || other.members == given.members;
            same && (!is_queued(given.number) || fits && (other.code, other.errno) == (given.code, given.errno))
        };
        let of_thread = [Some(tid), None].into_iter().find(|thread| self.0.iter().any(|sent| is_it(sent, *thread)));
        let Some(thread) = of_thread else { return given };
        let senders = || self.0.iter().filter(|sent| is_it(sent, thread)).map(|sent| (sent.signal.sender, sent.signal.members));
        let is_certain = senders().all(|sender| Some(sender) == senders().next());
        let Some(at) = self.0.iter().position(|sent| is_it(sent, thread)) else { return given };
        let sent = self.0.remove(at).signal;
        if !is_certain || sent.code != given.code {
            return given;
        }
        let members = if given.members.are_unknown() { sent.members } else { given.members };
        Signal { members, sender: sent.sender, ..given }
    }

    /// The signal that ends the process: this one, if the kernel said which.
    pub fn fatal(&mut self, number: Option<i32>) -> Option<Signal> {
        // What is sent to a process that is about to end is dropped, so nothing came later.
        let last = self.0.iter().rposition(|sent| number.is_none_or(|number| sent.signal.number == number))?;
        is_fatal(self.0[last].signal.number).then(|| self.0.remove(last).signal)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Several of them may be on their way to one receiver: real-time signals.
fn is_queued(number: i32) -> bool {
    number >= 32
}

/// Whether the default action ends the process (signal(7)); real-time signals do.
pub fn is_fatal(number: i32) -> bool {
    use libc::{SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH};
    (1..=64).contains(&number) && ![SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH].contains(&number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Members, TaskId};
    use libc::{SIGCHLD, SIGKILL, SIGTERM, SIGUSR1};

    fn signal(number: i32, sender: i32) -> Signal {
        let sender = (sender != 0).then_some(TaskId { pid: sender, tid: sender });
        Signal { number, errno: Some(0), code: Some(0), sender, ..Signal::default() }
    }

    fn pending(sent: &[(i32, i32, Option<i32>)]) -> Pending {
        let mut pending = Pending::default();
        sent.iter().for_each(|&(number, sender, thread)| pending.add(Sent { signal: signal(number, sender), thread }));
        pending
    }

    fn sender(pending: &mut Pending, tid: i32, number: i32) -> Option<i32> {
        pending.join(tid, signal(number, 0)).sender.map(|task| task.pid)
    }

    #[test]
    fn a_signal_has_the_sender_that_it_was_sent_by() {
        let mut sent = pending(&[(SIGUSR1, 5, None), (SIGTERM, 6, None), (SIGUSR1, 7, Some(11))]);
        assert_eq!(sender(&mut sent, 10, SIGTERM), Some(6));
        assert_eq!(sender(&mut sent, 11, SIGUSR1), Some(7), "the thread's own comes first");
        assert_eq!(sender(&mut sent, 11, SIGUSR1), Some(5));
        assert_eq!(sender(&mut sent, 11, SIGUSR1), None);
    }

    #[test]
    fn what_was_taken_by_other_means_is_forgotten() {
        let mut sent = pending(&[(SIGUSR1, 5, None), (SIGUSR1, 6, None)]);
        assert_eq!(sender(&mut sent, 1, SIGUSR1), Some(6));
        let mut queued = pending(&[(34, 5, None), (34, 6, None)]);
        assert_eq!(sender(&mut queued, 1, 34), None, "the first may have been taken");
        let mut same = pending(&[(34, 5, None), (34, 5, None)]);
        assert_eq!(sender(&mut same, 1, 34), Some(5));
    }

    #[test]
    fn members_tell_queued_signals_apart() {
        let with = |value, sender| Signal { members: Members { value: Some(value), ..Members::default() }, ..signal(34, sender) };
        let mut sent = Pending::default();
        [(1, 5), (2, 6)].iter().for_each(|&(value, sender)| sent.add(Sent { signal: with(value, sender), thread: None }));
        assert_eq!(sent.join(1, with(2, 0)), with(2, 6));
        assert_eq!(sent.join(1, with(1, 0)), with(1, 5));
    }

    #[test]
    fn the_last_one_sent_ends_the_process() {
        let fatal = |sent: &[(i32, i32, Option<i32>)], number| pending(sent).fatal(number).map(|signal| signal.number);
        assert_eq!(fatal(&[(SIGTERM, 5, None), (SIGKILL, 6, None)], None), Some(SIGKILL));
        assert_eq!(fatal(&[(SIGTERM, 5, None), (SIGKILL, 6, None)], Some(SIGTERM)), Some(SIGTERM));
        assert_eq!(fatal(&[(SIGCHLD, 5, None)], None), None);
        assert_eq!(fatal(&[], Some(SIGTERM)), None);
    }
}
