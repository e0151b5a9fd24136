//! The events that read path names without BPF. They are added to the plan after arming has created them.

use super::names_at_exit::Trigger;
use super::path_names::{CONVENTION, PathNameSource};
use super::{Plan, PlannedEvent};
use crate::kernel::format::Format;
use crate::kernel::tracefs::{EventName, Tracefs};
use crate::session::{EventSpec, Role, Terms};
use crate::sys::perf::{self, Counts, StackFields};

/// The events that read path names, which now exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathNameEvents {
    /// The events, which are added to the plan in this order.
    pub events: Vec<PathNameEvent>,
    /// The triggers to set in the tracefs instance; none unless names are read when calls return.
    pub triggers: Vec<Trigger>,
}

/// One of these events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathNameEvent {
    /// The group and the name in tracefs.
    pub name: EventName,
    /// The meaning of its records: only those of [`Role::PathName`] have path names.
    pub role: Role,
    /// The name that messages use for an event that is read from a tracefs instance; `None` for an event that is read
    /// by perf.
    pub in_instance: Option<&'static str>,
}

impl PathNameEvents {
    /// Returns the events of a source that consists of this return probe.
    pub fn of_probe(name: EventName) -> PathNameEvents {
        let event = PathNameEvent { name, role: Role::PathName, in_instance: None };
        PathNameEvents { events: vec![event], triggers: Vec::new() }
    }

    /// Returns the events that were created for reading names when calls return: the synthetic event with the addresses
    /// and the event probe.
    pub fn at_exit(addresses: EventName, names: EventName, triggers: Vec<Trigger>) -> PathNameEvents {
        let addresses = PathNameEvent { name: addresses, role: Role::Tracepoint, in_instance: Some("paths' addresses") };
        let names = PathNameEvent { name: names, role: Role::PathName, in_instance: Some("path names") };
        PathNameEvents { events: vec![addresses, names], triggers }
    }

    /// Returns the events of a source that needs no created events.
    pub fn existing(source: &PathNameSource) -> PathNameEvents {
        match source {
            PathNameSource::VfsGetname => PathNameEvents::of_probe(EventName::new(CONVENTION.0, CONVENTION.1)),
            _ => PathNameEvents::default(),
        }
    }
}

impl Plan {
    /// Adds the events of the source of path names to the plan. They must exist.
    ///
    /// # Errors
    /// One of the events no longer exists.
    pub fn add_path_names(&mut self, tracefs: &Tracefs, read_by: PathNameEvents) -> anyhow::Result<()> {
        let inherit = self.events.first().is_some_and(|side_band| side_band.inherit);
        for event in read_by.events {
            let format = tracefs.format(&event.name.subsystem, &event.name.name)?;
            self.events.push(event.planned(format, inherit));
        }
        let Some(path_names) = &mut self.path_names else { return Ok(()) };
        path_names.triggers = read_by.triggers;
        if *path_names.source() == PathNameSource::None {
            self.events.iter_mut().for_each(without_copied_strings);
        }
        Ok(())
    }
}

impl PathNameEvent {
    /// Returns the event in the form that the plan has for all events to be opened.
    fn planned(self, format: Format, inherit: bool) -> PlannedEvent {
        let counts = Counts::Tracepoint(format.id);
        let spec = EventSpec {
            name: self.name.to_string(),
            role: self.role,
            // Events of an instance have no samples.
            sample_type: if self.in_instance.is_some() { 0 } else { perf::SAMPLE_TRACEPOINT },
            format: Some(format),
            shown: false,
            terms: Terms { name: self.in_instance.map(str::to_owned), ..Terms::default() },
        };
        PlannedEvent { spec, counts, filter: None, inherit, stack: StackFields::default() }
    }
}

/// Removes the kernel's copies of strings from the format of a call's entry.
fn without_copied_strings(event: &mut PlannedEvent) {
    let Some(format) = event.spec.format.as_mut().filter(|_| event.spec.role == Role::Enter) else { return };
    let strings: Vec<String> = format.user_copies().into_iter().filter(|copy| copy.is_text).map(|copy| copy.field.name).collect();
    format.fields.retain(|field| !strings.contains(&field.name));
}
