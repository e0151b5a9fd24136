//! What killed runs left in tracefs, and its removal.

use crate::kernel::tracefs::{EventName, Tracefs};
use crate::probe::dynamic_events::{DynamicEvents, Listed};
use crate::probe::groups::SYNTHETIC;
use crate::probe::inventory;
use crate::probe::kept::{self, Kept};
use crate::probe::owner::Owner;
use crate::source::instance;
use crate::sys::lent;
use std::collections::HashSet;
use std::io;
use std::thread::JoinHandle;

/// Takes away the instances and dynamic events of owners that are gone. Whoever may not, or finds somebody using them, leaves them.
pub fn remove(tracefs: &Tracefs) {
    // An event that an instance records is in use.
    instance::left::remove(tracefs);
    let noted = noted();
    // The list of dynamic events cannot be had while another run's events are closed; their directories can.
    if noted.is_empty() && !are_any(tracefs) {
        return;
    }
    let Ok(mut all) = inventory::listed(tracefs) else { return };
    let entry = |listed: &Listed| kept::entry(&listed.name, &listed.line);
    let is_noted = |entry: &str| noted.iter().any(|noted| kept::of_run(noted).is_some_and(|(_, bare)| bare == entry));
    all.retain(|listed| is_left(&listed.name) || is_noted(&entry(listed)));
    let file = DynamicEvents::of(tracefs);
    // Events may hang on events that were made before them.
    let busy = |listed: &Listed| file.remove(&listed.name).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy);
    let stay: HashSet<String> = all.iter().rev().filter(|listed| busy(listed)).map(entry).collect();
    if !noted.is_empty() {
        let gone: Vec<String> =
            noted.into_iter().filter(|noted| kept::of_run(noted).is_none_or(|(_, bare)| !stay.contains(bare))).collect();
        // Only root may, who can remove events as well.
        let _ = Kept::of_runs().forget(&gone);
    }
}

/// What runs that are gone wrote down.
fn noted() -> Vec<String> {
    Kept::of_runs().read().into_iter().filter(|entry| kept::of_run(entry).is_some_and(|(owner, _)| owner.is_gone())).collect()
}

fn is_left(event: &EventName) -> bool {
    Owner::of_event(event).is_some_and(|owner| owner.is_gone())
}

/// Whether there are events that say whose they are, by their directories. A group is whose its name says, whatever is in it.
fn are_any(tracefs: &Tracefs) -> bool {
    let of = |subsystem: &str, name: String| EventName { subsystem: subsystem.to_owned(), name };
    let groups = tracefs.subsystems().unwrap_or_default();
    let synthetic = groups.iter().any(|group| group == SYNTHETIC).then(|| tracefs.names(SYNTHETIC).unwrap_or_default());
    groups.iter().any(|group| is_left(&of(group, String::new())))
        || synthetic.into_iter().flatten().any(|name| is_left(&of(SYNTHETIC, name)))
}

/// The same beside whatever else is done: another run's events that are being closed may hold tracefs for a while.
pub fn remove_beside(tracefs: &Tracefs) -> Option<JoinHandle<()>> {
    let tracefs = tracefs.clone();
    std::thread::Builder::new()
        .name("rtrace-left".to_owned())
        .spawn(move || {
            lent::give_up();
            remove(&tracefs);
        })
        .ok()
}
