//! Makes the verdict of a trace from the ledger, the gate and the request. This is done once, after the last event was
//! shown.

use crate::beauty::lookup::requests;
use crate::beauty::tables::SYSCALLS;
use crate::event::Verdict;
use crate::event::verdict::{CallsVerdict, EventVerdict, InstanceVerdict, NothingShown, RequestCount};
use crate::gate::{Account, Gate, Settings, WithheldCalls};
use crate::request::{EventSelection, Selector, Trace};
use crate::session::{EventSpec, Session};
use crate::show::{Outcomes, Show, Style};
use crate::syscall::ledger::{EventAccount, Ledger};
use crate::text::near;

/// The parts of the request that explain why nothing was shown.
#[derive(Debug)]
pub struct Selection {
    what: EventSelection,
    show: Show,
}

impl Selection {
    /// Returns a copy of these parts of a request.
    pub fn of(request: &Trace) -> Selection {
        Selection { what: request.what.clone(), show: request.show.clone() }
    }

    /// Returns the verdict, if all calls that were shown could be written.
    pub fn verdict(&self, session: &Session, ledger: &Ledger, gate: &Gate) -> Verdict {
        let account = gate.account();
        let held_back = account.calls_held_back + ledger.left_out;
        let calls = ledger.calls_account().map(|calls| CallsVerdict {
            issued: calls.issued + ledger.left_out,
            shown: account.calls_shown,
            lost: calls.lost,
            held_back,
            given_up: 0,
        });
        let others = session.events.events.iter().zip(&ledger.events).filter(|(spec, _)| spec.shown && !spec.role.records_calls());
        Verdict {
            calls,
            events: others.filter_map(|(spec, counts)| event(spec, counts)).collect(),
            instance: instance(session, ledger.instance),
            disagreements: disagreements(session, ledger),
            lost_records: ledger.lost_records(),
            unplaced: ledger.lost_records().saturating_sub(ledger.lost_placed),
            gaps_without_size: ledger.gaps_unsized > 0,
            unwritten: ledger.unwritten,
            unwritten_signals: ledger.unwritten_signals,
            undecided: account.undecided,
            outside_span: account.withheld.time,
            given_up: 0,
            not_permitted: ledger.not_permitted,
            untraced_requests: untraced_requests(ledger),
            shortages: ledger.shortages.clone(),
            unanswered_files: Vec::new(),
            nothing_shown: self.nothing_shown(gate, held_back, ledger.left_out),
        }
    }

    /// Returns why nothing was shown; `None` if there is nothing to explain, because everything was selected and no
    /// call was held back.
    fn nothing_shown(&self, gate: &Gate, held_back: u64, left_out: u64) -> Option<NothingShown> {
        // strace says nothing about it.
        if self.show.style == Style::Strace {
            return None;
        }
        let Account { shown, withheld, signals_shown, .. } = gate.account();
        let limits = self.limits(&withheld, left_out);
        if shown > 0 || gate.settings().max == Some(0) || (self.what.items.is_empty() && limits.is_empty()) {
            return None;
        }
        Some(NothingShown {
            selected: self.what.items.iter().filter(|item| !item.negated).map(|item| item.selector.to_string()).collect(),
            held_back,
            // If calls with the selected names were traced, similar names explain nothing.
            similar: if limits.is_empty() { self.similar(gate.settings()) } else { Vec::new() },
            limits,
            signals: signals_shown > 0,
        })
    }

    /// Returns the options that held selected calls back, as they were written. For calls that the kernel filtered out,
    /// the option is not known.
    fn limits(&self, withheld: &WithheldCalls, left_out: u64) -> Vec<String> {
        let Selection { what, show } = self;
        let filters = what.filter.iter().chain(what.items.iter().filter_map(|item| item.filter.as_ref()));
        let mut filters: Vec<String> = filters.map(|filter| format!("--filter '{filter}'")).collect();
        filters.dedup();
        let switch = what.switch_on.as_ref().map(|event| format!("--switch-on {event}"));
        let switch = switch.or_else(|| what.switch_off.as_ref().map(|event| format!("--switch-off {event}")));
        let one = |selected: bool, text: &str| if selected { vec![text.to_owned()] } else { Vec::new() };
        let stack = one(withheld.stack > 0, "--min-stack");
        let in_kernel = |calls: u64, limits: Vec<String>| if calls + left_out > 0 { limits } else { Vec::new() };
        [
            if withheld.switch > 0 { switch.into_iter().collect() } else { Vec::new() },
            stack,
            one(withheld.time > 0, "--time"),
            in_kernel(withheld.failure, one(show.outcomes != Outcomes::all(), "--failure")),
            in_kernel(withheld.duration, one(show.duration.is_some(), "--duration")),
            in_kernel(withheld.path, one(!show.paths.is_empty(), "--path")),
            in_kernel(withheld.filter, filters),
        ]
        .concat()
    }

    /// Returns the syscalls that were not selected and whose names are similar to the selected ones.
    fn similar(&self, gate: &Settings) -> Vec<&'static str> {
        let selected = || {
            self.what.items.iter().filter_map(|item| match &item.selector {
                Selector::Syscall(name) => Some(name.as_str()),
                _ => None,
            })
        };
        let others = || {
            let is_selected = |at: usize| gate.rows.iter().any(|criteria| criteria.get(at).is_some_and(Option::is_some));
            let rows = SYSCALLS.iter().enumerate().filter(move |(at, _)| !is_selected(*at)).map(|(_, row)| row.name);
            rows.filter(|name| !selected().any(|selected| selected == *name))
        };
        let mut near: Vec<&str> = selected().flat_map(|name| near::nearest(name, others(), 3)).collect();
        near.sort_unstable();
        near.dedup();
        near
    }
}

fn untraced_requests(ledger: &Ledger) -> Vec<RequestCount> {
    let named = |&(opcode, count): &(u8, u64)| RequestCount { name: requests::full_name(opcode.into()), count };
    ledger.untraced_requests.iter().map(named).collect()
}

/// Returns the account of an event's records, if the kernel counted them.
fn event(spec: &EventSpec, counts: &EventAccount) -> Option<EventVerdict> {
    let (issued, lost) = (counts.issued?, counts.lost?);
    Some(EventVerdict { name: spec.name.clone(), called: spec.terms.name.clone(), issued, received: counts.counted, lost })
}

/// Returns the events whose counts do not add up.
fn disagreements(session: &Session, ledger: &Ledger) -> Vec<EventVerdict> {
    let disagreements = ledger.disagreements().map(|(event, counts)| EventVerdict {
        name: session.events.get(event).map_or_else(|| "an event".to_owned(), |spec| spec.name.clone()),
        called: session.events.get(event).and_then(|spec| spec.terms.name.clone()),
        issued: counts.issued.unwrap_or_default(),
        received: counts.received,
        lost: counts.lost.unwrap_or_default(),
    });
    disagreements.collect()
}

/// Returns the account of the tracefs instance, if there is one and the kernel's counts were read.
fn instance(session: &Session, counts: EventAccount) -> Option<InstanceVerdict> {
    let events = session.events.events.iter().filter(|spec| spec.is_by_instance());
    let events = events.map(|spec| spec.terms.name.as_ref().unwrap_or(&spec.name).clone()).collect();
    let (issued, lost) = (counts.issued?, counts.lost?);
    Some(InstanceVerdict { events, issued, received: counts.received, lost, disagrees: counts.disagrees() })
}
