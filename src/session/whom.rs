//! Whom events are opened on.

use crate::event::TaskId;
use crate::kernel::procfs;
use std::collections::BTreeSet;
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

    /// The tasks that are meant, and may be, of those that are there now. The command makes itself known.
    pub fn tasks(&self) -> Vec<TaskId> {
        match self {
            Whom::Command => Vec::new(),
            Whom::Tasks { tids, processes } if processes.is_empty() => tids.iter().filter_map(|&tid| procfs::task(tid)).collect(),
            _ => self.processes().into_iter().flat_map(procfs::tasks_of).collect(),
        }
    }

    /// Their processes.
    pub fn processes(&self) -> Vec<i32> {
        match self {
            Whom::Command => Vec::new(),
            Whom::Tasks { processes, .. } if !processes.is_empty() => processes.clone(),
            Whom::Tasks { .. } => self.tasks().into_iter().map(|task| task.pid).collect::<BTreeSet<i32>>().into_iter().collect(),
            Whom::Everyone | Whom::Cgroup(_) | Whom::User(_) => procfs::processes(),
        }
    }
}
