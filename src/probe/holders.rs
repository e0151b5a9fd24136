//! Finds what may keep an event in use, so that the kernel refuses to remove it.
//!
//! The kernel says only that the event is in use. Trace instances, triggers and other probes can be checked. Which
//! event a perf event or the registration of a user event refers to cannot, so all processes that have any are named as
//! candidates.

use super::groups;
use super::inventory::DynamicEvent;
use super::state;
use crate::kernel::procfs;
use crate::kernel::tracefs::Tracefs;

/// How many processes are named; further ones are only counted.
const NAMED_MAX: usize = 5;

/// Returns a clause for each possible holder, which completes "it is in use: ".
pub fn of(tracefs: &Tracefs, entry: &DynamicEvent, all: &[DynamicEvent]) -> Vec<String> {
    let mut holders = Vec::new();
    for state in state::read(tracefs, &entry.name) {
        let place = state.instance.as_ref().map_or("tracefs".to_owned(), |name| format!("tracefs's instance {name}"));
        if state.enabled {
            holders.push(format!("it is enabled in {place} (write 0 to its `enable` file to disable it)"));
        }
        holders.extend(state.triggers.iter().map(|trigger| format!("it has a trigger in {place} ({trigger})")));
    }
    let names = [format!("{}.{}", entry.name.subsystem, entry.name.name), format!("{}/{}", entry.name.subsystem, entry.name.name)];
    let on_it = all.iter().filter(|other| other.line.split_whitespace().nth(1).is_some_and(|place| names.iter().any(|name| name == place)));
    holders.extend(on_it.map(|other| format!("the event probe {} is attached to it", other.name)));
    let is_user = groups::is_of_user_events(&entry.name.subsystem);
    if is_user {
        holders.extend(processes("processes that registered user events", |link| link.ends_with(b"/user_events_data")));
    }
    if !is_user || entry.listeners.iter().flatten().any(|listener| listener != "ftrace") {
        holders.extend(processes("processes that have perf events open", |link| link == b"anon_inode:[perf_event]"));
    }
    holders
}

/// Returns one clause that names the processes with a matching file descriptor.
fn processes(what: &str, is: impl Fn(&[u8]) -> bool) -> Option<String> {
    let me = std::process::id() as i32;
    let has = |pid: i32| procfs::fd_links(pid).is_some_and(|links| links.iter().any(|(_, link)| is(link)));
    let found: Vec<i32> = procfs::processes().into_iter().filter(|pid| *pid != me && has(*pid)).collect();
    let name = |pid: &i32| format!("{} {pid}", String::from_utf8_lossy(&procfs::comm(*pid).unwrap_or_default()));
    let mut named: Vec<String> = found.iter().take(NAMED_MAX).map(name).collect();
    if found.len() > NAMED_MAX {
        named.push(format!("{} more", found.len() - NAMED_MAX));
    }
    (!named.is_empty()).then(|| format!("one of the {what} may hold it: {}", named.join(", ")))
}
