//! Instances that killed runs left, and how an instance is taken away.

use crate::kernel::tracefs::{TracePath, Tracefs};
use crate::probe::owner::Owner;
use rustix::fs::OFlags;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// So long an instance may be in use by others that let go of it soon: whoever looks at all of tracefs, or a child that was just forked.
const BUSY_MAX: Duration = Duration::from_millis(500);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Takes away the instances of owners that are gone. Whoever may not leaves them. The dynamic events that they recorded can be removed only after that.
pub fn remove(tracefs: &Tracefs) {
    let instances = tracefs.root().join("instances");
    for name in instances.directories().unwrap_or_default() {
        if Owner::parse(&name).is_some_and(|owner| owner.is_gone()) {
            // The next run tries again.
            let _ = take_away(&instances.join(name));
        }
    }
}

/// Removes an instance with whatever was switched on in it; triggers that keep it are found and removed.
pub(super) fn take_away(instance: &TracePath) -> io::Result<()> {
    let mut since = Instant::now();
    loop {
        match instance.remove_dir() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && since.elapsed() < BUSY_MAX => match remove_triggers(instance) {
                // The kernel takes tens of milliseconds for each of them.
                true => since = Instant::now(),
                false => thread::sleep(PAUSE),
            },
            other => return other,
        }
    }
}

/// Takes the triggers from all events of an instance: histograms with variables hold it. One whose variables another uses goes after that one, so this is repeated as long as it is
/// true that some went.
fn remove_triggers(instance: &TracePath) -> bool {
    let below =
        |path: &TracePath| -> Vec<TracePath> { path.directories().unwrap_or_default().into_iter().map(|name| path.join(name)).collect() };
    let events = below(&instance.join("events")).into_iter().flat_map(|subsystem| below(&subsystem));
    events.filter(|event| remove_triggers_of(&event.join("trigger"))).count() > 0
}

/// Takes the triggers from an event; whether they went.
fn remove_triggers_of(file: &TracePath) -> bool {
    let has_some = || file.read_to_string().is_ok_and(|text| text.lines().any(|line| !line.starts_with('#')));
    if !has_some() {
        return false;
    }
    // Opened so, a trigger file removes what it has (event_trigger_regex_open() in kernel/trace/trace_events_trigger.c).
    let _ = file.open(OFlags::WRONLY | OFlags::TRUNC);
    !has_some()
}
