//! Entry + exit → call, thread by thread.
//!
//! A thread is in one call at a time, so one open entry a thread is all the memory there is. What does not fit together is given apart: this file never guesses that two
//! records belong together, and it never throws a record away without telling (every outcome has a name, and the ledger counts it).
//!
//! * An exit whose number differs from the open entry's is not its exit.
//! * Across a gap in the stream (see [`super::gaps`]) an exit with the same number may be the open entry's or a later call's. One line is given for both, the
//!   entry's, with its exit not seen: if the exit was its own, there was only one call; if not, the other call's entry is among the lost records and counted there.
//! * The kernel forgets the number in rt_sigreturn: exit -1 closes it.
//! * A new task's first exit is the second return of its parent's clone.

use super::behavior::Behavior;
use super::gaps::{Gaps, Mark};
use super::special::Special;
use crate::event::{Call, Entry, Time};
use crate::task::fds::{TableId, Use};
use smallvec::SmallVec;

/// What is known of a thread's calls.
#[derive(Debug, Default)]
pub struct Thread {
    pub open: Option<Open>,
    /// When its last record was written.
    pub mark: Mark,
    /// It was made in this stream and has not made a call nor returned from clone.
    pub fresh: bool,
    /// It has a new program's name since then, and nothing more was heard of it.
    pub executing: Option<Mark>,
    /// It is the command before its execve: what it does is rtrace's own set-up.
    pub set_up: bool,
    /// It is left out.
    pub excluded: bool,
    /// When it was made, if that was while others were followed already.
    pub made: Option<Time>,
    /// It is known by a look alone, because another named it: it is not followed.
    pub foreign: bool,
    /// Its descriptors, where they are followed.
    pub table: Option<TableId>,
    /// It is in a pid namespace below that of the records, as far as that is known; and so will be what it makes.
    pub nested: Option<bool>,
    pub nests: Option<bool>,
    /// A look at it was asked for, to know that.
    pub was_asked_about: bool,
    /// The task that it made last, and when.
    pub child: Option<(Time, i32)>,
    origins: Origins,
}

/// A call that was entered.
#[derive(Debug)]
pub struct Open {
    pub call: Box<Call>,
    /// The number as the record has it (x32's with bit 30).
    pub raw_nr: i64,
    pub mark: Mark,
    pub behavior: Behavior,
    /// Its thread's descriptors at entry.
    pub table: Option<TableId>,
    /// The descriptors in its arguments.
    pub uses: SmallVec<[Use; 1]>,
    /// It began a change of a descriptor table, which its end ends.
    pub changes: bool,
    /// It is wanted; otherwise it is followed for what it does, and not given.
    pub shown: bool,
}

/// What an exit turned out to be.
#[derive(Debug)]
pub enum Outcome {
    /// The open call's.
    Returned(Open),
    /// The second return of a clone, in the new task: no call.
    SecondReturn,
    /// Perhaps the open call's, which is given without it.
    Untrusted(Open),
    /// A call without an entry; an open one before it was not seen to end.
    Alone { closed: Option<Open>, entry: Entry },
}

/// An exit's record.
#[derive(Clone, Copy, Debug)]
pub struct ExitSeen {
    pub time: Time,
    pub mark: Mark,
    pub raw_nr: i64,
    pub ret: i64,
    pub special: Special,
    /// It is of an event of all syscalls, so a new task's first return is certainly among its records.
    pub of_all: bool,
}

impl Thread {
    pub fn new(excluded: bool) -> Thread {
        Thread { excluded, ..Thread::default() }
    }

    /// An entry; returns the call before it, if its exit was not seen.
    #[inline]
    pub fn enter(&mut self, open: Open) -> Option<Open> {
        self.mark = open.mark;
        (self.fresh, self.executing) = (false, None);
        self.open.replace(open)
    }

    /// An exit.
    #[inline]
    pub fn exit(&mut self, exit: ExitSeen) -> Outcome {
        let last = std::mem::replace(&mut self.mark, exit.mark);
        let fresh = std::mem::take(&mut self.fresh);
        self.executing = None;
        let complete = Gaps::none_between(last, exit.mark);
        if exit.special == Special::Clone && exit.ret == 0 || fresh && complete && exit.of_all && self.open.is_none() {
            return Outcome::SecondReturn;
        }
        let entry = if complete { Entry::Unseen } else { Entry::Lost };
        match self.open.take() {
            Some(open) if !open.is_closed_by(exit.raw_nr) => Outcome::Alone { closed: Some(open), entry },
            Some(open) if Gaps::joins(open.mark, open.call.id.start, exit.mark, exit.time) => Outcome::Returned(open),
            Some(open) => Outcome::Untrusted(open),
            None => Outcome::Alone { closed: None, entry },
        }
    }

    /// Whether a record of this event from this opened one is the first report: false if another opened event, which reports the same, came first.
    /// An event has one origin on each CPU, so the CPU belongs to the question.
    pub fn is_first_report(&mut self, event: u16, cpu: u32, origin: u64) -> bool {
        self.origins.accepts(u64::from(event) << 32 | u64::from(cpu), origin)
    }

    /// Whoever reports this thread's events from now on is the first.
    pub fn forget_origins(&mut self) {
        self.origins = Origins::default();
    }
}

impl Open {
    fn is_closed_by(&self, raw_nr: i64) -> bool {
        self.raw_nr == raw_nr || (raw_nr == -1 && self.behavior.special == Special::SigReturn)
    }
}

/// The opened event that reports each event of a thread, by event and CPU; those asked for often come first.
#[derive(Debug, Default)]
struct Origins(Vec<(u64, u64)>);

impl Origins {
    fn accepts(&mut self, key: u64, origin: u64) -> bool {
        let Some(at) = self.0.iter().position(|known| known.0 == key) else {
            self.0.push((key, origin));
            return true;
        };
        let accepted = self.0[at].1 == origin;
        self.0.swap(at, at / 2);
        accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_origin_of_each_event_and_cpu_is_kept() {
        let mut thread = Thread::default();
        assert!(thread.is_first_report(1, 0, 50));
        assert!(!thread.is_first_report(1, 0, 60));
        assert!(thread.is_first_report(1, 1, 61), "on another CPU the other one may come first");
        assert!(thread.is_first_report(2, 0, 70));
        for _ in 0..5 {
            assert!(thread.is_first_report(1, 0, 50));
            assert!(!thread.is_first_report(1, 1, 50));
        }
    }
}
