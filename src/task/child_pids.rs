//! The pids by which processes in other pid namespaces know the tasks that they created.

use rustc_hash::FxHashMap;

/// By process whose pid namespace is not rtrace's: the pids that its calls returned for new tasks, and the tasks.
#[derive(Debug, Default)]
pub struct ChildPids {
    by_process: FxHashMap<i32, FxHashMap<i32, i32>>,
}

impl ChildPids {
    /// Stores that process `pid` created the task `child`, and that its call returned `number`.
    pub fn insert(&mut self, pid: i32, number: i32, child: i32) {
        self.by_process.entry(pid).or_default().insert(number, child);
    }

    /// Returns the task that `number` was last returned for to this process. That task may have ended.
    pub fn get(&self, pid: i32, number: i32) -> Option<i32> {
        self.by_process.get(&pid)?.get(&number).copied()
    }

    /// Removes a process that has ended.
    pub fn forget(&mut self, pid: i32) {
        self.by_process.remove(&pid);
    }
}
