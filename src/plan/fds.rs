//! Decides whether file descriptors can be followed: which calls must be traced for that, and of which tasks.

use crate::beauty::row::Syscall;
use crate::beauty::tables::SYSCALLS;
use crate::session::Targets;
use crate::syscall::behavior::may_change_descriptors;

/// Returns the calls that may change a descriptor table.
pub fn changers() -> impl Iterator<Item = &'static Syscall> {
    SYSCALLS.iter().filter(|s| may_change_descriptors(s))
}

/// Returns whether all of these calls are traced.
pub fn are_armed(armed: &[&'static Syscall], everything: bool) -> bool {
    everything || (!armed.is_empty() && changers().all(|c| armed.iter().any(|a| a.name == c.name)))
}

/// Returns the reason why threads that share the descriptor table of a traced task may change it without being traced;
/// `None` if all such threads are traced.
pub fn unseen(targets: &Targets, some_cpus: bool, inherit: bool) -> Option<&'static str> {
    match targets {
        _ if some_cpus => Some("calls on other CPUs are not traced"),
        _ if !inherit => Some("threads created later are not traced"),
        Targets::Tasks { processes, .. } if processes.is_empty() => Some("other threads of the same process are not traced"),
        Targets::Cgroup(_) => Some("threads of other cgroups are not traced"),
        Targets::User(_) => Some("threads of other users are not traced"),
        Targets::Command | Targets::Tasks { .. } | Targets::SystemWide => None,
    }
}
