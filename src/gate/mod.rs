//! The gate: decides which events are shown, by the selection, `--duration`, `--failure`, filters, switches and limits.
//!
//! The gate runs between engine and sinks, so that no sink selects events and the engine knows none of these options.
//! It counts the events that it does not show.

mod account;
mod bind;
mod descriptors;
mod detach;
mod outcome;
mod paths;
mod span;
mod subject;

pub use account::{Account, WithheldCalls};
pub use bind::{Stream, bind, selected_by, signals};
pub use paths::{Paths, may_have_paths};
pub use span::Span;
pub use subject::{CallOperand, CallScope, CallSubject, TracepointScope, TracepointSubject};

use crate::beauty::lookup;
use crate::engine::view::View;
use crate::event::{Abi, Call, CallId, Event, EventIndex, EventKind, TaskEnd, Time};
use crate::request::filter::{Bound, Subject, Verdict};
use crate::show::Outcomes;
use crate::show::descriptors::Descriptors;
use detach::Detached;
use outcome::{outcome, took_at_least};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// The criteria for showing events.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// By row of [`crate::beauty::tables::SYSCALLS`]; `None` if calls of the row are not shown.
    pub rows: [Vec<Option<Criteria>>; 4],
    /// For all calls that have no row; `None` if they are not shown.
    pub nameless: Option<Criteria>,
    /// Selected calls that have no row, by number.
    pub others: Vec<(Abi, u32)>,
    /// Requests of io_uring by opcode ([`crate::beauty::lookup::requests`]); empty if none is selected.
    pub requests: Vec<Option<Criteria>>,
    /// By event index; `None` if the event is not shown.
    pub events: Vec<Option<Criteria>>,
    /// `nr=N` of the items of `-e`, by item index.
    pub amounts: Vec<Option<u64>>,
    /// `--path`
    pub paths: Paths,
    /// `--duration`, in nanoseconds.
    pub duration: Option<u64>,
    /// `--failure`: calls that ended otherwise are not shown.
    pub outcomes: Outcomes,
    /// Calls without a descriptor of this set are not shown; `None` if all are.
    pub descriptors: Option<Descriptors>,
    /// Processes are shown until they execute a program. True: the first program is the command.
    pub detaches: Option<bool>,
    /// `--max-events`
    pub max: Option<u64>,
    /// `--switch-on`: events are shown from this one on; `None` if they are shown from the beginning.
    pub switch_on: Option<Switch>,
    /// `--switch-off`: events are not shown from this one on, until `switch_on` occurs (again).
    pub switch_off: Option<Switch>,
    /// `--show-on-off-events`: whether the events that switch are shown themselves.
    pub show_switches: bool,
    /// Which ends of tasks are shown.
    pub exits: TaskEvents,
    /// Whether calls in flight are shown. The caller of [`bind()`] sets it.
    pub pending: bool,
    /// Which signals are shown.
    pub signals: TaskEvents,
    /// `--min-stack`: calls whose stack has fewer frames are not shown.
    pub frames_min: usize,
    /// `--time`: events outside this span are not shown. It decides after all other criteria, so that the lines are
    /// those that a trace without it has in the span.
    pub span: Option<Span>,
}

/// Which events that concern tasks (signals and task ends) are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskEvents {
    #[default]
    None,
    /// Events of processes of which another event was shown, and the ends of tasks that a signal killed.
    OfShown,
    All,
}

impl Settings {
    /// Returns whether an event that is shown may depend on any earlier event that the settings select, and not only on
    /// those that change the state of tasks.
    pub fn depend_on_earlier_events(&self) -> bool {
        let of_shown = self.exits == TaskEvents::OfShown || self.signals == TaskEvents::OfShown;
        let switches = self.switch_on.is_some() || self.switch_off.is_some() || self.detaches.is_some();
        of_shown || switches || self.amounts.iter().any(Option::is_some)
    }

    fn names_other(&self, abi: Abi, nr: i64) -> bool {
        self.others.iter().any(|(other, number)| *other == abi && i64::from(*number) == nr)
    }
}

/// The criteria for one kind of event: the general condition and, if items of `-e` selected the event, the condition of
/// each item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Criteria {
    /// The condition of the `--filter` that applies to all events. An event that does not meet it is not shown.
    pub general: Condition,
    /// The items that selected the event: the index of each in the request, and the condition of its own filter. An
    /// event must meet one of these conditions, unless there are no items.
    pub items: SmallVec<[(u16, Condition); 1]>,
}

/// A filter, with its names resolved for one kind of event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    #[default]
    Always,
    When(Bound),
    /// The filter refers to something that this kind of event does not have.
    Never,
}

impl From<Bound> for Condition {
    fn from(bound: Bound) -> Condition {
        match bound {
            Bound::Constant(true) => Condition::Always,
            Bound::Constant(false) => Condition::Never,
            bound => Condition::When(bound),
        }
    }
}

impl Condition {
    fn verdict(&self, subject: &dyn Subject) -> Verdict {
        match self {
            Condition::Always => Verdict::Yes,
            Condition::When(bound) => bound.verdict(subject),
            Condition::Never => Verdict::No,
        }
    }
}

/// An event that switches the output on or off (`--switch-on`, `--switch-off`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switch {
    Syscalls(Vec<u16>),
    Events(Vec<EventIndex>),
}

/// The gate, with the state of the events so far.
#[derive(Debug)]
pub struct Gate {
    settings: Settings,
    /// The number of events that each item of `-e` let through, by item index.
    passed_by_item: Vec<u64>,
    /// Processes of which an event was shown; kept only if their ends and signals depend on it.
    shown_processes: FxHashSet<i32>,
    on: bool,
    /// The criteria of calls that are shown unconditionally.
    unconditional: Criteria,
    /// Calls that were shown in flight and have not ended. A thread can have several requests of io_uring.
    in_flight: FxHashSet<CallId>,
    detached: Option<Detached>,
    /// Whether the span alone withheld the last event.
    is_outside: bool,
    account: Account,
}

impl Gate {
    pub fn new(settings: Settings) -> Gate {
        let on = settings.switch_on.is_none();
        Gate {
            unconditional: Criteria::default(),
            passed_by_item: vec![0; settings.amounts.len()],
            on,
            in_flight: FxHashSet::default(),
            shown_processes: FxHashSet::default(),
            detached: settings.detaches.map(Detached::new),
            settings,
            is_outside: false,
            account: Account::default(),
        }
    }

    /// Returns the criteria by which this gate decides.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the counts of the events so far.
    pub fn account(&self) -> Account {
        self.account
    }

    /// Returns whether the limit of `--max-events` has been reached.
    pub fn is_full(&self) -> bool {
        self.settings.max.is_some_and(|max| self.account.shown >= max)
    }

    /// Returns whether no event can be shown any more, because all later ones are behind the span.
    pub fn is_over(&self, now: Time) -> bool {
        self.settings.span.is_some_and(|span| span.is_over(now))
    }

    /// Returns when the span begins ([`Span::begin`]); `None` if there is none.
    pub fn span_begin(&self) -> Option<Time> {
        self.settings.span.and_then(|span| span.begin())
    }

    /// Returns whether the last event would be shown if it were in the span.
    pub fn is_outside(&self) -> bool {
        self.is_outside
    }

    /// Counts calls that were not read, because they are before the span.
    pub fn pass_over(&mut self, calls: u64) {
        self.account.calls_held_back += calls;
        self.account.withheld.time += calls;
    }

    /// Returns whether an event is shown. It also sets in a call that has ended whether the call was shown in flight.
    pub fn lets_through(&mut self, event: &mut Event, view: &View) -> bool {
        self.is_outside = false;
        // Notices belong to every trace.
        if matches!(event.kind, EventKind::Notice(_)) {
            return true;
        }
        if self.detached.as_mut().is_some_and(|detached| detached.has(event)) {
            self.account.calls_held_back += event.kind.calls();
            return false;
        }
        if let EventKind::Call(call) = &mut event.kind
            && call.shown_pending
        {
            call.shown_pending = self.in_flight.remove(&call.id);
        }
        let event = &*event;
        let switches = self.switch(event);
        if let (EventKind::Call(call), None, false) = (&event.kind, switches, self.on) {
            self.account.withheld.switch += u64::from(self.criteria(call).is_some());
        }
        let is_last = matches!(&event.kind, EventKind::Call(call) if call.detached);
        let passes = !self.is_full() && (is_last || switches == Some(true) || (switches.is_none() && self.on && self.passes(event, view)));
        let shown = passes && self.settings.span.as_mut().is_none_or(|span| span.has(event, view.session));
        self.is_outside = passes && !shown;
        let calls = event.kind.calls();
        self.account.withheld.time += if self.is_outside { calls } else { 0 };
        if self.settings.exits == TaskEvents::OfShown || self.settings.signals == TaskEvents::OfShown {
            self.store_shown_process(event, passes);
        }
        *(if shown { &mut self.account.calls_shown } else { &mut self.account.calls_held_back }) += calls;
        if let (EventKind::Pending(call), true) = (&event.kind, passes) {
            self.in_flight.insert(call.id);
        }
        self.account.signals_shown += u64::from(shown && matches!(event.kind, EventKind::Signal(_)));
        if shown && is_requested(event, view) {
            self.account.shown += calls.max(1);
        }
        shown
    }

    /// Records which processes have shown events.
    fn store_shown_process(&mut self, event: &Event, shown: bool) {
        match &event.kind {
            EventKind::Exit(_) if event.task.tid == event.task.pid => {
                self.shown_processes.remove(&event.task.pid);
            }
            EventKind::Call(_) | EventKind::Pending(_) | EventKind::Tracepoint { .. } if shown => {
                self.shown_processes.insert(event.task.pid);
            }
            EventKind::Tally(tally) if shown => self.shown_processes.extend(tally.tasks.iter().map(|(task, _)| task.pid)),
            _ => {}
        }
    }

    /// Applies a switch. Returns `None` if the event is no switch, otherwise whether the switch itself is shown.
    fn switch(&mut self, event: &Event) -> Option<bool> {
        let is = |switch: &Option<Switch>| match (switch, &event.kind) {
            (Some(Switch::Syscalls(rows)), EventKind::Call(call)) => {
                lookup::index(call.abi, call.nr).is_some_and(|row| rows.contains(&row))
            }
            (Some(Switch::Events(events)), EventKind::Tracepoint { event, .. }) => events.contains(event),
            _ => false,
        };
        let turn = if self.on { is(&self.settings.switch_off).then_some(false) } else { is(&self.settings.switch_on).then_some(true) };
        turn.map(|on| {
            self.on = on;
            self.settings.show_switches
        })
    }

    fn passes(&mut self, event: &Event, view: &View) -> bool {
        match &event.kind {
            EventKind::Call(call) | EventKind::Pending(call) => self.passes_call(event, call),
            EventKind::Tracepoint { event: index, raw, .. } => {
                let criteria = self.settings.events.get(usize::from(index.0)).and_then(Option::as_ref);
                let format = view.session.events.get(*index).and_then(|spec| spec.format.as_ref());
                let (Some(criteria), Some(format)) = (criteria, format) else { return false };
                let passed = self.decide(criteria, &TracepointSubject { event, format, raw });
                self.count_for_item(passed)
            }
            // Calls are aggregated and tallied only if every one of them is shown.
            EventKind::Aggregate(_) | EventKind::Tally(_) => true,
            EventKind::Exit(TaskEnd::Killed { .. }) => self.settings.exits != TaskEvents::None,
            EventKind::Exit(_) => self.includes_process(self.settings.exits, event.task.pid),
            EventKind::Signal(_) => self.includes_process(self.settings.signals, event.task.pid),
            EventKind::Fork { .. } | EventKind::Exec { .. } | EventKind::Fault(_) | EventKind::Lost(_) | EventKind::Notice(_) => true,
        }
    }

    fn includes_process(&self, which: TaskEvents, pid: i32) -> bool {
        match which {
            TaskEvents::None => false,
            TaskEvents::OfShown => self.shown_processes.contains(&pid),
            TaskEvents::All => true,
        }
    }

    fn passes_call(&mut self, event: &Event, call: &Call) -> bool {
        let pending = matches!(event.kind, EventKind::Pending(_));
        if pending && !self.settings.pending {
            return false;
        }
        let Some(criteria) = self.criteria(call) else { return false };
        let once = u64::from(!pending);
        if !self.settings.outcomes.contains(outcome(call)) {
            self.account.withheld.failure += once;
            return false;
        }
        if call.stack.as_ref().map_or(0, |stack| stack.frames.len()) < self.settings.frames_min {
            self.account.withheld.stack += once;
            return false;
        }
        if let Some(of) = &self.settings.descriptors
            && !descriptors::match_call(of, call, lookup::row(call.abi, call.nr))
        {
            self.account.withheld.path += once;
            return false;
        }
        if !self.settings.paths.is_empty() && !self.settings.paths.match_call(call, lookup::row(call.abi, call.nr)) {
            self.account.withheld.path += once;
            return false;
        }
        if let Some(least) = self.settings.duration
            && !took_at_least(call, least, event.time)
        {
            self.account.withheld.duration += once;
            return false;
        }
        let passed = self.decide(criteria, &CallSubject { event, call, row: lookup::row(call.abi, call.nr) });
        match passed {
            Decision::Unknown => {
                self.account.undecided += once;
                false
            }
            Decision::Withhold => {
                self.account.withheld.filter += once;
                false
            }
            // A call in flight counts towards the limit when it ends.
            Decision::Show(_) if pending => true,
            passed => self.count_for_item(passed),
        }
    }

    fn criteria(&self, call: &Call) -> Option<&Criteria> {
        match lookup::index(call.abi, call.nr) {
            Some(row) => self.settings.rows[call.abi as usize].get(usize::from(row))?.as_ref(),
            None if self.settings.names_other(call.abi, call.nr) => Some(&self.unconditional),
            None => match lookup::requests::opcode(call.nr) {
                Some(opcode) => self.settings.requests.get(usize::from(opcode))?.as_ref(),
                None => self.settings.nameless.as_ref(),
            },
        }
    }

    /// Evaluates the general condition, and then the items until one is below its limit and its condition holds.
    fn decide(&self, criteria: &Criteria, subject: &dyn Subject) -> Decision {
        let general = criteria.general.verdict(subject);
        if general == Verdict::No {
            return Decision::Withhold;
        }
        let mut unknown = general == Verdict::Unknown;
        if criteria.items.is_empty() {
            return if unknown { Decision::Unknown } else { Decision::Show(None) };
        }
        for (item, condition) in &criteria.items {
            let at = usize::from(*item);
            let had = self.passed_by_item.get(at).copied().unwrap_or_default();
            if self.settings.amounts.get(at).copied().flatten().is_some_and(|most| had >= most) {
                continue;
            }
            match condition.verdict(subject) {
                Verdict::Yes if general == Verdict::Yes => return Decision::Show(Some(*item)),
                Verdict::Yes | Verdict::Unknown => unknown = true,
                Verdict::No => {}
            }
        }
        if unknown { Decision::Unknown } else { Decision::Withhold }
    }

    /// Counts the event for the item that let it through.
    fn count_for_item(&mut self, passed: Decision) -> bool {
        if let Decision::Show(Some(item)) = passed
            && let Some(count) = self.passed_by_item.get_mut(usize::from(item))
        {
            *count += 1;
        }
        matches!(passed, Decision::Show(_))
    }
}

/// Returns whether an event was requested itself, and is not an accompanying one.
fn is_requested(event: &Event, view: &View) -> bool {
    match &event.kind {
        EventKind::Fork { .. } | EventKind::Exec { .. } | EventKind::Exit(_) | EventKind::Signal(_) => false,
        EventKind::Lost(_) | EventKind::Notice(_) => false,
        EventKind::Tracepoint { event, .. } => view.session.events.get(*event).is_some_and(|spec| spec.shown),
        // A pending call counts when it ends.
        EventKind::Pending(_) => false,
        EventKind::Call(_) | EventKind::Aggregate(_) | EventKind::Tally(_) | EventKind::Fault(_) => true,
    }
}

/// The result of an event's conditions.
#[derive(Clone, Copy)]
enum Decision {
    /// The event is shown, because of this item if items selected it.
    Show(Option<u16>),
    Withhold,
    Unknown,
}
