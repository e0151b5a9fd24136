//! Removes the tracefs instances and dynamic events that killed runs left.

use crate::kernel::tracefs::{EventName, Tracefs};
use crate::probe::dynamic_events::{DynamicEvents, EventDefinition};
use crate::probe::groups::SYNTHETIC;
use crate::probe::inventory;
use crate::probe::owner::Owner;
use crate::probe::ownership_list::{self, OwnershipList};
use crate::source::instance;
use crate::sys::file_capabilities;
use std::collections::HashSet;
use std::io;
use std::thread::JoinHandle;

/// Removes the instances and dynamic events of owners that have exited. Those that are in use, or that may not be
/// removed, stay.
pub fn remove_all(tracefs: &Tracefs) {
    // An event is in use while an instance records it.
    instance::stale::remove_stale(tracefs);
    let recorded = recorded();
    // The list of dynamic events cannot be read while another run's events are closed, but their directories can.
    if recorded.is_empty() && !has_stale(tracefs) {
        return;
    }
    let Ok(mut all) = inventory::definitions(tracefs) else { return };
    let entry = |listed: &EventDefinition| ownership_list::entry(&listed.name, &listed.line);
    let is_recorded =
        |entry: &str| recorded.iter().any(|recorded| ownership_list::parse_run_entry(recorded).is_some_and(|(_, bare)| bare == entry));
    all.retain(|listed| is_stale(&listed.name) || is_recorded(&entry(listed)));
    let file = DynamicEvents::of(tracefs);
    // Events may refer to events that were created before them.
    let busy = |listed: &EventDefinition| file.remove(&listed.name).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy);
    let stay: HashSet<String> = all.iter().rev().filter(|listed| busy(listed)).map(entry).collect();
    if !recorded.is_empty() {
        let gone: Vec<String> = recorded
            .into_iter()
            .filter(|recorded| ownership_list::parse_run_entry(recorded).is_none_or(|(_, bare)| !stay.contains(bare)))
            .collect();
        // Only root may change this list, and root can remove events as well.
        let _ = OwnershipList::of_runs().remove(&gone);
    }
}

/// Returns the recorded events of runs that have exited.
fn recorded() -> Vec<String> {
    OwnershipList::of_runs()
        .read()
        .into_iter()
        .filter(|entry| ownership_list::parse_run_entry(entry).is_some_and(|(owner, _)| owner.is_gone()))
        .collect()
}

fn is_stale(event: &EventName) -> bool {
    Owner::of_event(event).is_some_and(|owner| owner.is_gone())
}

/// Returns whether there are events of exited owners, by their directories. The name of a group has the owner of all
/// its events.
fn has_stale(tracefs: &Tracefs) -> bool {
    let of = |subsystem: &str, name: String| EventName { subsystem: subsystem.to_owned(), name };
    let groups = tracefs.subsystems().unwrap_or_default();
    let synthetic = groups.iter().any(|group| group == SYNTHETIC).then(|| tracefs.names(SYNTHETIC).unwrap_or_default());
    groups.iter().any(|group| is_stale(&of(group, String::new())))
        || synthetic.into_iter().flatten().any(|name| is_stale(&of(SYNTHETIC, name)))
}

/// Removes stale events in a thread, since another run that closes its events may block tracefs for a while.
pub fn remove_in_thread(tracefs: &Tracefs) -> Option<JoinHandle<()>> {
    let tracefs = tracefs.clone();
    std::thread::Builder::new()
        .name("rtrace-stale".to_owned())
        .spawn(move || {
            file_capabilities::drop_all();
            remove_all(&tracefs);
        })
        .ok()
}
