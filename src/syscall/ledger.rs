//! The account: what was issued, what came, what was lost, per event and per call.
//!
//! `issued` and `lost` come from the kernel's own counts (read(2) with PERF_FORMAT_LOST, in [`crate::event::Note::Count`]); `received` is counted in the stream. That
//! the three agree is checked, not assumed ([`Ledger::disagreements`]).
//!
//! From records to calls ([`Ledger::calls_account`]). Every call begins with an entry record, but for those that have none by nature (a seccomp answer, a call that ran
//! when tracing began). A new task's return from clone is an exit record, but no call. So
//!
//! ```text
//! issued calls  = issued entries − entries left out here (set-up, twice, excluded)  + exits that are calls without an entry
//! printed calls = received entries − those left out                                 + exits that are calls without an entry  + exits whose entry was lost
//! lost calls    = lost entries                                                                                              − exits whose entry was lost
//! ```
//!
//! and the first is the sum of the others exactly when issued = received + lost holds for the entries' records. An entry counts as lost where a gap may have swallowed it, and no more of them than the kernel counted.
//!
//! The BPF engine's records are calls: what it issued, it counted where calls begin, and where those without an entry end; nothing is added to that.

use crate::event::{Entry, EventIndex, Exit};
use crate::session::{EventSpec, Role, Session};

/// The account of one run.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// By event index.
    pub events: Vec<EventAccount>,
    /// All events that come by the tracefs instance, which only counts them together.
    pub instance: EventAccount,
    /// Calls that were given to the sinks, each once (a pending call counts when it completes or at the end).
    pub calls: u64,
    /// Of these, calls whose entry was not seen: they have none, or it was lost.
    pub without_entry: u64,
    /// Of these, calls whose entry a gap may have swallowed.
    pub lost_entries: u64,
    /// Of `calls`, those whose exit was not seen.
    pub without_exit: u64,
    /// Calls of which a look at tasks in flight told, and whose own record was lost.
    pub known_by_looks: u64,
    /// Calls that were left out where they returned, as asked: neither issued nor printed here.
    pub left_out: u64,
    /// Exits that a gap makes doubtful: their calls are among those without an exit, or lost.
    pub untrusted_exits: u64,
    /// Returns of clone in the new task, which are not calls of their own.
    pub second_returns: u64,
    /// Records of LOST records so far, placed in the stream.
    pub lost_placed: u64,
    /// Gaps of which it is not known how many records are missing.
    pub gaps_unsized: u64,
    /// Records before the command's execve: rtrace's own set-up.
    pub set_up: u64,
    /// Records dropped here because two origins reported the same task.
    pub twice: u64,
    /// Records of tasks that are left out.
    pub excluded: u64,
    /// Records that came after the stream had passed their time.
    pub late: u64,
    /// Records that could not be read.
    pub unreadable: u64,
    /// Records that the kernel counted and did not write, nor count as lost.
    pub unwritten: u64,
    /// Entries among `set_up`, `twice` and `excluded`.
    entries_left_out: u64,
}

/// The account of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventAccount {
    pub received: u64,
    /// What these counted for: as many, unless the tracepoint counts something else than its own number.
    pub counted: u64,
    /// As read(2) gave it, once it was asked.
    pub issued: Option<u64>,
    pub lost: Option<u64>,
    /// Its records begin calls that are wanted.
    pub entries: bool,
    /// The kernel does not count how often it happens: programs of the user's write its records.
    pub uncounted: bool,
}

/// Why a record is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    SetUp,
    Twice,
    Excluded,
}

/// What became of the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsAccount {
    pub issued: u64,
    pub printed: u64,
    pub lost: u64,
}

impl CallsAccount {
    /// Printed + lost = issued.
    pub fn is_conserved(&self) -> bool {
        self.printed + self.lost == self.issued
    }
}

impl Ledger {
    pub fn new(session: &Session) -> Ledger {
        let begins_wanted = |spec: &EventSpec| spec.shown && matches!(spec.role, Role::RawEnter | Role::Enter { .. } | Role::BpfCall);
        let account = |spec: &EventSpec| EventAccount {
            entries: begins_wanted(spec),
            uncounted: spec.role == Role::Output,
            ..EventAccount::default()
        };
        Ledger { events: session.events.events.iter().map(account).collect(), ..Ledger::default() }
    }

    pub fn account(&mut self, event: EventIndex) -> &mut EventAccount {
        let i = usize::from(event.0);
        if self.events.len() <= i {
            self.events.resize(i + 1, EventAccount::default());
        }
        &mut self.events[i]
    }

    /// What the kernel counted of an event, after all of its records. An event that was switched off from another CPU than its own may have counted one hit more, which
    /// is later than the trace: of such, at most `from_afar` are not issued.
    pub fn count(&mut self, event: EventIndex, issued: u64, lost: u64, from_afar: u64) {
        let account = self.account(event);
        let too_late = issued.saturating_sub(account.counted + lost).min(from_afar);
        (account.issued, account.lost) = (Some(issued - too_late), Some(lost));
    }

    /// Records that the kernel dropped, over all events.
    pub fn lost_records(&self) -> u64 {
        self.events.iter().chain([&self.instance]).filter_map(|e| e.lost).sum()
    }

    /// A call is given.
    #[inline]
    pub fn call(&mut self, entry: Entry, exit: Exit) {
        self.calls += 1;
        self.without_entry += u64::from(entry != Entry::Seen);
        self.lost_entries += u64::from(entry == Entry::Lost);
        self.without_exit += u64::from(exit == Exit::Unseen);
    }

    /// A call is given that one record told whole: it stands among the issued ones however it began.
    #[inline]
    pub fn whole_call(&mut self, exit: Exit) {
        self.calls += 1;
        self.without_exit += u64::from(exit == Exit::Unseen);
    }

    /// So many calls are given at once that have returned.
    pub fn summed_up(&mut self, calls: u64) {
        self.calls += calls;
    }

    /// A record is not looked at.
    pub fn leave_out(&mut self, event: EventIndex, why: LeftOut) {
        self.entries_left_out += u64::from(self.account(event).entries);
        match why {
            LeftOut::SetUp => self.set_up += 1,
            LeftOut::Twice => self.twice += 1,
            LeftOut::Excluded => self.excluded += 1,
        }
    }

    /// Counts as lost what the kernel counted of a cgroup's events and did not write.
    ///
    /// When a task is moved to another cgroup while it makes a call, perf_event's count may go up without a record, and without PERF_FORMAT_LOST (Linux 6.18: 2 of 250,493 events of a
    /// task that was moved 400 times). It is known by the difference alone, so where events are not a cgroup's, a difference is a fault ([`Ledger::disagreements`]).
    pub fn count_unwritten(&mut self) {
        for account in &mut self.events {
            let (Some(issued), Some(lost), false) = (account.issued, account.lost, account.uncounted) else { continue };
            let missing = issued.saturating_sub(account.counted + lost);
            account.lost = Some(lost + missing);
            self.unwritten += missing;
        }
    }

    /// The events for which received + lost is not issued. Events without counts are not among them: nothing is known.
    pub fn disagreements(&self) -> impl Iterator<Item = (EventIndex, &EventAccount)> {
        let all = self.events.iter().enumerate().map(|(i, account)| (EventIndex(i as u16), account));
        // What gives only records about tasks counts nothing, but may lose some of them.
        let counts = |account: &EventAccount| account.received > 0 || account.issued != Some(0);
        all.filter(move |(_, account)| counts(account) && account.disagrees())
    }

    /// What became of the calls; `None` as long as the kernel's counts of entries are not there.
    pub fn calls_account(&self) -> Option<CallsAccount> {
        let mut account = CallsAccount { printed: self.calls, ..CallsAccount::default() };
        for event in self.events.iter().filter(|event| event.entries) {
            account.issued += event.issued?;
            account.lost += event.lost?;
        }
        // A gap may have swallowed other records, and calls behind it have none by nature: no more entries are lost than the kernel counted.
        let lost_entries = self.lost_entries.min(account.lost);
        account.issued = (account.issued + self.without_entry).saturating_sub(lost_entries + self.entries_left_out);
        account.lost = account.lost.saturating_sub(lost_entries + self.known_by_looks);
        Some(account)
    }
}

impl EventAccount {
    /// A record came that stands for `count`.
    #[inline]
    pub fn receive(&mut self, count: u64) {
        self.received += 1;
        self.counted += count;
    }

    /// A record came in place of so many: of those that are lost, the kernel knows as well for how many they stood.
    pub fn receive_all(&mut self, count: u64) {
        self.received += count;
        self.counted += count;
    }

    /// Received and lost are not issued, as far as that is known. What lost records counted for is not known where each may count for more than one.
    pub fn disagrees(&self) -> bool {
        let lost = self.lost.unwrap_or(0);
        !self.uncounted
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
        let enters = EventAccount { received: 8, counted: 8, issued: Some(10), lost: Some(2), entries: true, uncounted: false };
        Ledger { events: vec![enters], ..Ledger::default() }
    }

    #[test]
    fn calls_are_conserved_over_losses_and_exits_without_entry() {
        let mut ledger = ledger();
        let returned = Exit::Returned { at: Time(1), ret: 0 };
        ledger.leave_out(EventIndex(0), LeftOut::SetUp);
        (0..6).for_each(|_| ledger.call(Entry::Seen, returned));
        ledger.call(Entry::Seen, Exit::Unseen);
        ledger.call(Entry::Unseen, returned);
        ledger.call(Entry::Lost, returned);
        let account = ledger.calls_account().unwrap();
        assert_eq!(account, CallsAccount { issued: 10, printed: 9, lost: 1 });
        assert!(account.is_conserved());
        assert_eq!(ledger.disagreements().count(), 0);
    }

    #[test]
    fn no_more_entries_are_lost_than_the_kernel_counted() {
        let mut ledger = ledger();
        (0..8).for_each(|_| ledger.call(Entry::Seen, Exit::Unseen));
        (0..3).for_each(|_| ledger.call(Entry::Lost, Exit::Returned { at: Time(1), ret: 0 }));
        let account = ledger.calls_account().unwrap();
        assert_eq!(
            account,
            CallsAccount { issued: 11, printed: 11, lost: 0 },
            "a gap in other records, and a call that began before the trace"
        );
    }

    #[test]
    fn what_a_cgroups_events_lack_is_lost() {
        let mut ledger = ledger();
        (0..7).for_each(|_| ledger.call(Entry::Seen, Exit::Unseen));
        (ledger.events[0].received, ledger.events[0].counted) = (7, 7);
        ledger.count_unwritten();
        assert_eq!(ledger.calls_account(), Some(CallsAccount { issued: 10, printed: 7, lost: 3 }));
        assert_eq!((ledger.disagreements().count(), ledger.unwritten), (0, 1));
    }

    #[test]
    fn a_hit_after_the_event_was_switched_off_is_not_issued_and_no_other_is_hidden() {
        let account = |issued, from_afar| {
            let mut ledger = ledger();
            ledger.count(EventIndex(0), issued, 2, from_afar);
            (ledger.events[0].issued.unwrap(), ledger.disagreements().count())
        };
        assert_eq!([account(10, 2), account(11, 2), account(12, 2)], [(10, 0); 3]);
        assert_eq!([account(13, 2), account(11, 0), account(9, 2)], [(11, 1), (11, 1), (9, 1)]);
    }

    #[test]
    fn a_missing_call_is_not_hidden() {
        let mut ledger = ledger();
        (0..7).for_each(|_| ledger.call(Entry::Seen, Exit::Unseen));
        assert!(!ledger.calls_account().unwrap().is_conserved());
        ledger.events[0].counted = 7;
        ledger.events[0].received = 7;
        assert_eq!(ledger.disagreements().count(), 1);
    }

    #[test]
    fn weighted_records_agree_by_what_they_count_for() {
        let disagrees = |issued, lost| {
            let mut account = EventAccount { issued: Some(issued), lost: Some(lost), ..EventAccount::default() };
            account.receive(700);
            account.receive(50);
            account.disagrees()
        };
        assert!(!disagrees(750, 0) && disagrees(751, 0) && disagrees(749, 0));
        assert!(!disagrees(9_000, 3), "what the lost ones counted for is not known");
        assert!(disagrees(740, 3), "but not less than what came");
    }
}
