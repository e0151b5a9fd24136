//! What is shown of what happened: the selection, `--duration`, `--failure`, filters, switches and amounts.
//!
//! It stands between engine and sinks, so that no sink selects and the engine knows nothing of taste. What it holds back it counts.

mod paths;
mod subject;

pub use paths::{Paths, may_have_paths};
pub use subject::{CallScope, CallSubject, Named, TracepointScope, TracepointSubject};

use crate::beauty::lookup;
use crate::engine::view::View;
use crate::event::{Abi, Call, Event, EventIndex, Exit, TaskEnd, Time, What};
use crate::request::filter::{Bound, Subject, Verdict};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// What is let through.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// By row of [`crate::beauty::tables::SYSCALLS`]; `None` when it is not shown.
    pub rows: [Vec<Option<Door>>; 4],
    /// Calls without a row, whatever their number.
    pub nameless: Option<Door>,
    /// Calls without a row, by number.
    pub others: Vec<(Abi, u32)>,
    /// By event index; `None` when it is not shown.
    pub events: Vec<Option<Door>>,
    /// `nr=N` of the items of `-e`, by their place.
    pub amounts: Vec<Option<u64>>,
    /// `--path`
    pub paths: Paths,
    /// `--duration`, nanoseconds.
    pub duration: Option<u64>,
    pub failure: bool,
    /// `--max-events`
    pub max: Option<u64>,
    pub switch_on: Option<Switch>,
    pub switch_off: Option<Switch>,
    pub show_switches: bool,
    /// Which ends of tasks are shown.
    pub exits: OfTasks,
    /// Show calls that are still in flight.
    pub pending: bool,
    /// Which signals are shown.
    pub signals: OfTasks,
    /// `--min-stack`: calls whose stack has fewer frames are not shown.
    pub frames_min: usize,
}

/// Which lines about what happens to tasks are shown: their signals, their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OfTasks {
    #[default]
    None,
    /// Those of processes of which something was shown, and the ends of those that a signal killed.
    OfShown,
    All,
}

impl Settings {
    /// Whether calls of this number may be shown.
    pub fn selects(&self, abi: Abi, nr: i64) -> bool {
        match lookup::index(abi, nr) {
            Some(row) => self.rows[abi as usize].get(usize::from(row)).is_some_and(Option::is_some),
            None => self.nameless.is_some() || self.names_other(abi, nr),
        }
    }

    fn names_other(&self, abi: Abi, nr: i64) -> bool {
        self.others.iter().any(|(other, number)| *other == abi && i64::from(*number) == nr)
    }
}

/// What one kind of event must fulfil: the general condition, and that of one of the items that selected it (if items did).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Door {
    pub general: Condition,
    pub items: SmallVec<[(u16, Condition); 1]>,
}

/// A filter, bound to what its names mean here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    #[default]
    Always,
    When(Bound),
    /// It asks for something that this kind of event does not have.
    Never,
}

impl From<Bound> for Condition {
    fn from(bound: Bound) -> Condition {
        match bound {
            Bound::Known(true) => Condition::Always,
            Bound::Known(false) => Condition::Never,
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

/// An event that switches the output on or off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switch {
    Syscalls(Vec<u16>),
    Events(Vec<EventIndex>),
}

/// The gate, with what passed so far.
#[derive(Debug)]
pub struct Gate {
    settings: Settings,
    /// By item of `-e`: how many it let through.
    passed_by_item: Vec<u64>,
    /// Processes of which something was shown, where that decides about their ends and signals.
    seen: FxHashSet<i32>,
    on: bool,
    /// For calls that are shown whatever they are.
    open: Door,
    /// The calls that were shown in flight and are not over yet: when each began, by thread.
    in_flight: FxHashMap<i32, Time>,
    account: Account,
}

/// What passed and what did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Events that were asked for: what `--max-events` counts.
    pub shown: u64,
    /// Calls among them.
    pub calls_shown: u64,
    /// Calls that were seen and not shown.
    pub calls_held_back: u64,
    /// Of these, calls of which the filter could not be decided, because what it asks for is not known.
    pub undecided: u64,
    /// Calls that were selected and not shown all the same.
    pub held: Held,
    pub signals_shown: u64,
}

/// By what calls were held back that were selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub switch: u64,
    pub failure: u64,
    pub stack: u64,
    pub path: u64,
    pub duration: u64,
    pub filter: u64,
}

impl Gate {
    pub fn new(settings: Settings) -> Gate {
        let on = settings.switch_on.is_none();
        Gate {
            open: Door::default(),
            passed_by_item: vec![0; settings.amounts.len()],
            on,
            in_flight: FxHashMap::default(),
            seen: FxHashSet::default(),
            settings,
            account: Account::default(),
        }
    }

    pub fn account(&self) -> Account {
        self.account
    }

    /// No more is wanted.
    pub fn is_full(&self) -> bool {
        self.settings.max.is_some_and(|max| self.account.shown >= max)
    }

    /// Whether an event is shown. A call that is over is told here whether it was shown in flight.
    pub fn lets_through(&mut self, event: &mut Event, view: &View) -> bool {
        if let What::Call(call) = &mut event.what
            && call.shown_pending
        {
            call.shown_pending = self.in_flight.remove(&call.id.tid) == Some(call.id.start);
        }
        let event = &*event;
        let switches = self.switch(event);
        if let (What::Call(call), None, false) = (&event.what, switches, self.on) {
            self.account.held.switch += u64::from(self.door(call).is_some());
        }
        let shown = !self.is_full() && (switches == Some(true) || (switches.is_none() && self.on && self.wanted(event, view)));
        let calls = event.what.calls();
        if self.settings.exits == OfTasks::OfShown || self.settings.signals == OfTasks::OfShown {
            self.remember(event, shown);
        }
        *(if shown { &mut self.account.calls_shown } else { &mut self.account.calls_held_back }) += calls;
        if let (What::Pending(call), true) = (&event.what, shown) {
            self.in_flight.insert(call.id.tid, call.id.start);
        }
        self.account.signals_shown += u64::from(shown && matches!(event.what, What::Signal(_)));
        if shown && counts(event, view) {
            self.account.shown += calls.max(1);
        }
        shown
    }

    /// Keeps in mind which processes have lines.
    fn remember(&mut self, event: &Event, shown: bool) {
        match &event.what {
            What::Exit(_) if event.task.tid == event.task.pid => {
                self.seen.remove(&event.task.pid);
            }
            What::Call(_) | What::Pending(_) | What::Tracepoint { .. } if shown => {
                self.seen.insert(event.task.pid);
            }
            _ => {}
        }
    }

    /// If the event is a switch: turns it, and says whether it is shown.
    fn switch(&mut self, event: &Event) -> Option<bool> {
        let is = |switch: &Option<Switch>| match (switch, &event.what) {
            (Some(Switch::Syscalls(rows)), What::Call(call)) => lookup::index(call.abi, call.nr).is_some_and(|row| rows.contains(&row)),
            (Some(Switch::Events(events)), What::Tracepoint { event, .. }) => events.contains(event),
            _ => false,
        };
        let turn = if self.on { is(&self.settings.switch_off).then_some(false) } else { is(&self.settings.switch_on).then_some(true) };
        turn.map(|on| {
            self.on = on;
            self.settings.show_switches
        })
    }

    fn wanted(&mut self, event: &Event, view: &View) -> bool {
        match &event.what {
            What::Call(call) | What::Pending(call) => self.wants_call(event, call),
            What::Tracepoint { event: index, raw, .. } => {
                let door = self.settings.events.get(usize::from(index.0)).and_then(Option::as_ref);
                let format = view.session.events.get(*index).and_then(|spec| spec.format.as_ref());
                let (Some(door), Some(format)) = (door, format) else { return false };
                let passed = self.decide(door, &TracepointSubject { event, format, raw });
                self.take(passed)
            }
            // The plan has calls summed up only where every one of them is shown.
            What::Tally(_) => true,
            What::Exit(TaskEnd::Killed(_)) => self.settings.exits != OfTasks::None,
            What::Exit(_) => self.concerns(self.settings.exits, event.task.pid),
            What::Signal(_) => self.concerns(self.settings.signals, event.task.pid),
            What::Fork { .. } | What::Exec { .. } | What::Fault(_) | What::Lost(_) => true,
        }
    }

    fn concerns(&self, which: OfTasks, pid: i32) -> bool {
        match which {
            OfTasks::None => false,
            OfTasks::OfShown => self.seen.contains(&pid),
            OfTasks::All => true,
        }
    }

    fn wants_call(&mut self, event: &Event, call: &Call) -> bool {
        let pending = matches!(event.what, What::Pending(_));
        if pending && !self.settings.pending {
            return false;
        }
        let Some(door) = self.door(call) else { return false };
        let once = u64::from(!pending);
        if self.settings.failure && call.errno().is_none() {
            self.account.held.failure += once;
            return false;
        }
        if call.stack.as_ref().map_or(0, |stack| stack.frames.len()) < self.settings.frames_min {
            self.account.held.stack += once;
            return false;
        }
        if !self.settings.paths.is_empty() && !self.settings.paths.concern(call, lookup::row(call.abi, call.nr)) {
            self.account.held.path += once;
            return false;
        }
        if let Some(least) = self.settings.duration
            && !took_at_least(call, least, event.time)
        {
            self.account.held.duration += once;
            return false;
        }
        let passed = self.decide(door, &CallSubject { event, call, row: lookup::row(call.abi, call.nr) });
        match passed {
            Passed::Unknown => {
                self.account.undecided += once;
                false
            }
            Passed::No => {
                self.account.held.filter += once;
                false
            }
            // A call in flight counts when it is complete.
            Passed::Yes(_) if pending => true,
            passed => self.take(passed),
        }
    }

    fn door(&self, call: &Call) -> Option<&Door> {
        match lookup::index(call.abi, call.nr) {
            Some(row) => self.settings.rows[call.abi as usize].get(usize::from(row))?.as_ref(),
            None if self.settings.names_other(call.abi, call.nr) => Some(&self.open),
            None => self.settings.nameless.as_ref(),
        }
    }

    /// The general condition first, then the first item that has not had its amount and whose condition holds.
    fn decide(&self, door: &Door, subject: &dyn Subject) -> Passed {
        let general = door.general.verdict(subject);
        if general == Verdict::No {
            return Passed::No;
        }
        let mut unknown = general == Verdict::Unknown;
        if door.items.is_empty() {
            return if unknown { Passed::Unknown } else { Passed::Yes(None) };
        }
        for (item, condition) in &door.items {
            let at = usize::from(*item);
            let had = self.passed_by_item.get(at).copied().unwrap_or_default();
            if self.settings.amounts.get(at).copied().flatten().is_some_and(|most| had >= most) {
                continue;
            }
            match condition.verdict(subject) {
                Verdict::Yes if general == Verdict::Yes => return Passed::Yes(Some(*item)),
                Verdict::Yes | Verdict::Unknown => unknown = true,
                Verdict::No => {}
            }
        }
        if unknown { Passed::Unknown } else { Passed::No }
    }

    /// Counts one for the item that let it through.
    fn take(&mut self, passed: Passed) -> bool {
        if let Passed::Yes(Some(item)) = passed
            && let Some(count) = self.passed_by_item.get_mut(usize::from(item))
        {
            *count += 1;
        }
        matches!(passed, Passed::Yes(_))
    }
}

/// Whether an event is one of those that were asked for, and not one that goes with them.
fn counts(event: &Event, view: &View) -> bool {
    match &event.what {
        What::Fork { .. } | What::Exec { .. } | What::Exit(_) | What::Signal(_) | What::Lost(_) => false,
        What::Tracepoint { event, .. } => view.session.events.get(*event).is_some_and(|spec| spec.shown),
        // It counts when it is over.
        What::Pending(_) => false,
        What::Call(_) | What::Tally(_) | What::Fault(_) => true,
    }
}

/// What the conditions say of an event.
#[derive(Clone, Copy)]
enum Passed {
    /// By this item, if items selected it.
    Yes(Option<u16>),
    No,
    Unknown,
}

/// Whether a call took at least so long. One that is in flight, or that its task never left, has lasted until now.
fn took_at_least(call: &Call, least: u64, now: Time) -> bool {
    let took = match call.exit {
        Exit::Pending | Exit::Never => Some(now.since(call.id.start)),
        Exit::Returned { .. } | Exit::Unseen => call.duration(),
    };
    took.is_some_and(|took| took >= least)
}
