//! Whose a dynamic event or a tracefs instance is.
//!
//! What rtrace makes there outlives a process that is killed, so it bears its process in its name: `rtrace_PID_START`, and where that number is of a pid namespace other than the
//! first, `rtrace_PID_START_NAMESPACE`. By that a later run tells what a dead one left from what a living one uses. Names that are no owner's are nobody's business here.
//! Of a probe it is its group's name; synthetic events have all one group, so of those it is what their own names begin with: `rtrace_PID_START__NAME`.

use super::groups::SYNTHETIC;
use crate::kernel::procfs;
use crate::kernel::tracefs::EventName;
use std::fmt;
use std::fs;
use std::path::Path;

/// What all names of owners begin with.
const PREFIX: &str = "rtrace_";

/// Between the owner and the rest of a synthetic event's name.
const OF_SYNTHETIC: &str = "__";

/// The inode of the first pid namespace (PROC_PID_INIT_INO in include/linux/proc_ns.h).
const FIRST_NAMESPACE: u32 = 0xEFFF_FFFC;

/// A process of rtrace's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pid: i32,
    /// In clock ticks since boot: tells a number that was given again.
    started: u64,
    /// The inode of the pid namespace in which the number counts.
    namespace: u32,
}

impl Owner {
    /// This process; `None` without /proc.
    pub fn this() -> Option<Owner> {
        let stat = procfs::stat(rustix::process::getpid().as_raw_nonzero().get())?;
        Some(Owner { pid: stat.tid, started: stat.start_ticks, namespace: namespace("self")? })
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The owner of what has this name.
    pub fn parse(name: &str) -> Option<Owner> {
        let mut parts = name.strip_prefix(PREFIX)?.split('_');
        let (pid, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let namespace = parts.next().map_or(Ok(FIRST_NAMESPACE), str::parse).ok()?;
        let owner = Owner { pid, started, namespace };
        // Only what is written as it would be printed: `rtrace_+1_2` is somebody else's.
        (parts.next().is_none() && owner.to_string() == name).then_some(owner)
    }

    /// The owner of this event.
    pub fn of_event(event: &EventName) -> Option<Owner> {
        match event.subsystem.as_str() {
            SYNTHETIC => event.name.split_once(OF_SYNTHETIC).and_then(|(owner, _)| Owner::parse(owner)),
            group => Owner::parse(group),
        }
    }

    /// A synthetic event of this owner's.
    pub fn synthetic(&self, name: &str) -> EventName {
        EventName { subsystem: SYNTHETIC.to_owned(), name: format!("{self}{OF_SYNTHETIC}{name}") }
    }

    /// Its number does not count in the first pid namespace.
    pub fn is_of_other_namespace(&self) -> bool {
        self.namespace != FIRST_NAMESPACE
    }

    /// It is certain that the process has ended. What is of another pid namespace cannot be seen, so it is gone only with all of the namespace.
    pub fn is_gone(&self) -> bool {
        let Some(here) = namespace("self") else { return false };
        if self.namespace != here {
            let lives = |pid: i32| namespace(&pid.to_string()).is_none_or(|other| other == self.namespace);
            return here == FIRST_NAMESPACE && !procfs::processes().into_iter().any(lives);
        }
        // One that is dead but not yet waited for holds nothing any more.
        procfs::stat(self.pid).is_none_or(|stat| stat.start_ticks != self.started || matches!(stat.state, b'Z' | b'X'))
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}_{}", self.pid, self.started)?;
        if self.namespace != FIRST_NAMESPACE { write!(f, "_{}", self.namespace) } else { Ok(()) }
    }
}

/// The inode of a process's pid namespace, from `pid:[4026531836]`. A kernel without such namespaces (CONFIG_PID_NS) has no link, and what would be the first.
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
    fn names_are_read_as_they_are_written() {
        let this = Owner::this().unwrap();
        assert_eq!(Owner::parse(&this.to_string()), Some(this));
        let elsewhere = Owner { pid: 7, started: 81, namespace: 4_026_532_000 };
        assert_eq!(elsewhere.to_string(), "rtrace_7_81_4026532000");
        assert_eq!(Owner::parse("rtrace_7_81_4026532000"), Some(elsewhere));
        assert_eq!(Owner::parse("rtrace_7_81"), Some(Owner { namespace: FIRST_NAMESPACE, ..elsewhere }));
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
    fn events_say_whose_they_are() {
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
    fn the_living_are_not_gone() {
        assert!(!Owner::this().unwrap().is_gone());
    }

    #[test]
    fn the_dead_and_their_successors_are_told_apart() {
        let this = Owner::this().unwrap();
        assert!(Owner { started: this.started + 1, ..this }.is_gone(), "its number was given again");
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        let started = procfs::stat(pid).unwrap().start_ticks;
        let child_owner = Owner { pid, started, ..this };
        while procfs::stat(pid).is_some_and(|stat| stat.state != b'Z') {
            std::thread::yield_now();
        }
        assert!(child_owner.is_gone(), "nobody waited for it yet");
        child.wait().unwrap();
        assert!(child_owner.is_gone());
    }
}
