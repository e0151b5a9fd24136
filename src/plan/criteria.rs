//! Makes the criteria by which the gate shows events: from items, filters and switches.

use super::events::{EventAdder, Tracepoint};
use super::graphs::Graph;
use crate::beauty::tables::SYSCALLS;
use crate::bpf::user::Output;
use crate::event::{Abi, EventIndex};
use crate::gate::{CallScope, Condition, Criteria, Switch, TracepointScope};
use crate::kernel::constant::Constant;
use crate::kernel::format::{FieldPlace, Format};
use crate::kernel::machine::NATIVE_ABI;
use crate::kernel::tracefs::EventName;
use crate::probe::grammar::ProbePoint;
use crate::probe::run_events::RunEvent;
use crate::request::filter::{Bindings, Expr, KernelField, KernelScope, Name, Scope, to_kernel};
use crate::request::select::{self, Selection};
use crate::request::{Item, Selector};
use crate::session::{Role, Terms};
use anyhow::anyhow;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The filters, and whether each of them applies to some traced event, so that a filter that applies to none is
/// reported as an error.
pub struct Filters<'a> {
    items: &'a [Item],
    general: Option<&'a Expr>,
    general_bindings: Bindings,
    /// By the index of the `-e` or `--probe` option that the filter follows; all its items share the filter.
    bindings: BTreeMap<usize, Bindings>,
}

impl<'a> Filters<'a> {
    pub fn new(items: &'a [Item], general: Option<&'a Expr>) -> Filters<'a> {
        Filters { items, general, general_bindings: Bindings::default(), bindings: BTreeMap::new() }
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
    pub fn check(&self) -> anyhow::Result<()> {
        if let Some(general) = self.general {
            self.general_bindings.check(general).map_err(|why| anyhow!(why))?;
        }
        for item in self.items {
            if let (Some(filter), Some(bindings)) = (&item.filter, self.bindings.get(&item.list)) {
                bindings.check(filter).map_err(|why| anyhow!(why))?;
            }
        }
        Ok(())
    }
}

/// Returns the criteria of syscalls, by ABI and row, and those of calls without a row.
pub fn of_syscalls(selection: &Selection, filters: &mut Filters) -> ([Vec<Option<Criteria>>; 4], Option<Criteria>) {
    let mut criteria = |abi: Abi, row: Option<usize>| {
        let scope = CallScope { abi, row: row.map(|r| &SYSCALLS[r]) };
        let selected_by = row.and_then(|r| selection.items.get(r)).cloned().unwrap_or_default();
        let mut items_of: SmallVec<[(u16, Condition); 1]> = SmallVec::new();
        for at in selected_by {
            items_of.push((at, filters.of_item(usize::from(at), &scope)));
        }
        Criteria { general: filters.general(&scope), items: items_of }
    };
    let rows = Abi::ALL.map(|abi| {
        let is_there = |row: usize| SYSCALLS.get(row).is_some_and(|syscall| syscall.numbers[abi as usize].is_some());
        selection.rows.iter().enumerate().map(|(row, on)| (*on && is_there(row)).then(|| criteria(abi, Some(row)))).collect()
    });
    let nameless = selection.unknown.then(|| criteria(NATIVE_ABI, None));
    (rows, nameless)
}

/// Adds the tracepoints that items name, and returns their criteria. The kernel evaluates a filter where it can and
/// where no other item selects the same event.
///
/// # Errors
/// A pattern matches no event, or a format cannot be read.
pub fn of_tracepoints(add: &mut EventAdder, filters: &mut Filters) -> anyhow::Result<Vec<Option<Criteria>>> {
    let mut criteria: Vec<Option<Criteria>> = Vec::new();
    let items = filters.items;
    for (at, item) in items.iter().enumerate() {
        let named = match &item.selector {
            Selector::Event { subsystem, name } => add
                .tracefs
                .some_matching(subsystem, name)?
                .into_iter()
                .map(|name| (name, Graph::of_event(&item.terms, add.general), item.terms.clone()))
                .collect(),
            Selector::Probe(_) => of_probe(add, at, &item.terms),
            _ => continue,
        };
        for (EventName { subsystem, name }, graph, terms) in named {
            if item.negated {
                if let Some(index) = add.position(&subsystem, &name) {
                    criteria.get_mut(usize::from(index.0)).and_then(Option::take);
                }
                continue;
            }
            let index =
                add.tracepoint(Tracepoint { shown: true, terms, graph, ..Tracepoint::helper(&subsystem, &name, Role::Tracepoint) })?;
            let Some(format) = add.format(index) else { continue };
            let scope = TracepointScope { format: &format };
            let own = filters.of_item(at, &scope);
            let place = usize::from(index.0);
            criteria.resize(criteria.len().max(place + 1), None);
            let criteria = criteria[place].get_or_insert_with(|| Criteria { general: filters.general(&scope), items: SmallVec::new() });
            criteria.items.push((at as u16, own));
        }
    }
    for (place, criteria) in criteria.iter_mut().enumerate() {
        if let Some(criteria) = criteria {
            let_kernel_decide(add, EventIndex(place as u16), criteria, items);
        }
    }
    Ok(criteria)
}

/// Returns the events of a probe, with the stacks that they record and the terms that their lines show.
fn of_probe(add: &EventAdder, item: usize, terms: &Terms) -> Vec<(EventName, Graph, Terms)> {
    let graph = |event: &RunEvent| match event.probe.place {
        ProbePoint::File { .. } | ProbePoint::Usdt { .. } => Graph::of_program(terms, add.general),
        _ => Graph::of_event(terms, add.general),
    };
    let terms =
        |event: &RunEvent| Terms { name: Some(event.shown.to_string()), function: event.function().map(str::to_owned), ..terms.clone() };
    add.made.of_item(item).map(|event| (event.name.clone(), graph(event), terms(event))).collect()
}

/// Adds the events of the user's BPF programs and appends their criteria. All other events have been added before.
pub fn of_outputs(add: &mut EventAdder, criteria: &mut Vec<Option<Criteria>>, outputs: &[Output], filters: &mut Filters) {
    criteria.resize(add.events.len(), None);
    for (at, item) in filters.items.iter().enumerate() {
        for output in outputs.iter().filter(|output| usize::from(output.item) == at) {
            add.output(output, &item.terms);
            let scope = TracepointScope { format: &output.format };
            let own = filters.of_item(at, &scope);
            criteria.push(Some(Criteria { general: filters.general(&scope), items: SmallVec::from_iter([(at as u16, own)]) }));
        }
    }
}

fn let_kernel_decide(add: &mut EventAdder, index: EventIndex, criteria: &mut Criteria, items: &[Item]) {
    let [(at, condition)] = criteria.items.as_mut_slice() else { return };
    let (Some(filter), Some(format)) = (items.get(usize::from(*at)).and_then(|i| i.filter.as_ref()), add.format(index)) else { return };
    if let Some(text) = to_kernel(filter, &KernelFields(&format)) {
        add.filter(index, text);
        *condition = Condition::Always;
    }
}

struct KernelFields<'a>(&'a Format);

impl KernelScope for KernelFields<'_> {
    fn field(&self, name: &Name) -> Option<KernelField> {
        let field = self.0.field(&name.0)?;
        let name = field.name.clone();
        if field.is_text() {
            return Some(KernelField::Text { name });
        }
        let is_number = field.array.is_none() && field.place == FieldPlace::Here && field.size <= 8;
        is_number.then(|| KernelField::Number { name, bits: field.size as u8 * 8, signed: field.signed })
    }

    fn constant(&self, name: &Name, symbol: &str) -> Option<Constant> {
        TracepointScope { format: self.0 }.constant(name, symbol)
    }
}

/// Returns the event that switches the output, and adds it to the plan if it is not traced yet.
///
/// # Errors
/// There is no such syscall or event, or the syscall is not traced.
pub fn switch(add: &mut EventAdder, selector: Option<&Selector>, selection: &Selection) -> anyhow::Result<Option<Switch>> {
    let Some(selector) = selector else { return Ok(None) };
    if let Selector::Event { subsystem, name } = selector {
        let mut events = Vec::new();
        for EventName { subsystem, name } in add.tracefs.some_matching(subsystem, name)? {
            events.push(add.tracepoint(Tracepoint { shown: true, ..Tracepoint::helper(&subsystem, &name, Role::Tracepoint) })?);
        }
        return Ok(Some(Switch::Events(events)));
    }
    let item = Item { negated: false, selector: selector.clone(), terms: Default::default(), filter: None, list: 0 };
    let chosen = select::resolve(&[item], Some(true), SYSCALLS, &[]).map_err(|e| anyhow!(e))?;
    let rows: Vec<u16> = chosen.rows.iter().enumerate().filter(|(_, on)| **on).map(|(row, _)| row as u16).collect();
    if !rows.iter().any(|row| selection.rows.get(usize::from(*row)).copied().unwrap_or_default()) {
        return Err(anyhow!("{selector} switches the output, so it must be traced: add it to -e"));
    }
    Ok(Some(Switch::Syscalls(rows)))
}
