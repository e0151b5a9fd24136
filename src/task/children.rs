//! What processes in other pid namespaces call the tasks that they make.

use rustc_hash::FxHashMap;

/// Of processes whose numbers of tasks are not rtrace's: which task they were told under which number.
#[derive(Debug, Default)]
pub struct Children {
    of: FxHashMap<i32, FxHashMap<i32, i32>>,
}

impl Children {
    /// Process `pid` made the task `child`, and was told `number` for it.
    pub fn made(&mut self, pid: i32, number: i32, child: i32) {
        self.of.entry(pid).or_default().insert(number, child);
    }

    /// The task that this process was told under this number last. It may have ended since then.
    pub fn called(&self, pid: i32, number: i32) -> Option<i32> {
        self.of.get(&pid)?.get(&number).copied()
    }

    /// Forgets a process that has ended.
    pub fn forget(&mut self, pid: i32) {
        self.of.remove(&pid);
    }
}
