//! Instances that killed runs left, and how an instance is taken away.

use crate::kernel::tracefs::Tracefs;
use crate::probe::owner::Owner;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// So long an instance may be in use by others that let go of it soon: whoever looks at all of tracefs, or a child that was just forked.
const BUSY_MAX: Duration = Duration::from_millis(500);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Takes away the instances of owners that are gone. Whoever may not leaves them. The dynamic events that they recorded can be removed only after that.
pub fn remove(tracefs: &Tracefs) {
    let Ok(entries) = fs::read_dir(tracefs.root().join("instances")) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().and_then(Owner::parse).is_some_and(|owner| owner.is_gone()) {
            // The next run tries again.
            let _ = take_away(&entry.path());
        }
    }
}

/// Removes an instance with whatever was switched on in it; triggers that keep it are found and removed.
pub(super) fn take_away(instance: &Path) -> io::Result<()> {
    let mut since = Instant::now();
    loop {
        match fs::remove_dir(instance) {
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
fn remove_triggers(instance: &Path) -> bool {
    let subsystems = fs::read_dir(instance.join("events")).into_iter().flatten().flatten();
    let events = subsystems.flat_map(|subsystem| fs::read_dir(subsystem.path()).into_iter().flatten().flatten());
    events.filter(|event| remove_triggers_of(&event.path().join("trigger"))).count() > 0
}

/// Takes the triggers from an event; whether they went.
fn remove_triggers_of(file: &Path) -> bool {
    let has_some = || fs::read_to_string(file).is_ok_and(|text| text.lines().any(|line| !line.starts_with('#')));
    if !has_some() {
        return false;
    }
    // Opened so, a trigger file removes what it has (event_trigger_regex_open() in kernel/trace/trace_events_trigger.c).
    let _ = fs::OpenOptions::new().write(true).truncate(true).open(file);
    !has_some()
}
