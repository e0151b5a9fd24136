//! Binds the selection and the filters of a request to the events of a stream.
//!
//! The names, formats and roles of the events come from the stream's session, and nothing is read from the traced
//! machine. A stream that is read from a file can therefore be bound in the same way as one that was just armed.

use super::{CallScope, Condition, Criteria, Paths, Settings, Switch, TaskEvents, TracepointScope};
use crate::beauty::lookup::requests;
use crate::beauty::special::Special;
use crate::beauty::tables::SYSCALLS;
use crate::event::{Abi, EventIndex};
use crate::request::filter::{Bindings, Expr, Scope};
use crate::request::select::{self, Selection};
use crate::request::{Item, Selector, Target, Trace};
use crate::session::{self, EventSpec, Role};
use crate::show::{Mode, Outcomes, Style};
use anyhow::anyhow;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The facts about a stream that binding needs.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    /// The events, in the order of their indices.
    pub events: Vec<&'a EventSpec>,
    /// The traced tasks. Which signals and which ends of tasks are shown depends on them.
    pub scope: session::Scope,
    /// The machine's ABI.
    pub abi: Abi,
    /// The paths of `--path`, as the traced machine named them.
    pub paths: &'a [session::PathNames],
    /// The events for which the kernel evaluates the filter of their item, and writes only the records that match it.
    pub filtered: Vec<EventIndex>,
}

/// Returns the settings of the gate for this stream. `selection` are the syscalls that the request selects.
///
/// # Errors
/// A part of a filter applies to no event of the stream, or the syscall that switches the output is not traced.
pub fn bind(request: &Trace, selection: &Selection, stream: &Stream) -> anyhow::Result<Settings> {
    let Trace { what, show, graphs, .. } = request;
    let mut filters = Filters::new(&what.items, what.filter.as_ref());
    let events = of_events(stream, &mut filters);
    let switch_on = switch(what.switch_on.as_ref(), selection, stream)?;
    let switch_off = switch(what.switch_off.as_ref(), selection, stream)?;
    let (mut rows, mut nameless) = of_syscalls(selection, stream.abi, &mut filters);
    if let Some(shown) = &show.strace.calls {
        for (row, criteria, shown) in
            rows.iter_mut().zip(shown).flat_map(|(rows, shown)| (0..).zip(rows).map(move |(row, of)| (row, of, shown)))
        {
            criteria.take_if(|_| !shown.contains(Some(row)));
        }
        nameless.take_if(|_| !shown[stream.abi as usize].contains(None));
    }
    let requests = of_requests(selection, stream.abi, &mut filters);
    filters.check()?;
    Ok(Settings {
        rows,
        nameless,
        others: selection.others.clone(),
        requests,
        events,
        amounts: what.items.iter().map(|item| item.terms.nr).collect(),
        paths: Paths::new(&show.paths, stream.paths),
        duration: show.duration,
        outcomes: show.outcomes,
        descriptors: show.descriptors.clone(),
        detaches: show.strace.detaches.then_some(matches!(request.target, Target::Command(_))),
        max: show.max_events,
        switch_on,
        switch_off,
        show_switches: what.show_on_off_events,
        exits: exits(request, selection, stream.scope),
        // The caller sets the two, because they depend on the output and on the recording.
        pending: true,
        span: None,
        signals: signals(request, selection, stream.scope),
        frames_min: graphs.min.map_or(0, usize::from),
    })
}

/// Returns the tasks whose signals are shown. Signals accompany the lines of calls. If a filter selects calls, a signal
/// to a process without a matching call is unrelated to the request, and in a trace of the whole machine there would be
/// many such signals.
pub fn signals(request: &Trace, selection: &Selection, scope: session::Scope) -> TaskEvents {
    let Trace { what, show, .. } = request;
    let beside_calls = !selection.is_empty();
    let filters = what.filter.is_some() || what.items.iter().any(|item| item.filter.is_some());
    let is_narrowed = filters || !show.paths.is_empty() || show.outcomes != Outcomes::all() || show.duration.is_some();
    match what.signals {
        _ if matches!(show.mode, Mode::Summary | Mode::Report) => TaskEvents::None,
        None if show.style == Style::Strace && follows_tasks(scope) => TaskEvents::All,
        Some(true) => TaskEvents::All,
        None if beside_calls && !is_narrowed => TaskEvents::All,
        None if beside_calls && follows_tasks(scope) => TaskEvents::OfShown,
        _ => TaskEvents::None,
    }
}

/// Returns the tasks whose exits are shown. If only some calls are selected, a process that makes no such call has no
/// lines.
fn exits(request: &Trace, selection: &Selection, scope: session::Scope) -> TaskEvents {
    let Trace { what, show, run, .. } = request;
    let asked = SYSCALLS.iter().zip(&selection.rows).any(|(row, on)| *on && row.does == Special::ExitGroup);
    let is_limited = !what.items.is_empty() || what.filter.is_some() || !show.paths.is_empty();
    if show.style == Style::Strace && follows_tasks(scope) {
        return TaskEvents::All;
    }
    match follows_tasks(scope) && !run.quiet {
        false => TaskEvents::None,
        true if is_limited && !(asked && what.filter.is_none() && show.paths.is_empty()) => TaskEvents::OfShown,
        true => TaskEvents::All,
    }
}

fn follows_tasks(scope: session::Scope) -> bool {
    matches!(scope, session::Scope::Command | session::Scope::Tasks)
}

/// The filters, and a record of which of their parts apply to some traced event. A part that applies to no event is an
/// error.
struct Filters<'a> {
    items: &'a [Item],
    general: Option<&'a Expr>,
    general_bindings: Bindings,
    /// The bindings of each filter, by the index of the `-e` or `--probe` option that the filter follows. All items of
    /// the option share the filter.
    bindings: BTreeMap<usize, Bindings>,
}

impl<'a> Filters<'a> {
    fn new(items: &'a [Item], general: Option<&'a Expr>) -> Filters<'a> {
        Filters { items, general, general_bindings: Bindings::default(), bindings: BTreeMap::new() }
    }

    /// Returns the criteria for one kind of event that these items select.
    fn criteria(&mut self, scope: &dyn Scope, selected_by: &[u16]) -> Criteria {
        let items = selected_by.iter().map(|at| (*at, self.of_item(usize::from(*at), scope))).collect();
        Criteria { general: self.general(scope), items }
    }

    /// Returns the condition that applies to all events, bound to one kind of event.
    fn general(&mut self, scope: &dyn Scope) -> Condition {
        self.general.map_or(Condition::Always, |expr| expr.bind(scope, &mut self.general_bindings).into())
    }

    /// Returns the condition of an item, bound to one kind of event.
    fn of_item(&mut self, at: usize, scope: &dyn Scope) -> Condition {
        let Some((filter, list)) = self.items.get(at).and_then(|item| Some((item.filter.as_ref()?, item.list))) else {
            return Condition::Always;
        };
        filter.bind(scope, self.bindings.entry(list).or_default()).into()
    }

    /// Checks that each part of each filter applies to some traced event.
    ///
    /// # Errors
    /// A part applies to none; the error suggests similar names.
    fn check(&self) -> anyhow::Result<()> {
        if let Some(general) = self.general {
            self.general_bindings.check("--filter", general).map_err(|why| anyhow!(why))?;
        }
        for item in self.items {
            if let (Some(filter), Some(bindings)) = (&item.filter, self.bindings.get(&item.list)) {
                bindings.check("--filter", filter).map_err(|why| anyhow!(why))?;
            }
        }
        Ok(())
    }
}

/// Returns the criteria of syscalls, by ABI and row, and those of calls without a row.
fn of_syscalls(selection: &Selection, nameless_abi: Abi, filters: &mut Filters) -> ([Vec<Option<Criteria>>; 4], Option<Criteria>) {
    let rows = Abi::ALL.map(|abi| {
        let is_there = |row: usize| SYSCALLS.get(row).is_some_and(|syscall| syscall.numbers[abi as usize].is_some());
        let mut criteria = |row: usize| {
            let selected_by = selection.items.get(row).map(SmallVec::as_slice).unwrap_or_default();
            filters.criteria(&CallScope { abi, row: SYSCALLS.get(row), is_request: false }, selected_by)
        };
        selection.rows.iter().enumerate().map(|(row, on)| (*on && is_there(row)).then(|| criteria(row))).collect()
    });
    let nameless = selection.unknown.then(|| filters.criteria(&CallScope { abi: nameless_abi, row: None, is_request: false }, &[]));
    (rows, nameless)
}

/// Returns the criteria of requests of io_uring, by opcode.
fn of_requests(selection: &Selection, abi: Abi, filters: &mut Filters) -> Vec<Option<Criteria>> {
    let scope = |opcode: u16| CallScope { abi, row: requests::row(requests::number(opcode)), is_request: true };
    (0..).zip(&selection.requests).map(|(opcode, by)| (!by.is_empty()).then(|| filters.criteria(&scope(opcode), by))).collect()
}

/// Returns the criteria of the events that are not calls, by their index.
fn of_events(stream: &Stream, filters: &mut Filters) -> Vec<Option<Criteria>> {
    let mut criteria = Vec::new();
    for (index, spec) in (0..).map(EventIndex).zip(&stream.events) {
        let selected_by = if spec.shown { selected_by(filters.items, spec) } else { SmallVec::new() };
        criteria.push(match &spec.format {
            // The summary counts these events even if they are not shown.
            _ if spec.role == Role::StatRuntime => Some(Criteria::default()),
            Some(format) if !selected_by.is_empty() => {
                let mut criteria = filters.criteria(&TracepointScope { format, abi: stream.abi }, &selected_by);
                if let ([(_, own)], true) = (criteria.items.as_mut_slice(), stream.filtered.contains(&index)) {
                    *own = Condition::Always;
                }
                Some(criteria)
            }
            _ => None,
        });
    }
    criteria
}

/// Returns the items that select an event. An item with `!` removes the event from the items before it.
pub fn selected_by(items: &[Item], spec: &EventSpec) -> SmallVec<[u16; 2]> {
    let mut selected_by = SmallVec::new();
    for (at, item) in (0..).zip(items) {
        match selects(&item.selector, spec) || spec.terms.created_for == Some(at) {
            true if item.negated => selected_by.clear(),
            true => selected_by.push(at),
            false => {}
        }
    }
    selected_by
}

/// Returns whether a selector selects an event.
fn selects(selector: &Selector, spec: &EventSpec) -> bool {
    let is_named = spec.name.split_once(':').is_some_and(|(group, event)| selector.selects_event(group, event));
    is_named && spec.role == Role::Tracepoint
}

/// Returns the event that switches the output.
///
/// # Errors
/// There is no such syscall, or it is not traced.
fn switch(selector: Option<&Selector>, selection: &Selection, stream: &Stream) -> anyhow::Result<Option<Switch>> {
    let Some(selector) = selector else { return Ok(None) };
    if let Selector::Event { .. } = selector {
        let events = (0..).map(EventIndex).zip(&stream.events).filter(|(_, spec)| spec.shown && selects(selector, spec));
        return Ok(Some(Switch::Events(events.map(|(index, _)| index).collect())));
    }
    let item = Item { negated: false, selector: selector.clone(), terms: Default::default(), filter: None, list: 0 };
    let chosen = select::resolve(&[item], Some(true), SYSCALLS, &[]).map_err(|e| anyhow!(e))?;
    let rows: Vec<u16> = chosen.rows.iter().enumerate().filter(|(_, on)| **on).map(|(row, _)| row as u16).collect();
    if !rows.iter().any(|row| selection.rows.get(usize::from(*row)).copied().unwrap_or_default()) {
        return Err(anyhow!("{selector} switches the output, so it must be traced: add it to -e"));
    }
    Ok(Some(Switch::Syscalls(rows)))
}
