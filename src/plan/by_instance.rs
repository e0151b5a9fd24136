//! Finds the events that perf_event_open(2) accepts but never writes records of, so that rtrace reads them from a
//! tracefs instance.

use crate::kernel::tracefs::{EventName, Tracefs};
use crate::probe::dynamic_events::DynamicEvents;
use crate::probe::groups::SYNTHETIC;
use std::collections::BTreeSet;

/// Event probes and synthetic events.
#[derive(Clone, Debug, Default)]
pub struct InstanceEvents(BTreeSet<EventName>);

impl InstanceEvents {
    /// Reads the existing events. If the list of dynamic events may not be read, event probes cannot be recognized.
    pub fn find(tracefs: &Tracefs) -> InstanceEvents {
        let listed = DynamicEvents::of(tracefs).read().unwrap_or_default();
        InstanceEvents(listed.into_iter().filter(|listed| listed.line.starts_with(['e', 's'])).map(|listed| listed.name).collect())
    }

    /// Returns whether an event is an event probe or a synthetic event.
    pub fn has(&self, subsystem: &str, name: &str) -> bool {
        subsystem == SYNTHETIC || self.0.contains(&EventName::new(subsystem, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn event_probes_and_synthetic_events_are_recognized() {
        let root = std::env::temp_dir().join(format!("rtrace-by-instance-{}", std::process::id()));
        fs::create_dir_all(root.join("events")).unwrap();
        let tracefs = Tracefs::at(&root).unwrap();
        assert!(!InstanceEvents::find(&tracefs).has("eprobes", "open"), "without the list no event probe is recognized");
        let lines = "p:kprobes/open do_sys_openat2 dfd=%di\ne:eprobes/open syscalls.sys_enter_openat\ns:synthetic/wakeup u64 lat\n";
        fs::write(root.join("dynamic_events"), lines).unwrap();
        let found = InstanceEvents::find(&tracefs);
        assert!(found.has("eprobes", "open") && found.has("synthetic", "wakeup"));
        assert!(!found.has("kprobes", "open") && !found.has("eprobes", "openat"));
        fs::remove_dir_all(root).unwrap();
    }
}
