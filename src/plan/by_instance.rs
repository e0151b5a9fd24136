//! Which events perf takes and then gives nothing of, so that they must come by a tracefs instance.

use crate::kernel::tracefs::{EventName, Tracefs};
use crate::probe::dynamic_events::DynamicEvents;
use crate::probe::groups::SYNTHETIC;
use std::collections::BTreeSet;

/// Event probes and synthetic events.
#[derive(Clone, Debug, Default)]
pub struct ByInstance(BTreeSet<EventName>);

impl ByInstance {
    /// Those that are there by now. Where the list of dynamic events may not be read, event probes cannot be told.
    pub fn find(tracefs: &Tracefs) -> ByInstance {
        let listed = DynamicEvents::of(tracefs).read().unwrap_or_default();
        ByInstance(listed.into_iter().filter(|listed| listed.line.starts_with(['e', 's'])).map(|listed| listed.name).collect())
    }

    /// Whether this event is one of them.
    pub fn has(&self, subsystem: &str, name: &str) -> bool {
        subsystem == SYNTHETIC || self.0.contains(&EventName::new(subsystem, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn event_probes_and_synthetic_events_are_told_from_others() {
        let root = std::env::temp_dir().join(format!("rtrace-by-instance-{}", std::process::id()));
        fs::create_dir_all(root.join("events")).unwrap();
        let tracefs = Tracefs::at(&root).unwrap();
        assert!(!ByInstance::find(&tracefs).has("eprobes", "open"), "without a list nothing is known");
        let lines = "p:kprobes/open do_sys_openat2 dfd=%di\ne:eprobes/open syscalls.sys_enter_openat\ns:synthetic/wakeup u64 lat\n";
        fs::write(root.join("dynamic_events"), lines).unwrap();
        let found = ByInstance::find(&tracefs);
        assert!(found.has("eprobes", "open") && found.has("synthetic", "wakeup"));
        assert!(!found.has("kprobes", "open") && !found.has("eprobes", "openat"));
        fs::remove_dir_all(root).unwrap();
    }
}
