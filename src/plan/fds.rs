//! Whether descriptors can be followed: which calls must be armed for it, and of whom.

use crate::beauty::row::Syscall;
use crate::beauty::tables::SYSCALLS;
use crate::session::Whom;
use crate::syscall::behavior::may_change_descriptors;

/// The calls that may change a descriptor table.
pub fn changers() -> impl Iterator<Item = &'static Syscall> {
    SYSCALLS.iter().filter(|s| may_change_descriptors(s))
}

/// Whether all of them are armed.
pub fn are_armed(armed: &[&'static Syscall], everything: bool) -> bool {
    everything || (!armed.is_empty() && changers().all(|c| armed.iter().any(|a| a.name == c.name)))
}

/// Why some threads that share a followed task's descriptors may change them unseen; `None` if all are seen.
pub fn unseen(whom: &Whom, some_cpus: bool, inherit: bool) -> Option<&'static str> {
    match whom {
        _ if some_cpus => Some("what happens on other CPUs is not seen"),
        _ if !inherit => Some("threads made later are not seen"),
        Whom::Tasks { processes, .. } if processes.is_empty() => Some("other threads of the same process are not seen"),
        Whom::Cgroup(_) => Some("threads of other cgroups are not seen"),
        Whom::User(_) => Some("threads of other users are not seen"),
        Whom::Command | Whom::Tasks { .. } | Whom::Everyone => None,
    }
}
