//! Removes instances, also those that killed runs of rtrace left.

use crate::kernel::tracefs::{TracePath, Tracefs};
use crate::probe::owner::Owner;
use rustix::fs::OFlags;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for other users of an instance to close it, such as a process that walks through all of tracefs, or
/// a child that was just forked.
const BUSY_MAX: Duration = Duration::from_millis(500);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Removes the instances whose owners have exited. Without permission, they stay. The dynamic events that they recorded
/// can be removed only after them.
pub fn remove_stale(tracefs: &Tracefs) {
    let instances = tracefs.root().join("instances");
    for name in instances.directories().unwrap_or_default() {
        if Owner::parse(&name).is_some_and(|owner| owner.is_gone()) {
            // If this fails, the next run tries again.
            let _ = remove_instance(&instances.join(name));
        }
    }
}

/// Removes an instance with all that was enabled in it. Triggers that keep the instance busy are removed, too.
pub(super) fn remove_instance(instance: &TracePath) -> io::Result<()> {
    let mut since = Instant::now();
    loop {
        match instance.remove_dir() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && since.elapsed() < BUSY_MAX => match remove_triggers(instance) {
                // The kernel takes tens of milliseconds for each trigger.
                true => since = Instant::now(),
                false => thread::sleep(PAUSE),
            },
            other => return other,
        }
    }
}

/// Removes the triggers of all events of an instance, since histograms with variables keep it busy. A trigger whose
/// variables another one uses can be removed only after that one, so the caller repeats this while it returns true:
/// some were removed.
fn remove_triggers(instance: &TracePath) -> bool {
    let below =
        |path: &TracePath| -> Vec<TracePath> { path.directories().unwrap_or_default().into_iter().map(|name| path.join(name)).collect() };
    let events = below(&instance.join("events")).into_iter().flat_map(|subsystem| below(&subsystem));
    events.filter(|event| remove_triggers_of(&event.join("trigger"))).count() > 0
}

/// Removes the triggers of an event, and returns whether some were removed.
fn remove_triggers_of(file: &TracePath) -> bool {
    let has_some = || file.read_to_string().is_ok_and(|text| text.lines().any(|line| !line.starts_with('#')));
    if !has_some() {
        return false;
    }
    // Opening a trigger file with O_TRUNC removes its triggers (event_trigger_regex_open() in
    // kernel/trace/trace_events_trigger.c).
    let _ = file.open(OFlags::WRONLY | OFlags::TRUNC);
    !has_some()
}
