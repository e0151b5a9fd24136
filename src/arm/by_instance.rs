//! Creates the tracefs instance for the events that perf does not deliver, and enables them in it.

use super::open::Arming;
use crate::event::{EventIndex, NoticeCode};
use crate::kernel::tracefs::{EventName, Tracefs};
use crate::plan::{PathNames, Plan, PlannedEvent, without};
use crate::say;
use crate::session::Targets;
use crate::source::instance::{Instance, Size, TaskFilter};
use crate::sys::clock;
use anyhow::anyhow;

impl Arming<'_> {
    /// Enables the events that a tracefs instance records.
    pub(super) fn open_instance(&mut self, child: Option<i32>) -> anyhow::Result<()> {
        let Plan { targets, cpus, events, .. } = self.plan;
        let by_instance = || events.iter().filter(|event| event.spec.is_by_instance());
        let inherit = by_instance().any(|event| event.inherit);
        let own = child.as_slice();
        let task_filter = match targets {
            Targets::Command => TaskFilter::Tasks { tids: own, processes: &[], inherit },
            Targets::Tasks { tids, processes } => TaskFilter::Tasks { tids, processes, inherit },
            Targets::SystemWide | Targets::User(_) => TaskFilter::All,
            // Records for calls of other tasks match no call.
            Targets::Cgroup(_) if by_instance().all(|event| !event.spec.shown) => TaskFilter::All,
            Targets::Cgroup(_) => {
                return Err(anyhow!(
                    "{} cannot be limited to a cgroup: perf does not deliver it, and tracefs cannot filter by cgroup",
                    of_instance(events)
                ));
            }
        };
        let mut instance = Instance::make(&Tracefs::find()?, Size { cpus, bytes: self.ring_bytes }, task_filter)?;
        for (at, planned) in events.iter().enumerate().filter(|(_, planned)| planned.spec.is_by_instance()) {
            let (Some((subsystem, name)), Some(format)) = (planned.spec.name.split_once(':'), &planned.spec.format) else { continue };
            let name = EventName::new(subsystem, name);
            instance.enable(&name, without(planned.filter.clone(), &self.left_out).as_deref())?;
            self.armed.table.types.insert(format.id as u16, EventIndex(at as u16));
        }
        if let Some(path_names) = &self.plan.path_names {
            let refused = set_triggers(&mut instance, path_names)?;
            let notice = refused.map(|error| say::notice(NoticeCode::NoPathNames, format!("path names are not available: {error:#}")));
            self.armed.notices.extend(notice.map(|notice| (clock::now(), notice)));
        }
        self.armed.instance = Some(instance);
        Ok(())
    }
}

/// Sets the triggers that read path names. Returns the kernel's error if it rejects a trigger and the user did not
/// request path names.
fn set_triggers(instance: &mut Instance, path_names: &PathNames) -> anyhow::Result<Option<anyhow::Error>> {
    let refused = path_names.triggers.iter().find_map(|trigger| instance.trigger(&trigger.event, &trigger.to_string()).err());
    match refused {
        Some(error) if path_names.asked => Err(error.context("cannot read path names at the exits of calls")),
        refused => Ok(refused),
    }
}

/// Returns the names of the events that the instance records.
fn of_instance(events: &[PlannedEvent]) -> String {
    let names = events.iter().filter(|event| event.spec.is_by_instance()).map(|event| event.spec.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}
