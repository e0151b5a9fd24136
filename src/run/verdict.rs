//! The verdict of a trace: how many calls were issued, printed and lost, and which data is not reliable. It is printed
//! on stderr, whatever the output is.

use crate::beauty::tables::SYSCALLS;
use crate::gate::{Account, WithheldCalls};
use crate::plan::Plan;
use crate::request::{Selector, Trace};
use crate::run::worker::Outcome;
use crate::session::Session;
use crate::syscall::ledger::{CallsAccount, EventAccount, Ledger};
use crate::text::near;
use std::fmt::Write;

/// Returns the sentences of the verdict, one per line. There are none if there is nothing to report.
pub fn sentences(request: &Trace, plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let Outcome { session, ledger, account, given_up, .. } = outcome;
    let mut sentences = Vec::new();
    let account = &Account {
        calls_held_back: account.calls_held_back + ledger.left_out,
        calls_shown: account.calls_shown.saturating_sub(*given_up),
        ..*account
    };
    for (event, counts) in ledger.disagreements() {
        let name = session.events.get(event).map_or("an event", |spec| spec.name.as_str());
        let (issued, lost) = (counts.issued.unwrap_or_default(), counts.lost.unwrap_or_default());
        sentences.push(format!(
            "the account of {name} does not add up: {issued} issued, {} received, {lost} lost; please report this",
            counts.received
        ));
    }
    if ledger.instance.disagrees() {
        let EventAccount { issued, received, lost, .. } = ledger.instance;
        sentences.push(format!(
            "the account of {}, which a tracefs instance records, does not add up: {} issued, {received} received, {} lost; please report this",
            instance_events(session),
            issued.unwrap_or_default(),
            lost.unwrap_or_default()
        ));
    }
    if account.undecided > 0 {
        sentences.push(format!("{} calls were not shown because values that the filter needs are not known", account.undecided));
    }
    sentences.extend(nothing_shown(request, plan, account, ledger.left_out));
    if let Some(calls) = ledger.calls_account()
        && (calls.lost > 0 || request.run.verbose > 0 || (*given_up > 0 && !outcome.is_quiet()))
    {
        let calls = CallsAccount { issued: calls.issued + ledger.left_out, ..calls };
        sentences.push(calls_line(&calls, account, *given_up));
    }
    if request.run.verbose > 0 {
        sentences.extend(other_events_lines(session, ledger));
        let EventAccount { issued, received, lost, .. } = ledger.instance;
        let counts = issued.zip(lost).map(|(issued, lost)| format!("{issued} issued, {received} received, {lost} lost"));
        sentences.extend(counts.map(|counts| format!("{}: {counts}", instance_events(session))));
    }
    if ledger.unwritten > 0 {
        sentences.push(format!(
            "{} of the lost records were counted but not written by the kernel, because their tasks were moved to another cgroup at that moment",
            ledger.unwritten
        ));
    }
    let others: u64 = lost_of_others(session, ledger);
    if others > 0 {
        sentences.push(format!("{others} records of other events were lost"));
    }
    if let Some(lost) = ledger.instance.lost.filter(|&lost| lost > 0) {
        sentences.push(format!(
            "{lost} records of {} were lost (the kernel counts all events of a tracefs instance together; larger rings, -m, lose less)",
            instance_events(session)
        ));
    }
    sentences
}

/// The maximum number of files that are named in the message.
const UNANSWERED_MAX: usize = 8;

/// Returns a message with the files that could not be read for stacks because their file systems do not answer.
pub fn unanswered_files(files: &[Vec<u8>]) -> Option<String> {
    let mut text: String = files.iter().take(UNANSWERED_MAX).map(|path| String::from_utf8_lossy(path)).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(UNANSWERED_MAX) {
        0 if files.is_empty() => return None,
        0 => {}
        more => text.push_str(&format!(" and {more} more")),
    }
    Some(format!("stacks lack names and callers, because the file systems of these files do not answer: {text}"))
}

/// Returns the names of the events that the tracefs instance records.
fn instance_events(session: &Session) -> String {
    let events = session.events.events.iter().filter(|spec| spec.is_by_instance());
    let names = events.map(|spec| spec.terms.name.as_ref().unwrap_or(&spec.name).as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// Formats `N calls issued, P printed, L lost`, and the numbers of calls that were held back and given up. The numbers
/// add up.
fn calls_line(calls: &CallsAccount, account: &Account, given_up: u64) -> String {
    let mut text = format!("{} calls issued, {} printed, {} lost", calls.issued, account.calls_shown, calls.lost);
    if account.calls_held_back > 0 {
        // Writing to a String cannot fail.
        let _ = write!(text, ", {} held back as asked", account.calls_held_back);
    }
    if given_up > 0 {
        let _ = write!(text, ", {given_up} given up because the output could not be written");
    }
    if calls.lost > 0 {
        text.push_str(" (larger rings, -m, or fewer events, -e, lose less)");
    }
    text
}

/// Formats the same for each event that is not a call.
fn other_events_lines(session: &Session, ledger: &Ledger) -> impl Iterator<Item = String> {
    let shown = session.events.events.iter().zip(&ledger.events).filter(|(spec, _)| spec.shown && !spec.role.records_calls());
    shown.filter_map(|(spec, counts)| {
        let (issued, lost) = (counts.issued?, counts.lost?);
        let name = spec.terms.name.as_ref().unwrap_or(&spec.name);
        Some(format!("{name}: {issued} issued, {} received, {lost} lost", counts.counted))
    })
}

/// Returns the number of lost records of events that are not calls, which no other message reports.
fn lost_of_others(session: &Session, ledger: &Ledger) -> u64 {
    let is_other = |at: usize| session.events.events.get(at).is_some_and(|spec| spec.shown && !spec.role.records_calls());
    ledger.events.iter().enumerate().filter(|(at, _)| is_other(*at)).filter_map(|(_, counts)| counts.lost).sum()
}

/// Returns a message if nothing was shown: how many calls were traced, and which options held them back or which names
/// are similar to the selected ones.
fn nothing_shown(request: &Trace, plan: &Plan, account: &Account, left_out: u64) -> Option<String> {
    let limits = limits(request, &account.withheld, left_out);
    if account.shown > 0 || plan.gate.max == Some(0) || request.run.quiet || (request.what.items.is_empty() && limits.is_empty()) {
        return None;
    }
    let names = request.what.items.iter().filter(|item| !item.negated).map(|item| item.selector.to_string()).collect::<Vec<_>>().join(",");
    let names = if names.is_empty() { names } else { format!(" {names}") };
    let passed = match account.calls_held_back {
        0 => String::new(),
        n => format!("; {n} calls were traced but not shown"),
    };
    // Similar names are no explanation if calls of the selected names were traced.
    let why = match limits.is_empty() {
        true => near::hint(&near_names(request, plan)),
        false => format!(", held back by {}", limits.join(" and ")),
    };
    let what = if account.signals_shown > 0 { "nothing but signals" } else { "nothing" };
    Some(format!("{what} matched{names}{passed}{why}"))
}

/// Returns the options that held selected calls back, as they were written. For calls that the kernel filtered out, the
/// option is not known.
fn limits(request: &Trace, withheld: &WithheldCalls, left_out: u64) -> Vec<String> {
    let (what, show) = (&request.what, &request.show);
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
        in_kernel(withheld.failure, one(show.failure, "--failure")),
        in_kernel(withheld.duration, one(show.duration.is_some(), "--duration")),
        in_kernel(withheld.path, one(!show.paths.is_empty(), "--path")),
        in_kernel(withheld.filter, filters),
    ]
    .concat()
}

fn near_names(request: &Trace, plan: &Plan) -> Vec<&'static str> {
    let selected = || {
        request.what.items.iter().filter_map(|item| match &item.selector {
            Selector::Syscall(name) => Some(name.as_str()),
            _ => None,
        })
    };
    let others = || {
        let is_selected = |at: usize| plan.gate.rows.iter().any(|criteria| criteria.get(at).is_some_and(Option::is_some));
        let rows = SYSCALLS.iter().enumerate().filter(move |(at, _)| !is_selected(*at)).map(|(_, row)| row.name);
        rows.filter(|name| !selected().any(|selected| selected == *name))
    };
    let mut near: Vec<&str> = selected().flat_map(|name| near::nearest(name, others(), 3)).collect();
    near.sort_unstable();
    near.dedup();
    near
}
