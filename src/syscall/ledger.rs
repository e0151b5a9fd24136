//! The account: how many hits were issued, received and lost, per event, and what follows for calls.
//!
//! `issued` and `lost` are the kernel's own counts (read(2) with PERF_FORMAT_LOST, in
//! [`crate::event::Synthesized::Count`]); `received` is counted in the stream. The ledger checks that the three agree
//! ([`Ledger::disagreements`]).
//!
//! [`Ledger::calls_account`] derives the counts of calls from those of records. Every call begins with an entry record,
//! except calls that have none by design (a seccomp filter answered, or the call ran when tracing began). A new task's
//! return from clone is an exit record, but not a call. Therefore
//!
//! ```text
//! issued calls  = issued entries − entries left out (set-up, duplicate, excluded) + exits that have no entry
//! printed calls = received entries − entries left out + exits that have no entry + exits whose entry was lost
//! lost calls    = lost entries − exits whose entry was lost
//! ```
//!
//! Issued calls are the sum of printed and lost calls exactly if issued = received + lost holds for the records of
//! entries. An entry is counted as lost if a gap may have contained it, but no more entries than the kernel counted as
//! lost.
//!
//! A record of the BPF engine is a call. Its issued count is incremented where a call begins, and where a call without
//! an entry ends, so nothing is added to it.

use crate::event::verdict::Shortage;
use crate::event::{EntryState, EventIndex, ExitState};
use crate::session::{EventSpec, Role, Session};

/// The account of one run.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// By event index.
    pub events: Vec<EventAccount>,
    /// All events of the tracefs instance, which counts them only together.
    pub instance: EventAccount,
    /// Calls that were passed to the sinks, each counted once (a pending call when it completes, or at the end).
    pub calls: u64,
    /// Of `calls`, those whose entry was not seen: it does not exist or was lost.
    pub without_entry: u64,
    /// Of these, calls whose entry may be in a gap.
    pub lost_entries: u64,
    /// Of `calls`, those whose exit was not seen.
    pub without_exit: u64,
    /// Calls that were found in flight by reading the tasks, and whose own record was lost.
    pub known_in_flight: u64,
    /// Calls that the BPF programs filtered out at their return, on request: neither issued nor printed here.
    pub left_out: u64,
    /// Calls that the BPF programs skipped, because the user may not trace the programs that made them.
    pub not_permitted: u64,
    /// Requests of io_uring that were counted and not traced: IORING_OP_* and their number.
    pub untraced_requests: Vec<(u8, u64)>,
    /// Data that is missing for other reasons than lost records.
    pub shortages: Vec<Shortage>,
    /// Exits that are doubtful because of a gap: their calls are among those without an exit, or among the lost ones.
    pub untrusted_exits: u64,
    /// Returns of clone in the new task, which are not calls.
    pub second_returns: u64,
    /// The number of lost records according to the LOST records so far, each of which has its place in the stream.
    pub lost_placed: u64,
    /// Gaps whose number of lost records is not known.
    pub gaps_unsized: u64,
    /// Records before the command's execve, which are rtrace's own set-up.
    pub set_up: u64,
    /// Records that were dropped because two perf events reported the same task.
    pub duplicates: u64,
    /// Records of excluded tasks.
    pub excluded: u64,
    /// Records of calls that only complete events.
    pub of_events: u64,
    /// Records of requests of io_uring that the user did not ask for.
    pub not_asked: u64,
    /// Records of calls that the kernel repeats, because a signal arrived before the supervisor of `--inject` had them.
    pub repeated: u64,
    /// Records that arrived after the stream had passed their time.
    pub late: u64,
    /// Records that could not be parsed.
    pub unreadable: u64,
    /// Hits that the kernel counted, but neither wrote nor counted as lost.
    pub unwritten: u64,
    /// Such hits of `signal:signal_generate`.
    pub unwritten_signals: u64,
    /// Entries among `set_up`, `duplicates`, `excluded`, `of_events`, `not_asked` and `repeated`.
    entries_left_out: u64,
}

/// The account of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventAccount {
    /// The records that arrived.
    pub received: u64,
    /// The hits that the received records stand for. It equals `received`, unless the tracepoint counts another
    /// quantity (as `sched:sched_stat_runtime` does).
    pub counted: u64,
    /// The event's count as read(2) returned it; `None` before it is read.
    pub issued: Option<u64>,
    /// The records that the kernel dropped (PERF_FORMAT_LOST); `None` if it does not count them, or before they are
    /// read.
    pub lost: Option<u64>,
    /// The records begin calls that are shown.
    pub entries: bool,
    /// The kernel does not count the event, because the user's BPF programs write its records.
    pub is_uncounted: bool,
    /// What hits are that the kernel counts, but neither writes nor counts as lost.
    pub unwritten: Unwritten,
}

/// What it means if the kernel counts more hits of an event than it writes and loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unwritten {
    /// rtrace or the kernel has an error: only tasks hit the event, and the kernel writes all their records.
    #[default]
    Error,
    /// The records are lost: interrupts may hit the event.
    Loss,
    /// Nobody knows which tasks the signals were for, and most are for tasks that are not traced. A signal that is not
    /// ignored has another record, `signal:signal_deliver`, which the receiver itself writes.
    UnknownSignal,
}

impl Unwritten {
    fn of(role: Role) -> Unwritten {
        match role {
            Role::SignalGenerate => Unwritten::UnknownSignal,
            Role::Tracepoint => Unwritten::Loss,
            _ => Unwritten::Error,
        }
    }
}

/// Why a record is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// It belongs to a call by which rtrace sets up the command's process.
    SetUp,
    /// Another opened event has recorded the same hit.
    Duplicate,
    /// It is of a task that the trace excludes.
    Excluded,
    /// It is of a call that only completes events ([`crate::session::EventCalls`]).
    OfEvent,
    /// It is of a request of io_uring that the user did not ask for ([`Session::other_requests`]).
    NotAsked,
    /// It is of a call that a signal interrupted before the supervisor of `--inject` was asked. The kernel repeats it.
    Repeated,
}

/// The final counts of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsAccount {
    /// The kernel's count of entries.
    pub issued: u64,
    /// The calls that the engine emitted.
    pub printed: u64,
    /// The calls of which the kernel dropped a record.
    pub lost: u64,
}

#[cfg(test)]
impl CallsAccount {
    /// Returns whether printed + lost = issued.
    pub fn is_conserved(&self) -> bool {
        self.printed + self.lost == self.issued
    }
}

impl Ledger {
    /// Returns a ledger with an empty account for each event of the session.
    pub fn new(session: &Session) -> Ledger {
        // Calls that the BPF programs record only to complete events are not calls that the user asked for.
        let calls = &session.event_calls;
        let by_bpf = calls.recorded.is_empty() || !calls.shown.is_empty();
        let begins_wanted = |spec: &EventSpec| spec.shown && spec.role.begins_calls() && (spec.role != Role::BpfCall || by_bpf);
        let account = |spec: &EventSpec| EventAccount {
            entries: begins_wanted(spec),
            is_uncounted: spec.role == Role::Output,
            unwritten: Unwritten::of(spec.role),
            ..EventAccount::default()
        };
        Ledger { events: session.events.events.iter().map(account).collect(), ..Ledger::default() }
    }

    /// Returns the account of an event.
    pub fn account(&mut self, event: EventIndex) -> &mut EventAccount {
        let i = usize::from(event.0);
        if self.events.len() <= i {
            self.events.resize(i + 1, EventAccount::default());
        }
        &mut self.events[i]
    }

    /// Stores the kernel's counts of an event, after all of its records. If the event was disabled from another CPU
    /// than its own, the kernel may have counted one hit without writing its record; at most `remote_disables` such
    /// hits are not counted as issued.
    pub fn count(&mut self, event: EventIndex, issued: u64, lost: u64, remote_disables: u64) {
        let account = self.account(event);
        let too_late = issued.saturating_sub(account.counted + lost).min(remote_disables);
        (account.issued, account.lost) = (Some(issued - too_late), Some(lost));
    }

    /// Returns the number of records that the kernel dropped, over all events.
    pub fn lost_records(&self) -> u64 {
        self.events.iter().chain([&self.instance]).filter_map(|e| e.lost).sum()
    }

    /// Counts a call from an entry and an exit record.
    #[inline]
    pub fn call(&mut self, entry: EntryState, exit: ExitState) {
        self.calls += 1;
        self.without_entry += u64::from(entry != EntryState::Seen);
        self.lost_entries += u64::from(entry == EntryState::Lost);
        self.without_exit += u64::from(exit == ExitState::Unseen);
    }

    /// Counts a call from a paired record. It is among the issued calls even if it had no entry.
    #[inline]
    pub fn paired_call(&mut self, exit: ExitState) {
        self.calls += 1;
        self.without_exit += u64::from(exit == ExitState::Unseen);
    }

    /// Counts calls that were aggregated.
    pub fn aggregated_calls(&mut self, calls: u64) {
        self.calls += calls;
    }

    /// Counts a record that is left out.
    pub fn leave_out(&mut self, event: EventIndex, why: LeftOut) {
        self.entries_left_out += u64::from(self.account(event).entries);
        match why {
            LeftOut::SetUp => self.set_up += 1,
            LeftOut::Duplicate => self.duplicates += 1,
            LeftOut::Excluded => self.excluded += 1,
            LeftOut::OfEvent => self.of_events += 1,
            LeftOut::NotAsked => self.not_asked += 1,
            LeftOut::Repeated => self.repeated += 1,
        }
    }

    /// Counts the hits that the kernel counted, but did not write. Only the difference of the counts shows them,
    /// because PERF_FORMAT_LOST does not count them. There are two causes:
    ///
    /// * A task is moved to another cgroup during a call, and the events are opened on a cgroup (Linux 6.18: 2 of
    ///   250,493 events of a task that was moved 400 times).
    /// * An interrupt hits the event while its CPU is idle (Linux 6.18: all such hits on CPUs other than 0; there were
    ///   101 of 101 signals of a timer).
    ///
    /// Other differences are errors ([`Ledger::disagreements`]).
    pub fn count_unwritten(&mut self, of_cgroup: bool) {
        for account in &mut self.events {
            let (Some(issued), Some(lost), false) = (account.issued, account.lost, account.is_uncounted) else { continue };
            let missing = issued.saturating_sub(account.counted + lost);
            match account.unwritten {
                Unwritten::UnknownSignal => {
                    account.issued = Some(issued - missing);
                    self.unwritten_signals += missing;
                }
                Unwritten::Error if !of_cgroup => {}
                Unwritten::Error | Unwritten::Loss => {
                    account.lost = Some(lost + missing);
                    self.unwritten += missing;
                }
            }
        }
    }

    /// Returns the events for which received + lost differs from issued. Events without the kernel's counts are
    /// omitted.
    pub fn disagreements(&self) -> impl Iterator<Item = (EventIndex, &EventAccount)> {
        let all = self.events.iter().enumerate().map(|(i, account)| (EventIndex(i as u16), account));
        // The side band counts no hits, but some of its records may be lost.
        let counts = |account: &EventAccount| account.received > 0 || account.issued != Some(0);
        all.filter(move |(_, account)| counts(account) && account.disagrees())
    }

    /// Returns the counts of calls; `None` until the kernel's counts of entries are known.
    pub fn calls_account(&self) -> Option<CallsAccount> {
        let mut account = CallsAccount { printed: self.calls, ..CallsAccount::default() };
        for event in self.events.iter().filter(|event| event.entries) {
            account.issued += event.issued?;
            account.lost += event.lost?;
        }
        // A gap may have contained other records, and calls after it may have no entry by design: no more entries are
        // lost than the kernel counted.
        let lost_entries = self.lost_entries.min(account.lost);
        account.issued = (account.issued + self.without_entry).saturating_sub(lost_entries + self.entries_left_out);
        account.lost = account.lost.saturating_sub(lost_entries + self.known_in_flight);
        Some(account)
    }
}

impl EventAccount {
    /// Counts a record that stands for `count` hits.
    #[inline]
    pub fn receive(&mut self, count: u64) {
        self.received += 1;
        self.counted += count;
    }

    /// Counts a record that stands for `count` records: the kernel's count of lost records includes the records that a
    /// lost aggregate stands for.
    pub fn receive_all(&mut self, count: u64) {
        self.received += count;
        self.counted += count;
    }

    /// Returns whether received + lost differs from issued, as far as that can be decided. If each record may count for
    /// several hits, the hits of lost records are not known.
    pub fn disagrees(&self) -> bool {
        let lost = self.lost.unwrap_or(0);
        !self.is_uncounted
            && self.issued.is_some_and(|issued| match self.received == self.counted || lost == 0 {
                true => self.counted + lost != issued,
                false => self.counted + lost > issued,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;

    fn ledger() -> Ledger {
        let enters = EventAccount { received: 8, counted: 8, issued: Some(10), lost: Some(2), entries: true, ..EventAccount::default() };
        Ledger { events: vec![enters], ..Ledger::default() }
    }

    #[test]
    fn calls_are_conserved_over_losses_and_exits_without_entry() {
        let mut ledger = ledger();
        let returned = ExitState::Returned { at: Time(1), ret: 0 };
        ledger.leave_out(EventIndex(0), LeftOut::SetUp);
        (0..6).for_each(|_| ledger.call(EntryState::Seen, returned));
        ledger.call(EntryState::Seen, ExitState::Unseen);
        ledger.call(EntryState::Unseen, returned);
        ledger.call(EntryState::Lost, returned);
        let account = ledger.calls_account().unwrap();
        assert_eq!(account, CallsAccount { issued: 10, printed: 9, lost: 1 });
        assert!(account.is_conserved());
        assert_eq!(ledger.disagreements().count(), 0);
    }

    #[test]
    fn no_more_entries_are_lost_than_the_kernel_counted() {
        let mut ledger = ledger();
        (0..8).for_each(|_| ledger.call(EntryState::Seen, ExitState::Unseen));
        (0..3).for_each(|_| ledger.call(EntryState::Lost, ExitState::Returned { at: Time(1), ret: 0 }));
        let account = ledger.calls_account().unwrap();
        assert_eq!(
            account,
            CallsAccount { issued: 11, printed: 11, lost: 0 },
            "a gap in other records, and a call that began before the trace"
        );
    }

    #[test]
    fn unwritten_records_of_cgroup_events_are_lost() {
        let mut ledger = ledger();
        (0..7).for_each(|_| ledger.call(EntryState::Seen, ExitState::Unseen));
        (ledger.events[0].received, ledger.events[0].counted) = (7, 7);
        ledger.count_unwritten(true);
        assert_eq!(ledger.calls_account(), Some(CallsAccount { issued: 10, printed: 7, lost: 3 }));
        assert_eq!((ledger.disagreements().count(), ledger.unwritten), (0, 1));
    }

    #[test]
    fn interrupts_may_hit_events_without_a_record() {
        let account = |unwritten| {
            let event = EventAccount { received: 7, counted: 7, unwritten, ..ledger().events[0] };
            let mut ledger = Ledger { events: vec![event], ..Ledger::default() };
            ledger.count_unwritten(false);
            let event = ledger.events[0];
            (event.issued, event.lost, ledger.unwritten, ledger.unwritten_signals, ledger.disagreements().count())
        };
        assert_eq!(account(Unwritten::Error), (Some(10), Some(2), 0, 0, 1));
        assert_eq!(account(Unwritten::Loss), (Some(10), Some(3), 1, 0, 0));
        assert_eq!(account(Unwritten::UnknownSignal), (Some(9), Some(2), 0, 1, 0));
    }

    #[test]
    fn only_hits_after_a_remote_disable_are_not_issued() {
        let account = |issued, remote_disables| {
            let mut ledger = ledger();
            ledger.count(EventIndex(0), issued, 2, remote_disables);
            (ledger.events[0].issued.unwrap(), ledger.disagreements().count())
        };
        assert_eq!([account(10, 2), account(11, 2), account(12, 2)], [(10, 0); 3]);
        assert_eq!([account(13, 2), account(11, 0), account(9, 2)], [(11, 1), (11, 1), (9, 1)]);
    }

    #[test]
    fn a_missing_call_is_not_hidden() {
        let mut ledger = ledger();
        (0..7).for_each(|_| ledger.call(EntryState::Seen, ExitState::Unseen));
        assert!(!ledger.calls_account().unwrap().is_conserved());
        ledger.events[0].counted = 7;
        ledger.events[0].received = 7;
        assert_eq!(ledger.disagreements().count(), 1);
    }

    #[test]
    fn weighted_records_are_compared_by_their_counts() {
        let disagrees = |issued, lost| {
            let mut account = EventAccount { issued: Some(issued), lost: Some(lost), ..EventAccount::default() };
            account.receive(700);
            account.receive(50);
            account.disagrees()
        };
        assert!(!disagrees(750, 0) && disagrees(751, 0) && disagrees(749, 0));
        assert!(!disagrees(9_000, 3), "the hits of the lost records are not known");
        assert!(disagrees(740, 3), "but there are no fewer hits than received");
    }
}
