//! Creates the events that read path names without BPF. The source is the first one in the plan whose events the kernel
//! accepts.

use crate::kernel::tracefs::Tracefs;
use crate::plan::{AtExit, PathNameEvents, PathNameSource, Plan};
use crate::probe::run_events::RunEvents;

/// Creates the events, and adds them to the plan.
///
/// # Errors
/// The kernel rejects the source that the user asked for.
pub fn create(plan: &mut Plan, tracefs: &Tracefs, run_events: &mut RunEvents) -> anyhow::Result<()> {
    while let Some(names) = &mut plan.path_names {
        let created = match names.source() {
            PathNameSource::Getname(probes) => run_events.create_own(tracefs, probes).map(PathNameEvents::of_probe),
            PathNameSource::AtExit(at_exit) => create_at_exit(at_exit, tracefs, run_events),
            existing => Ok(PathNameEvents::existing(existing)),
        };
        match created {
            Ok(created) => return plan.add_path_names(tracefs, created),
            Err(refused) => names.refuse(refused)?,
        }
    }
    Ok(())
}

/// Creates the synthetic event and the event probe on it. If the kernel rejects the latter, neither of them exists.
fn create_at_exit(at_exit: &AtExit, tracefs: &Tracefs, run_events: &mut RunEvents) -> anyhow::Result<PathNameEvents> {
    let events = at_exit.events(tracefs)?;
    let addresses = run_events.create_own(tracefs, &[events.addresses()?])?;
    let names = run_events.create_own(tracefs, &[events.names(&addresses)?]).inspect_err(|_| run_events.remove_own(&addresses))?;
    Ok(PathNameEvents::at_exit(addresses.clone(), names, events.triggers(&addresses)))
}
