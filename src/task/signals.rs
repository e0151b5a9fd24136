//! Signals that were sent to a process and not delivered yet, for the sender of a delivered signal.
//!
//! No record shows that a program takes a signal out of the queue by other means (sigwaitinfo(2), a signalfd). So if a
//! delivered signal could be one of several, it is emitted without a sender.

use crate::event::Signal;

/// The maximum number of signals that are kept for a process; the oldest are dropped.
const PENDING_MAX: usize = 64;

/// A signal that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentSignal {
    /// The signal with its sender, as far as the record of its sending has them.
    pub signal: Signal,
    /// The receiving thread; `None` if the signal was sent to the process.
    pub thread: Option<i32>,
}

/// The undelivered signals of one process, in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub struct PendingSignals(Vec<SentSignal>);

impl PendingSignals {
    /// Adds a signal that was sent. If there are too many, the oldest is forgotten.
    pub fn add(&mut self, sent: SentSignal) {
        if !is_queued(sent.signal.number) {
            // Only one such signal can be pending, so the previous one is not pending any more.
            self.0.retain(|other| (other.signal.number, other.thread) != (sent.signal.number, sent.thread));
        }
        if self.0.len() == PENDING_MAX {
            self.0.remove(0);
        }
        self.0.push(sent);
    }

    /// Completes a delivered signal with what is known of its sending. A signal that was sent to the thread precedes
    /// one that was sent to the process (dequeue_signal() in kernel/signal.c).
    pub fn join(&mut self, tid: i32, delivered: Signal) -> Signal {
        let is_it = |sent: &SentSignal, thread: Option<i32>| {
            let (other, same) = (&sent.signal, sent.signal.number == delivered.number && sent.thread == thread);
            let fits = delivered.info.is_empty() || other.info.is_empty() || other.info == delivered.info;
            same && (!is_queued(delivered.number) || fits && (other.code, other.errno) == (delivered.code, delivered.errno))
        };
        let of_thread = [Some(tid), None].into_iter().find(|thread| self.0.iter().any(|sent| is_it(sent, *thread)));
        let Some(thread) = of_thread else { return delivered };
        let senders = || self.0.iter().filter(|sent| is_it(sent, thread)).map(|sent| (sent.signal.sender, sent.signal.info));
        let is_certain = senders().all(|sender| Some(sender) == senders().next());
        let Some(at) = self.0.iter().position(|sent| is_it(sent, thread)) else { return delivered };
        let sent = self.0.remove(at).signal;
        if !is_certain || sent.code != delivered.code {
            return delivered;
        }
        let info = if delivered.info.is_empty() { sent.info } else { delivered.info };
        Signal { info, sender: sent.sender, ..delivered }
    }

    /// Takes the signal that ends the process: `number`, if the kernel reported it.
    pub fn fatal(&mut self, number: Option<i32>) -> Option<Signal> {
        // Signals to a process that is about to end are dropped, so none was sent after the fatal one.
        let last = self.0.iter().rposition(|sent| number.is_none_or(|number| sent.signal.number == number))?;
        is_fatal(self.0[last].signal.number).then(|| self.0.remove(last).signal)
    }

    /// Forgets the undelivered signals, as after a gap in the stream.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Returns whether several signals with this number can be pending at once: real-time signals can.
fn is_queued(number: i32) -> bool {
    number >= 32
}

/// Returns whether the default action kills the process (signal(7)), as it does for real-time signals.
pub fn is_fatal(number: i32) -> bool {
    use libc::{SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH};
    (1..=64).contains(&number) && ![SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH].contains(&number)
}

/// Returns whether the default action writes a core dump (signal(7)), if the limits of the process permit one.
pub fn dumps_core(number: i32) -> bool {
    use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGQUIT, SIGSEGV, SIGSYS, SIGTRAP, SIGXCPU, SIGXFSZ};
    [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS].contains(&number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{SigInfo, TaskId};
    use libc::{SIGCHLD, SIGKILL, SIGTERM, SIGUSR1};

    fn signal(number: i32, sender: i32) -> Signal {
        let sender = (sender != 0).then_some(TaskId { pid: sender, tid: sender });
        Signal { number, errno: Some(0), code: Some(0), sender, ..Signal::default() }
    }

    fn pending(sent: &[(i32, i32, Option<i32>)]) -> PendingSignals {
        let mut pending = PendingSignals::default();
        sent.iter().for_each(|&(number, sender, thread)| pending.add(SentSignal { signal: signal(number, sender), thread }));
        pending
    }

    fn sender(pending: &mut PendingSignals, tid: i32, number: i32) -> Option<i32> {
        pending.join(tid, signal(number, 0)).sender.map(|task| task.pid)
    }

    #[test]
    fn a_delivered_signal_has_its_sender() {
        let mut sent = pending(&[(SIGUSR1, 5, None), (SIGTERM, 6, None), (SIGUSR1, 7, Some(11))]);
        assert_eq!(sender(&mut sent, 10, SIGTERM), Some(6));
        assert_eq!(sender(&mut sent, 11, SIGUSR1), Some(7), "a signal to the thread comes first");
        assert_eq!(sender(&mut sent, 11, SIGUSR1), Some(5));
        assert_eq!(sender(&mut sent, 11, SIGUSR1), None);
    }

    #[test]
    fn replaced_and_ambiguous_senders_are_not_reported() {
        let mut sent = pending(&[(SIGUSR1, 5, None), (SIGUSR1, 6, None)]);
        assert_eq!(sender(&mut sent, 1, SIGUSR1), Some(6));
        let mut queued = pending(&[(34, 5, None), (34, 6, None)]);
        assert_eq!(sender(&mut queued, 1, 34), None, "the first may have been taken");
        let mut same = pending(&[(34, 5, None), (34, 5, None)]);
        assert_eq!(sender(&mut same, 1, 34), Some(5));
    }

    #[test]
    fn siginfo_members_distinguish_queued_signals() {
        let with = |value, sender| Signal { info: SigInfo { value: Some(value), ..SigInfo::default() }, ..signal(34, sender) };
        let mut sent = PendingSignals::default();
        [(1, 5), (2, 6)].iter().for_each(|&(value, sender)| sent.add(SentSignal { signal: with(value, sender), thread: None }));
        assert_eq!(sent.join(1, with(2, 0)), with(2, 6));
        assert_eq!(sent.join(1, with(1, 0)), with(1, 5));
    }

    #[test]
    fn the_last_fatal_signal_sent_ends_the_process() {
        let fatal = |sent: &[(i32, i32, Option<i32>)], number| pending(sent).fatal(number).map(|signal| signal.number);
        assert_eq!(fatal(&[(SIGTERM, 5, None), (SIGKILL, 6, None)], None), Some(SIGKILL));
        assert_eq!(fatal(&[(SIGTERM, 5, None), (SIGKILL, 6, None)], Some(SIGTERM)), Some(SIGTERM));
        assert_eq!(fatal(&[(SIGCHLD, 5, None)], None), None);
        assert_eq!(fatal(&[], Some(SIGTERM)), None);
    }
}
