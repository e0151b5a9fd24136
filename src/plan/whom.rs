//! Whom events are opened on.

use std::path::PathBuf;

/// The targets, found on the live machine.
#[derive(Clone, Debug)]
pub enum Whom {
    /// The command that rtrace starts.
    Command,
    /// Tasks that are there. With `processes`, those processes' threads are listed again until no new one turns up.
    Tasks { tids: Vec<i32>, processes: Vec<i32> },
    /// Whatever runs on the plan's CPUs.
    Everyone,
    /// The tasks of this cgroup, by its directory.
    Cgroup(PathBuf),
    /// Whatever is of this user at its call; only the BPF programs can tell.
    User(u32),
}

impl Whom {
    /// Tasks are not named: whoever comes and is meant, so that rtrace itself and who carries its output must be left out.
    pub fn is_anyone(&self) -> bool {
        matches!(self, Whom::Everyone | Whom::Cgroup(_) | Whom::User(_))
    }
}
