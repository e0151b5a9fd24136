//! What is said at the end about the run itself: what was issued, printed and lost, and what could not be trusted. On stderr, whatever the output is.

use crate::beauty::tables::SYSCALLS;
use crate::gate::{Account, Held};
use crate::plan::Plan;
use crate::request::{Selector, Trace};
use crate::run::worker::Outcome;
use crate::session::Session;
use crate::syscall::ledger::{CallsAccount, EventAccount, Ledger};
use crate::text::near;
use std::fmt::Write;

/// The verdict's sentences, a line each; none when there is nothing to say.
pub fn sentences(request: &Trace, plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let Outcome { session, ledger, account, given_up, .. } = outcome;
    let mut said = Vec::new();
    let account = &Account {
        calls_held_back: account.calls_held_back + ledger.left_out,
        calls_shown: account.calls_shown.saturating_sub(*given_up),
        ..*account
    };
    for (event, counts) in ledger.disagreements() {
        let name = session.events.get(event).map_or("an event", |spec| spec.name.as_str());
        let (issued, lost) = (counts.issued.unwrap_or_default(), counts.lost.unwrap_or_default());
        said.push(format!(
            "the account of {name} does not add up: {issued} issued, {} received, {lost} lost; please report this",
            counts.received
        ));
    }
    if ledger.instance.disagrees() {
        let EventAccount { issued, received, lost, .. } = ledger.instance;
        said.push(format!(
            "the account of {}, which come by a tracefs instance, does not add up: {} issued, {received} received, {} lost; please report this",
            of_instance(session),
            issued.unwrap_or_default(),
            lost.unwrap_or_default()
        ));
    }
    if account.undecided > 0 {
        said.push(format!("{} calls were not shown because the filter asks for something of them that is not known", account.undecided));
    }
    said.extend(nothing_matched(request, plan, account, ledger.left_out));
    if let Some(calls) = ledger.calls_account()
        && (calls.lost > 0 || request.run.verbose > 0 || (*given_up > 0 && !outcome.is_quiet()))
    {
        let calls = CallsAccount { issued: calls.issued + ledger.left_out, ..calls };
        said.push(of_calls(&calls, account, *given_up));
    }
    if request.run.verbose > 0 {
        said.extend(of_others(session, ledger));
        let EventAccount { issued, received, lost, .. } = ledger.instance;
        let counts = issued.zip(lost).map(|(issued, lost)| format!("{issued} issued, {received} came, {lost} lost"));
        said.extend(counts.map(|counts| format!("{}: {counts}", of_instance(session))));
    }
    if ledger.unwritten > 0 {
        said.push(format!(
            "{} of the lost records the kernel counted but did not write, because their tasks were moved to another cgroup at that moment",
            ledger.unwritten
        ));
    }
    let others: u64 = lost_of_others(session, ledger);
    if others > 0 {
        said.push(format!("{others} records of other events were lost"));
    }
    if let Some(lost) = ledger.instance.lost.filter(|&lost| lost > 0) {
        said.push(format!(
            "{lost} records of {} were lost (the kernel counts what comes by a tracefs instance together; larger rings, -m, lose less)",
            of_instance(session)
        ));
    }
    said
}

/// So many files are named that were not read.
const UNANSWERED_MAX: usize = 8;

/// Which files were not read for stacks, as their file systems do not answer.
pub fn of_unanswered(files: &[Vec<u8>]) -> Option<String> {
    let mut text: String = files.iter().take(UNANSWERED_MAX).map(|path| String::from_utf8_lossy(path)).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(UNANSWERED_MAX) {
        0 if files.is_empty() => return None,
        0 => {}
        more => text.push_str(&format!(" and {more} more")),
    }
    Some(format!("stacks lack names and callers that these files tell of, because their file systems do not answer: {text}"))
}

/// The events that come by the tracefs instance.
fn of_instance(session: &Session) -> String {
    let events = session.events.events.iter().filter(|spec| spec.is_by_instance());
    let names = events.map(|spec| spec.terms.name.as_ref().unwrap_or(&spec.name).as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// `N calls issued, P printed, L lost`, and what was held back and given up: the numbers add up.
fn of_calls(calls: &CallsAccount, account: &Account, given_up: u64) -> String {
    let mut text = format!("{} calls issued, {} printed, {} lost", calls.issued, account.calls_shown, calls.lost);
    if account.calls_held_back > 0 {
        // A String takes everything.
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

/// The same for events that are no calls.
fn of_others(session: &Session, ledger: &Ledger) -> impl Iterator<Item = String> {
    let shown = session.events.events.iter().zip(&ledger.events).filter(|(spec, _)| spec.shown && !spec.role.is_of_syscalls());
    shown.filter_map(|(spec, counts)| {
        let (issued, lost) = (counts.issued?, counts.lost?);
        let name = spec.terms.name.as_ref().unwrap_or(&spec.name);
        Some(format!("{name}: {issued} issued, {} came, {lost} lost", counts.counted))
    })
}

/// Losses of what is no call: they would be missed nowhere else.
fn lost_of_others(session: &Session, ledger: &Ledger) -> u64 {
    let is_other = |at: usize| session.events.events.get(at).is_some_and(|spec| spec.shown && !spec.role.is_of_syscalls());
    ledger.events.iter().enumerate().filter(|(at, _)| is_other(*at)).filter_map(|(_, counts)| counts.lost).sum()
}

/// When nothing was shown: what passed by, and what held it back, or which names are near to those asked for.
fn nothing_matched(request: &Trace, plan: &Plan, account: &Account, left_out: u64) -> Option<String> {
    let limits = limits(request, &account.held, left_out);
    if account.shown > 0 || plan.gate.max == Some(0) || request.run.quiet || (request.what.items.is_empty() && limits.is_empty()) {
        return None;
    }
    let names = request.what.items.iter().filter(|item| !item.negated).map(|item| item.selector.to_string()).collect::<Vec<_>>().join(",");
    let names = if names.is_empty() { names } else { format!(" {names}") };
    let passed = match account.calls_held_back {
        0 => String::new(),
        n => format!("; {n} calls passed by"),
    };
    // Names that are near explain nothing where calls of the right name were there.
    let why = match limits.is_empty() {
        true => near::hint(&near_names(request, plan)),
        false => format!(", held back by {}", limits.join(" and ")),
    };
    let what = if account.signals_shown > 0 { "nothing but signals" } else { "nothing" };
    Some(format!("{what} matched{names}{passed}{why}"))
}

/// What was asked for that held calls back which were selected, as it was written. What the kernel left out it does
/// not tell apart.
fn limits(request: &Trace, held: &Held, left_out: u64) -> Vec<String> {
    let (what, show) = (&request.what, &request.show);
    let filters = what.filter.iter().chain(what.items.iter().filter_map(|item| item.filter.as_ref()));
    let mut filters: Vec<String> = filters.map(|filter| format!("--filter '{filter}'")).collect();
    filters.dedup();
    let switch = what.switch_on.as_ref().map(|event| format!("--switch-on {event}"));
    let switch = switch.or_else(|| what.switch_off.as_ref().map(|event| format!("--switch-off {event}")));
    let one = |asked: bool, text: &str| if asked { vec![text.to_owned()] } else { Vec::new() };
    let stack = one(held.stack > 0, "--min-stack");
    let in_kernel = |calls: u64, limits: Vec<String>| if calls + left_out > 0 { limits } else { Vec::new() };
    [
        if held.switch > 0 { switch.into_iter().collect() } else { Vec::new() },
        stack,
        in_kernel(held.failure, one(show.failure, "--failure")),
        in_kernel(held.duration, one(show.duration.is_some(), "--duration")),
        in_kernel(held.path, one(!show.paths.is_empty(), "--path")),
        in_kernel(held.filter, filters),
    ]
    .concat()
}

fn near_names(request: &Trace, plan: &Plan) -> Vec<&'static str> {
    let asked = || {
        request.what.items.iter().filter_map(|item| match &item.selector {
            Selector::Syscall(name) => Some(name.as_str()),
            _ => None,
        })
    };
    let others = || {
        let is_selected = |at: usize| plan.gate.rows.iter().any(|doors| doors.get(at).is_some_and(Option::is_some));
        let rows = SYSCALLS.iter().enumerate().filter(move |(at, _)| !is_selected(*at)).map(|(_, row)| row.name);
        rows.filter(|name| !asked().any(|asked| asked == *name))
    };
    let mut near: Vec<&str> = asked().flat_map(|name| near::nearest(name, others(), 3)).collect();
    near.sort_unstable();
    near.dedup();
    near
}
