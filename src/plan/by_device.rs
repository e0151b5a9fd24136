//! How many events a probe is, where the kernel's probe devices make it ([`crate::probe::by_device`]).

use crate::kernel::{machine, procfs};
use crate::probe::made::Wanted;
use crate::request::{Item, Target, Trace, Who};

/// The probes that the request asks for.
pub fn probes(request: &Trace) -> impl Iterator<Item = Wanted<'_>> {
    request.what.items.iter().enumerate().filter_map(|(at, item)| {
        // A filter may ask for what only tracefs knows of an event.
        let wanted = |probe| Wanted { item: at, probe, by_device: if item.filter.is_none() { events(request, item) } else { None } };
        item.selector.probe().map(wanted)
    })
}

/// The events of an item, one a CPU and thread; `None` if they must follow what the traced tasks make, which a device's cannot.
fn events(request: &Trace, item: &Item) -> Option<usize> {
    let follows = !request.what.no_inherit && !item.terms.no_inherit;
    let targets = match &request.target {
        Target::There { who: Who::All | Who::Cgroup(_) | Who::Container(_), .. } => 1,
        Target::There { who: Who::Tids(tids), .. } => tids.len(),
        Target::There { who: Who::Pids(pids), .. } if !follows => pids.iter().map(|&pid| procfs::threads(pid).len()).sum(),
        Target::Command(_) if !follows => 1,
        _ => return None,
    };
    let cpus = request.what.cpus.as_ref().map_or_else(|| machine::online_cpus().map_or(usize::MAX, |all| all.len()), Vec::len);
    Some(targets.saturating_mul(cpus))
}
