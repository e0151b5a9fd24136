//! What killed runs left in tracefs, and its removal.

use super::dynamic_events::DynamicEvents;
use super::owner::Owner;
use crate::kernel::tracefs::Tracefs;
use crate::source::instance;
use std::thread::JoinHandle;

/// Takes away the instances and dynamic events of owners that are gone. Whoever may not, or finds somebody using them, leaves them.
pub fn remove(tracefs: &Tracefs) {
    // An event that an instance records is in use.
    instance::left::remove(tracefs);
    let is_left = |group: &str| Owner::parse(group).is_some_and(|owner| owner.is_gone());
    // The list of dynamic events cannot be had while another run's events are closed; their directories can.
    if !tracefs.subsystems().is_ok_and(|groups| groups.iter().any(|group| is_left(group))) {
        return;
    }
    let file = DynamicEvents::of(tracefs);
    let Ok(mut all) = file.read() else { return };
    all.retain(|listed| is_left(&listed.name.subsystem));
    // Events may hang on events that were made before them.
    all.iter().rev().for_each(|listed| _ = file.remove(&listed.name));
}

/// The same beside whatever else is done: another run's events that are being closed may hold tracefs for a while.
pub fn remove_beside(tracefs: &Tracefs) -> Option<JoinHandle<()>> {
    let tracefs = tracefs.clone();
    std::thread::Builder::new().name("rtrace-left".to_owned()).spawn(move || remove(&tracefs)).ok()
}
