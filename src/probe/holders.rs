//! Who may hold an event that the kernel will not let go.
//!
//! The kernel says only that it is in use. Trace buffers, triggers and other probes can be asked; a perf event or a program's registration cannot, so processes that have any are named as
//! those it may be.

use super::groups;
use super::inventory::Entry;
use super::state;
use crate::kernel::procfs;
use crate::kernel::tracefs::Tracefs;

/// More processes than these are counted only.
const NAMED_MAX: usize = 5;

/// A clause for each, to be put behind "it is in use: ".
pub fn of(tracefs: &Tracefs, entry: &Entry, all: &[Entry]) -> Vec<String> {
    let mut holders = Vec::new();
    for state in state::read(tracefs, &entry.name) {
        let place = state.instance.as_ref().map_or("tracefs".to_owned(), |name| format!("tracefs's instance {name}"));
        if state.enabled {
            holders.push(format!("it is enabled in {place} (write 0 to its `enable` file there)"));
        }
        holders.extend(state.triggers.iter().map(|trigger| format!("a trigger in {place} has it ({trigger})")));
    }
    let names = [format!("{}.{}", entry.name.subsystem, entry.name.name), format!("{}/{}", entry.name.subsystem, entry.name.name)];
    let on_it = all.iter().filter(|other| other.line.split_whitespace().nth(1).is_some_and(|place| names.iter().any(|name| name == place)));
    holders.extend(on_it.map(|other| format!("the probe {} is on it", other.name)));
    let is_user = groups::is_of_user_events(&entry.name.subsystem);
    if is_user {
        holders.extend(processes("programs with user events of their own", |link| link.ends_with(b"/user_events_data")));
    }
    if !is_user || entry.listeners.iter().flatten().any(|listener| listener != "ftrace") {
        holders.extend(processes("programs with perf events", |link| link == b"anon_inode:[perf_event]"));
    }
    holders
}

/// The processes that have such a descriptor, as one clause.
fn processes(what: &str, is: impl Fn(&[u8]) -> bool) -> Option<String> {
    let me = std::process::id() as i32;
    let has = |pid: i32| procfs::fd_links(pid).is_some_and(|links| links.iter().any(|(_, link)| is(link)));
    let found: Vec<i32> = procfs::processes().into_iter().filter(|pid| *pid != me && has(*pid)).collect();
    let name = |pid: &i32| format!("{} {pid}", String::from_utf8_lossy(&procfs::comm(*pid).unwrap_or_default()));
    let mut named: Vec<String> = found.iter().take(NAMED_MAX).map(name).collect();
    if found.len() > NAMED_MAX {
        named.push(format!("{} more", found.len() - NAMED_MAX));
    }
    (!named.is_empty()).then(|| format!("it may be one of the {what}: {}", named.join(", ")))
}
