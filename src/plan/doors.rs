//! Which events pass the gate under which conditions: items, filters, switches.

use super::events::{Adding, Tracepoint};
use super::graphs::Graph;
use crate::beauty::tables::SYSCALLS;
use crate::bpf::user::Output;
use crate::event::{Abi, EventIndex};
use crate::gate::{CallScope, Condition, Door, Switch, TracepointScope};
use crate::kernel::constant::Constant;
use crate::kernel::format::{FieldPlace, Format};
use crate::kernel::machine::NATIVE_ABI;
use crate::kernel::tracefs::EventName;
use crate::probe::grammar::Place;
use crate::probe::made::MadeEvent;
use crate::request::filter::{Expr, Fit, KernelField, KernelScope, Name, Scope, to_kernel};
use crate::request::select::{self, Selection};
use crate::request::{Item, Selector};
use crate::session::{Role, Terms};
use anyhow::anyhow;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The filters, and whether each fits something that is traced, so that one that fits nothing is an error and not a silence.
pub struct Filters<'a> {
    items: &'a [Item],
    general: Option<&'a Expr>,
    general_fit: Fit,
    /// By the `-e` or `--probe` that the filter stands behind, whose items share it.
    fits: BTreeMap<usize, Fit>,
}

impl<'a> Filters<'a> {
    pub fn new(items: &'a [Item], general: Option<&'a Expr>) -> Filters<'a> {
        Filters { items, general, general_fit: Fit::default(), fits: BTreeMap::new() }
    }

    /// The condition for everything, as it holds for one kind of event.
    fn general(&mut self, scope: &dyn Scope) -> Condition {
        self.general.map_or(Condition::Always, |expr| expr.bind(scope, &mut self.general_fit).into())
    }

    /// That of an item.
    fn of_item(&mut self, at: usize, scope: &dyn Scope) -> Condition {
        let Some((filter, list)) = self.items.get(at).and_then(|item| Some((item.filter.as_ref()?, item.list))) else {
            return Condition::Always;
        };
        filter.bind(scope, self.fits.entry(list).or_default()).into()
    }

    /// Whether all of it means something for something that is traced.
    ///
    /// # Errors
    /// A sentence with near names.
    pub fn check(&self) -> anyhow::Result<()> {
        if let Some(general) = self.general {
            self.general_fit.check(general).map_err(|why| anyhow!(why))?;
        }
        for item in self.items {
            if let (Some(filter), Some(fit)) = (&item.filter, self.fits.get(&item.list)) {
                fit.check(filter).map_err(|why| anyhow!(why))?;
            }
        }
        Ok(())
    }
}

/// The doors of syscalls, by ABI and row, and of calls without a row.
pub fn of_syscalls(selection: &Selection, filters: &mut Filters) -> ([Vec<Option<Door>>; 4], Option<Door>) {
    let mut door = |abi: Abi, row: Option<usize>| {
        let scope = CallScope { abi, row: row.map(|r| &SYSCALLS[r]) };
        let selected_by = row.and_then(|r| selection.items.get(r)).cloned().unwrap_or_default();
        let mut items_of: SmallVec<[(u16, Condition); 1]> = SmallVec::new();
        for at in selected_by {
            items_of.push((at, filters.of_item(usize::from(at), &scope)));
        }
        Door { general: filters.general(&scope), items: items_of }
    };
    let rows = Abi::ALL.map(|abi| {
        let is_there = |row: usize| SYSCALLS.get(row).is_some_and(|syscall| syscall.numbers[abi as usize].is_some());
        selection.rows.iter().enumerate().map(|(row, on)| (*on && is_there(row)).then(|| door(abi, Some(row)))).collect()
    });
    let nameless = selection.unknown.then(|| door(NATIVE_ABI, None));
    (rows, nameless)
}

/// Adds the tracepoints that items name, and makes their doors. The kernel decides a filter where it can and where no other item wants the same event.
///
/// # Errors
/// A pattern that matches no event, a format that cannot be read.
pub fn of_tracepoints(add: &mut Adding, filters: &mut Filters) -> anyhow::Result<Vec<Option<Door>>> {
    let mut doors: Vec<Option<Door>> = Vec::new();
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
                    doors.get_mut(usize::from(index.0)).and_then(Option::take);
                }
                continue;
            }
            let index =
                add.tracepoint(Tracepoint { shown: true, terms, graph, ..Tracepoint::helper(&subsystem, &name, Role::Tracepoint) })?;
            let Some(format) = add.format(index) else { continue };
            let scope = TracepointScope { format: &format };
            let own = filters.of_item(at, &scope);
            let place = usize::from(index.0);
            doors.resize(doors.len().max(place + 1), None);
            let door = doors[place].get_or_insert_with(|| Door { general: filters.general(&scope), items: SmallVec::new() });
            door.items.push((at as u16, own));
        }
    }
    for (place, door) in doors.iter_mut().enumerate() {
        if let Some(door) = door {
            let_kernel_decide(add, EventIndex(place as u16), door, items);
        }
    }
    Ok(doors)
}

/// The events of a probe, how their stacks are taken, and what lines tell of them.
fn of_probe(add: &Adding, item: usize, terms: &Terms) -> Vec<(EventName, Graph, Terms)> {
    let graph = |event: &MadeEvent| match event.probe.place {
        Place::File { .. } | Place::Usdt { .. } => Graph::of_program(terms, add.general),
        _ => Graph::of_event(terms, add.general),
    };
    let terms =
        |event: &MadeEvent| Terms { name: Some(event.shown.to_string()), function: event.function().map(str::to_owned), ..terms.clone() };
    add.made.of(item).map(|event| (event.name.clone(), graph(event), terms(event))).collect()
}

/// Adds what programs of the user's own give, and makes its doors; the other events are there already.
pub fn of_outputs(add: &mut Adding, doors: &mut Vec<Option<Door>>, outputs: &[Output], filters: &mut Filters) {
    doors.resize(add.events.len(), None);
    for (at, item) in filters.items.iter().enumerate() {
        for output in outputs.iter().filter(|output| usize::from(output.item) == at) {
            add.output(output, &item.terms);
            let scope = TracepointScope { format: &output.format };
            let own = filters.of_item(at, &scope);
            doors.push(Some(Door { general: filters.general(&scope), items: SmallVec::from_iter([(at as u16, own)]) }));
        }
    }
}

fn let_kernel_decide(add: &mut Adding, index: EventIndex, door: &mut Door, items: &[Item]) {
    let [(at, condition)] = door.items.as_mut_slice() else { return };
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

/// An event that switches the output, armed if it is not yet.
///
/// # Errors
/// There is no such syscall or event, or the syscall is not traced.
pub fn switch(add: &mut Adding, selector: Option<&Selector>, selection: &Selection) -> anyhow::Result<Option<Switch>> {
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
