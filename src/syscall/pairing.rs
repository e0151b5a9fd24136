//! Pairs entries with exits to calls, thread by thread.
//!
//! A thread is in one call at a time, so one open entry per thread is all the state that is needed. Records that do not
//! belong together are reported separately: this module never guesses that two records belong together, and never drops
//! a record without reporting it (each outcome has a name, and the ledger counts it).
//!
//! * An exit whose number differs from the open entry's is not its exit.
//! * Across a gap in the stream (see [`super::gaps`]), an exit with the same number may belong to the open entry or to
//!   a later call. Both result in one line, the entry's, with an unseen exit: if the exit belonged to the entry, there
//!   was only one call; if not, the other call's entry is among the lost records and is counted there.
//! * The kernel clears the number in rt_sigreturn: an exit with number -1 closes it.
//! * A new task's first exit is the second return of its parent's clone.

use super::behavior::Behavior;
use super::gaps::{GapMark, Gaps};
use super::special::Special;
use crate::event::synthesized::MemoryCopy;
use crate::event::{Abi, Call, EntryState, Injected, Time};
use crate::task::fds::{FdTableId, FdUse};
use smallvec::SmallVec;

/// The state of a thread that its records are interpreted with.
#[derive(Debug, Default)]
pub struct ThreadState {
    /// The call that the thread is in; `None` if it is in none, as far as the stream shows.
    pub open: Option<OpenCall>,
    /// The gap counters at its last record.
    pub mark: GapMark,
    /// The thread was created in this stream, and has neither made a call nor returned from clone.
    pub fresh: bool,
    /// The thread executed a program (its comm changed by execve) after its last record; the gap counters at that time.
    pub executing: Option<GapMark>,
    /// The thread is the command before its execve: its calls are rtrace's own set-up.
    pub set_up: bool,
    /// The thread's records are left out.
    pub excluded: bool,
    /// The time of its creation, if it was created while tracing.
    pub created: Option<Time>,
    /// The thread is not traced. It is known only because a record of a traced thread names it, in an argument or as
    /// the sender of a signal.
    pub untraced: bool,
    /// Its descriptor table, if descriptors are tracked.
    pub table: Option<FdTableId>,
    /// Whether the thread is in a pid namespace below that of the records, and whether its children will be; `None` if
    /// it is not known.
    pub nested: Option<bool>,
    /// The same for the processes that it creates from now on: unshare(2) and setns(2) choose their namespace.
    pub children_nested: Option<bool>,
    /// A read of its /proc files was requested to find out the namespace.
    pub read_requested: bool,
    /// The call that the supervisor of `--inject` changed, until the kernel's record of it arrives.
    pub changed: Option<Box<ChangedCall>>,
    /// The task that it created last, with the time.
    pub child: Option<(Time, i32)>,
    origins: Origins,
}

/// A call that the supervisor of `--inject` changed.
#[derive(Clone, Debug)]
pub struct ChangedCall {
    /// When it began.
    pub start: Time,
    /// Its ABI.
    pub abi: Abi,
    /// The number of its syscall.
    pub nr: i64,
    /// The argument registers.
    pub args: [u64; 6],
    /// What was done to it.
    pub injected: Injected,
    /// While it waits, only a signal that kills its task ends it.
    pub killable: bool,
    /// The memory of its arguments, as far as the supervisor copied it.
    pub copies: Vec<MemoryCopy>,
}

/// A call that was entered and has not returned.
#[derive(Debug)]
pub struct OpenCall {
    /// The call with what is known of it so far; its `exit` is set when it returns or is given up.
    pub call: Box<Call>,
    /// The number in the record (x32's with bit 30).
    pub raw_nr: i64,
    /// The gap counters at the entry, or when the call was found in /proc, if it began before the trace.
    pub mark: GapMark,
    /// The properties of the call with these arguments ([`Behavior::with`]).
    pub behavior: Behavior,
    /// The thread's descriptor table at entry.
    pub table: Option<FdTableId>,
    /// The descriptors in the arguments.
    pub uses: SmallVec<[FdUse; 1]>,
    /// The call's entry began a change of a descriptor table, which its exit ends.
    pub changes: bool,
    /// The call is emitted; otherwise rtrace only follows its effects.
    pub shown: bool,
}

/// The result of an exit record.
#[derive(Debug)]
pub enum ExitOutcome {
    /// It completes the open call.
    Returned(OpenCall),
    /// It is the second return of a clone, in the new task, and no call.
    SecondReturn,
    /// It may belong to the open call, which is emitted without it.
    Untrusted(OpenCall),
    /// It belongs to a call without an entry. `closed` is an open call before it whose exit was not seen.
    Alone { closed: Option<OpenCall>, entry: EntryState },
}

/// An exit record.
#[derive(Clone, Copy, Debug)]
pub struct ExitRecord {
    /// When the call returned.
    pub time: Time,
    /// The gap counters at the exit.
    pub mark: GapMark,
    /// The number in the record (x32's with bit 30), or that of the entry if the call executed a program. -1 if the
    /// call is sigreturn(2), for which the kernel clears the number.
    pub raw_nr: i64,
    /// The return value with the sign that the call's return has: a negative errno if the call failed.
    pub ret: i64,
    /// The effect of the syscall with this number.
    pub special: Special,
    /// The event covers all syscalls, so its records include a new task's first return.
    pub covers_all: bool,
}

impl ThreadState {
    pub fn new(excluded: bool) -> ThreadState {
        ThreadState { excluded, ..ThreadState::default() }
    }

    /// Processes an entry. Returns the call before it if that call's exit was not seen.
    #[inline]
    pub fn enter(&mut self, open: OpenCall) -> Option<OpenCall> {
        self.mark = open.mark;
        (self.fresh, self.executing) = (false, None);
        self.open.replace(open)
    }

    /// Processes an exit.
    #[inline]
    pub fn exit(&mut self, exit: ExitRecord) -> ExitOutcome {
        let last = std::mem::replace(&mut self.mark, exit.mark);
        let fresh = std::mem::take(&mut self.fresh);
        self.executing = None;
        let complete = Gaps::none_between(last, exit.mark);
        if exit.special == Special::Clone && exit.ret == 0 || fresh && complete && exit.covers_all && self.open.is_none() {
            return ExitOutcome::SecondReturn;
        }
        let entry = if complete { EntryState::Unseen } else { EntryState::Lost };
        match self.open.take() {
            Some(open) if !open.is_closed_by(exit.raw_nr) => ExitOutcome::Alone { closed: Some(open), entry },
            Some(open) if Gaps::can_pair(open.mark, open.call.id.start, exit.mark, exit.time) => ExitOutcome::Returned(open),
            Some(open) => ExitOutcome::Untrusted(open),
            None => ExitOutcome::Alone { closed: None, entry },
        }
    }

    /// Returns whether this perf event is the first that reported the tracepoint for this thread; false if another perf
    /// event reports the same hits. On each CPU it may be another perf event, so they are distinguished by CPU.
    pub fn is_first_report(&mut self, event: u16, cpu: u32, origin: u64) -> bool {
        self.origins.accepts(u64::from(event) << 32 | u64::from(cpu), origin)
    }

    /// Forgets the reporting perf events: the next one to report counts as the first.
    pub fn forget_origins(&mut self) {
        self.origins = Origins::default();
    }
}

impl OpenCall {
    fn is_closed_by(&self, raw_nr: i64) -> bool {
        self.raw_nr == raw_nr || (raw_nr == -1 && self.behavior.special == Special::SigReturn)
    }
}

/// The perf event that reports each tracepoint of a thread, by tracepoint and CPU, with frequent ones moved to the
/// front.
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
        let mut thread = ThreadState::default();
        assert!(thread.is_first_report(1, 0, 50));
        assert!(!thread.is_first_report(1, 0, 60));
        assert!(thread.is_first_report(1, 1, 61), "on another CPU, another perf event may report first");
        assert!(thread.is_first_report(2, 0, 70));
        for _ in 0..5 {
            assert!(thread.is_first_report(1, 0, 50));
            assert!(!thread.is_first_report(1, 1, 50));
        }
    }
}
