//! The process that owns a dynamic event or a tracefs instance.
//!
//! Dynamic events and instances of rtrace outlive a process that is killed, so they carry the process in their name:
//! `rtrace_PID_START`, or `rtrace_PID_START_NAMESPACE` if the PID belongs to another than the initial PID namespace. By
//! that name a later run distinguishes the leftovers of a dead process from what a living process uses. Names in any
//! other form have no owner here. For a probe, the owner is the name of its group. Synthetic events all have the same
//! group, so for them the owner is the beginning of the event's name: `rtrace_PID_START__NAME`.

use super::groups::SYNTHETIC;
use crate::kernel::procfs;
use crate::kernel::tracefs::EventName;
use std::fmt;
use std::fs;
use std::path::Path;

/// The prefix of all owners' names.
const PREFIX: &str = "rtrace_";

/// Separates the owner from the rest of a synthetic event's name.
const OF_SYNTHETIC: &str = "__";

/// The inode of the initial PID namespace (PROC_PID_INIT_INO in include/linux/proc_ns.h).
const FIRST_NAMESPACE: u32 = 0xEFFF_FFFC;

/// A process that runs rtrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pid: i32,
    /// The start time in clock ticks since boot, which detects a reused PID.
    started: u64,
    /// The inode of the PID namespace that `pid` belongs to.
    namespace: u32,
}

impl Owner {
    /// Returns this process; `None` if /proc is not mounted.
    pub fn this() -> Option<Owner> {
        let stat = procfs::stat(rustix::process::getpid().as_raw_nonzero().get())?;
        Some(Owner { pid: stat.tid, started: stat.start_ticks, namespace: namespace("self")? })
    }

    /// Returns the PID that the process has in its own PID namespace.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Parses an owner's name.
    pub fn parse(name: &str) -> Option<Owner> {
        let mut parts = name.strip_prefix(PREFIX)?.split('_');
        let (pid, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let namespace = parts.next().map_or(Ok(FIRST_NAMESPACE), str::parse).ok()?;
        let owner = Owner { pid, started, namespace };
        // Only the canonical spelling is accepted: another program created `rtrace_+1_2`.
        (parts.next().is_none() && owner.to_string() == name).then_some(owner)
    }

    /// Returns the owner of an event.
    pub fn of_event(event: &EventName) -> Option<Owner> {
        match event.subsystem.as_str() {
            SYNTHETIC => event.name.split_once(OF_SYNTHETIC).and_then(|(owner, _)| Owner::parse(owner)),
            group => Owner::parse(group),
        }
    }

    /// Returns the name of a synthetic event of this owner.
    pub fn synthetic(&self, name: &str) -> EventName {
        EventName { subsystem: SYNTHETIC.to_owned(), name: format!("{self}{OF_SYNTHETIC}{name}") }
    }

    /// Returns whether the PID belongs to another than the initial PID namespace.
    pub fn is_of_other_namespace(&self) -> bool {
        self.namespace != FIRST_NAMESPACE
    }

    /// Returns whether the process has certainly ended. A process of another PID namespace cannot be seen, so it counts
    /// as gone only if no process of that namespace is left.
    pub fn is_gone(&self) -> bool {
        let Some(here) = namespace("self") else { return false };
        if self.namespace != here {
            let lives = |pid: i32| namespace(&pid.to_string()).is_none_or(|other| other == self.namespace);
            return here == FIRST_NAMESPACE && !procfs::processes().into_iter().any(lives);
        }
        // A zombie holds no file descriptors any more.
        procfs::stat(self.pid).is_none_or(|stat| stat.start_ticks != self.started || matches!(stat.state, b'Z' | b'X'))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}_{}", self.pid, self.started)?;
        if self.namespace != FIRST_NAMESPACE { write!(f, "_{}", self.namespace) } else { Ok(()) }
    }
}

/// Returns the inode of a process's PID namespace, from a link such as `pid:[4026531836]`. A kernel without PID
/// namespaces (CONFIG_PID_NS) has no such link; its only namespace counts as the initial one.
fn namespace(process: &str) -> Option<u32> {
    match fs::read_link(format!("/proc/{process}/ns/pid")) {
        Ok(link) => link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok(),
        Err(_) if !Path::new("/proc/self/ns/pid").exists() => Path::new("/proc").join(process).exists().then_some(FIRST_NAMESPACE),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn names_of_owners_round_trip() {
        let this = Owner::this().unwrap();
        assert_eq!(Owner::parse(&this.to_string()), Some(this));
        let in_container = Owner { pid: 7, started: 81, namespace: 4_026_532_000 };
        assert_eq!(in_container.to_string(), "rtrace_7_81_4026532000");
        assert_eq!(Owner::parse("rtrace_7_81_4026532000"), Some(in_container));
        assert_eq!(Owner::parse("rtrace_7_81"), Some(Owner { namespace: FIRST_NAMESPACE, ..in_container }));
        for other in [
            "rtrace",
            "rtrace_",
            "rtrace_7",
            "rtrace_7_",
            "rtrace_+7_81",
            "rtrace_07_81",
            "rtrace_7_81_4026531836",
            "rtrace_7_81_1_1",
            "Rtrace_7_81",
            "rtrace_x_y",
        ] {
            assert_eq!(Owner::parse(other), None, "{other}");
        }
    }

    #[test]
    fn names_of_events_have_their_owner() {
        let owner = Owner::parse("rtrace_7_81").unwrap();
        let event = |group: &str, name: &str| Owner::of_event(&EventName { subsystem: group.to_owned(), name: name.to_owned() });
        assert_eq!(event("rtrace_7_81", "any"), Some(owner));
        assert_eq!(Owner::of_event(&owner.synthetic("path_names")), Some(owner));
        assert_eq!(owner.synthetic("path_names").to_string(), "synthetic:rtrace_7_81__path_names");
        for other in ["rtrace_7_81", "rtrace_7_81_path", "wakeup__rtrace_7_81", "rtrace__7_81"] {
            assert_eq!(event("synthetic", other), None, "{other}");
        }
        assert_eq!(event("sched", "rtrace_7_81__x"), None);
    }

    #[test]
    fn a_living_owner_is_not_gone() {
        assert!(!Owner::this().unwrap().is_gone());
    }

    #[test]
    fn a_zombie_and_a_reused_pid_are_gone() {
        let this = Owner::this().unwrap();
        assert!(Owner { started: this.started + 1, ..this }.is_gone(), "its PID was reused");
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        let started = procfs::stat(pid).unwrap().start_ticks;
        let child_owner = Owner { pid, started, ..this };
        while procfs::stat(pid).is_some_and(|stat| stat.state != b'Z') {
            std::thread::yield_now();
        }
        assert!(child_owner.is_gone(), "a zombie is gone");
        child.wait().unwrap();
        assert!(child_owner.is_gone());
    }
}
