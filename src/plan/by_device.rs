//! Counts the events of each probe that the kernel's probe devices can make ([`crate::probe::by_device`]).

use crate::kernel::{machine, procfs};
use crate::probe::run_events::Wanted;
use crate::request::{Item, Target, TaskSelection, Trace};

/// Returns the probes that the request asks for.
pub fn probes(request: &Trace) -> impl Iterator<Item = Wanted<'_>> {
    request.what.items.iter().enumerate().filter_map(|(at, item)| {
        // A filter may name fields that only an event in tracefs has.
        let wanted = |probe| Wanted { item: at, probe, by_device: if item.filter.is_none() { events(request, item) } else { None } };
        item.selector.probe().map(wanted)
    })
}

/// Returns the number of events of an item, one for each CPU and thread; `None` if the events must be inherited by the
/// tasks that the traced tasks create, which events of a probe device cannot be.
fn events(request: &Trace, item: &Item) -> Option<usize> {
    let follows = !request.what.no_inherit && !item.terms.no_inherit;
    let targets = match &request.target {
        Target::Running { tasks: TaskSelection::All | TaskSelection::Cgroup(_) | TaskSelection::Container(_), .. } => 1,
        Target::Running { tasks: TaskSelection::Tids(tids), .. } => tids.len(),
        Target::Running { tasks: TaskSelection::Pids(pids), .. } if !follows => pids.iter().map(|&pid| procfs::threads(pid).len()).sum(),
        Target::Command(_) if !follows => 1,
        _ => return None,
    };
    let cpus = request.what.cpus.as_ref().map_or_else(|| machine::online_cpus().map_or(usize::MAX, |all| all.len()), Vec::len);
    Some(targets.saturating_mul(cpus))
}
