//! Removes the cgroups that killed runs left.

use super::controller;
use super::group::{Group, directories};
use crate::probe::owner::Owner;
use std::time::Duration;

/// How long the removal may delay the start of this run.
const REMOVAL_MAX: Duration = Duration::from_millis(100);

/// Removes the cgroups of runs that have ended, below the cgroup of this process, and so lifts the limit of their
/// tasks. Usually the process that watched the rings has removed them already; it may have been killed too.
pub fn remove_stale() {
    let Ok((above, version)) = controller::own_cgroup() else { return };
    for name in directories(&above) {
        if Owner::parse(&name).is_some_and(|owner| owner.is_gone()) {
            // If this fails, the next run tries again.
            let _ = Group::left_by_owner(above.join(name), version).remove(REMOVAL_MAX);
        }
    }
}
