//! What is switched on at an event: its files in tracefs, and in each of tracefs's instances.

use crate::kernel::tracefs::{EventName, TracePath, Tracefs};

/// What one trace buffer has been asked to do with an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// `None`: tracefs itself.
    pub instance: Option<String>,
    pub enabled: bool,
    pub filter: Option<String>,
    /// One a line.
    pub triggers: Vec<String>,
    /// The kernel's own rendering of the event's histograms.
    pub histograms: Option<String>,
}

impl State {
    /// Whether the kernel holds the event for it.
    pub fn holds(&self) -> bool {
        self.enabled || !self.triggers.is_empty()
    }
}

/// tracefs's own first, then those of instances where there is anything.
pub fn read(tracefs: &Tracefs, event: &EventName) -> Vec<State> {
    let mut states = vec![at(tracefs.root(), None, event)];
    let mut names = tracefs.root().join("instances").directories().unwrap_or_default();
    names.sort_unstable();
    let of_instances = names.into_iter().map(|name| at(&tracefs.root().join("instances").join(&name), Some(name), event));
    states.extend(of_instances.filter(|state| state.holds() || state.filter.is_some()));
    states
}

fn at(root: &TracePath, instance: Option<String>, event: &EventName) -> State {
    let directory = root.join("events").join(&event.subsystem).join(&event.name);
    let read = |file: &str| String::from_utf8_lossy(&directory.join(file).read().unwrap_or_default()).trim_end().to_owned();
    let triggers: Vec<String> = read("trigger").lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    State {
        instance,
        // A star says that a trigger switches it.
        enabled: read("enable").starts_with('1'),
        filter: Some(read("filter")).filter(|filter| !filter.is_empty() && filter != "none"),
        histograms: triggers.iter().any(|trigger| trigger.starts_with("hist:")).then(|| read("hist")),
        triggers,
    }
}
