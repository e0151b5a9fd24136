//! The targets that events are opened on.

use super::Scope;
use crate::event::TaskId;
use crate::kernel::procfs;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The targets on the live machine.
#[derive(Clone, Debug)]
pub enum Targets {
    /// The command that rtrace starts.
    Command,
    /// Tasks that exist already.
    Tasks {
        /// The threads that existed when the plan was made.
        tids: Vec<i32>,
        /// The processes whose threads are all traced. They are listed repeatedly until no new thread appears.
        processes: Vec<i32>,
    },
    /// All tasks on the plan's CPUs.
    SystemWide,
    /// The tasks of a cgroup, given by its directory.
    Cgroup(PathBuf),
    /// The calls that are made under this user id; only the BPF programs can select them.
    User(u32),
}

impl Targets {
    /// Returns the scope of a trace of these targets.
    pub fn scope(&self) -> Scope {
        match self {
            Targets::Command => Scope::Command,
            Targets::Tasks { .. } => Scope::Tasks,
            Targets::SystemWide | Targets::Cgroup(_) | Targets::User(_) => Scope::System,
        }
    }

    /// Returns whether the targets are not individual tasks. Tasks that appear later are then traced as well, so rtrace
    /// itself and the processes that read its output must be excluded.
    pub fn is_open_ended(&self) -> bool {
        matches!(self, Targets::SystemWide | Targets::Cgroup(_) | Targets::User(_))
    }

    /// Returns the target tasks among the tasks that exist now; for scopes without named tasks, all tasks. The command
    /// is not among them, because its start has a synthesized record of its own.
    pub fn tasks(&self) -> Vec<TaskId> {
        match self {
            Targets::Command => Vec::new(),
            Targets::Tasks { tids, processes } if processes.is_empty() => tids.iter().filter_map(|&tid| procfs::task(tid)).collect(),
            _ => self.processes().into_iter().flat_map(procfs::tasks_of).collect(),
        }
    }

    /// Returns the processes of these tasks.
    pub fn processes(&self) -> Vec<i32> {
        match self {
            Targets::Command => Vec::new(),
            Targets::Tasks { processes, .. } if !processes.is_empty() => processes.clone(),
            Targets::Tasks { .. } => self.tasks().into_iter().map(|task| task.pid).collect::<BTreeSet<i32>>().into_iter().collect(),
            Targets::SystemWide | Targets::Cgroup(_) | Targets::User(_) => procfs::processes(),
        }
    }
}
