//! Reads the state of an event (enabled, filter, triggers) in tracefs and in each of tracefs's instances.

use crate::kernel::tracefs::{EventName, TracePath, Tracefs};

/// The state of an event in one trace instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The instance's name; `None`: the top-level instance.
    pub instance: Option<String>,
    /// Whether the instance records the event's hits.
    pub enabled: bool,
    /// The text of the file `filter`; `None` if the event has no filter.
    pub filter: Option<String>,
    /// One entry per line of the file `trigger`.
    pub triggers: Vec<String>,
    /// The text of the file `hist`, if the event has a histogram trigger.
    pub histograms: Option<String>,
}

impl State {
    /// Returns whether this instance keeps the event in use, so that the kernel does not remove it.
    pub fn holds(&self) -> bool {
        self.enabled || !self.triggers.is_empty()
    }
}

/// Returns the state in the top-level instance, followed by the states of the other instances in which the event is
/// enabled or has a trigger or a filter.
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
        // The file may have a `*` behind the number, which means that a trigger can enable or disable the event.
        enabled: read("enable").starts_with('1'),
        filter: Some(read("filter")).filter(|filter| !filter.is_empty() && filter != "none"),
        histograms: triggers.iter().any(|trigger| trigger.starts_with("hist:")).then(|| read("hist")),
        triggers,
    }
}
