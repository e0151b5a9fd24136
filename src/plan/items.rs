//! Adds the events that items of `-e`, probes, BPF programs and switches name. [`crate::gate::bind()`] decides later
//! which of their records are shown.

use super::PlannedEvent;
use super::events::{EventAdder, Tracepoint};
use super::graphs::Graph;
use crate::bpf::user::Output;
use crate::gate::{Criteria, TracepointScope};
use crate::kernel::constant::Constant;
use crate::kernel::format::{FieldPlace, Format};
use crate::kernel::machine::NATIVE_ABI;
use crate::kernel::tracefs::EventName;
use crate::probe::grammar::ProbePoint;
use crate::probe::run_events::RunEvent;
use crate::request::filter::{KernelField, KernelScope, Name, Scope, to_kernel};
use crate::request::{Item, Selector};
use crate::session::{Role, Terms};

/// Adds the tracepoints and probes that items name.
///
/// # Errors
/// A pattern matches no event, or a format cannot be read.
pub fn tracepoints(add: &mut EventAdder, items: &[Item]) -> anyhow::Result<()> {
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
        for (EventName { subsystem, name }, graph, terms) in named.into_iter().filter(|_| !item.negated) {
            add.tracepoint(Tracepoint { shown: true, terms, graph, ..Tracepoint::helper(&subsystem, &name, Role::Tracepoint) })?;
        }
    }
    Ok(())
}

/// Returns the events of a probe, with the stacks that they record and the terms that their lines show.
fn of_probe(add: &EventAdder, item: usize, terms: &Terms) -> Vec<(EventName, Graph, Terms)> {
    let graph = |event: &RunEvent| match event.probe.place {
        ProbePoint::File { .. } | ProbePoint::Usdt { .. } => Graph::of_program(terms, add.general),
        _ => Graph::of_event(terms, add.general),
    };
    let terms = |event: &RunEvent| Terms {
        name: Some(event.shown.to_string()),
        function: event.function().map(str::to_owned),
        created_for: Some(item as u16),
        ..terms.clone()
    };
    add.made.of_item(item).map(|event| (event.name.clone(), graph(event), terms(event))).collect()
}

/// Adds the events of the user's BPF programs, in the order of the items.
pub fn outputs(add: &mut EventAdder, items: &[Item], outputs: &[Output]) {
    for (at, item) in items.iter().enumerate() {
        outputs.iter().filter(|output| usize::from(output.item) == at).for_each(|output| add.output(output, &item.terms));
    }
}

/// Adds the events that switch the output.
///
/// # Errors
/// A pattern matches no event, or a format cannot be read.
pub fn switch(add: &mut EventAdder, selector: Option<&Selector>) -> anyhow::Result<()> {
    let Some(Selector::Event { subsystem, name }) = selector else { return Ok(()) };
    for EventName { subsystem, name } in add.tracefs.some_matching(subsystem, name)? {
        add.tracepoint(Tracepoint { shown: true, ..Tracepoint::helper(&subsystem, &name, Role::Tracepoint) })?;
    }
    Ok(())
}

/// Lets the kernel evaluate the filters of tracepoints where it can and where no other item selects the same event.
/// `criteria` are the criteria of the events, by index.
pub fn filter_in_kernel(events: &mut [PlannedEvent], criteria: &[Option<Criteria>], items: &[Item]) {
    for (event, criteria) in events.iter_mut().zip(criteria).filter(|(event, _)| event.spec.role == Role::Tracepoint) {
        let (Some(criteria), Some(format)) = (criteria, &event.spec.format) else { continue };
        let [(at, _)] = criteria.items.as_slice() else { continue };
        let filter = items.get(usize::from(*at)).and_then(|item| item.filter.as_ref());
        event.filter = filter.and_then(|filter| to_kernel(filter, &KernelFields(format)));
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
        TracepointScope { format: self.0, abi: NATIVE_ABI }.constant(name, symbol)
    }
}
