//! Translation of the kernel's own pids, for a trace from a pid namespace other than the initial one.
//!
//! A record identifies the task that wrote it by the pid in rtrace's namespace (`perf_event_pid_type()` in
//! kernel/events/core.c), but pids in the fields of tracepoints are those of the initial namespace. No record
//! translates between the two directly, but each tracepoint record has both pids of the task that wrote it:
//! `common_pid` is the kernel's. So a task's pids are known from its first record on; those of a new task are known
//! from the record of its creation.

use rustc_hash::FxHashMap;

/// The tasks whose pids are known in both namespaces.
#[derive(Debug, Default)]
pub struct KernelPids {
    /// Maps the kernel's pid to rtrace's.
    by_kernel_pid: FxHashMap<i32, i32>,
    /// Maps rtrace's pid to the kernel's.
    by_tid: FxHashMap<i32, i32>,
}

impl KernelPids {
    /// Stores both pids of a task; returns whether they are new. Tasks without a pid in rtrace's namespace (0, or -1
    /// when they are ending) are ignored.
    #[inline]
    pub fn learn(&mut self, tid: i32, kernel_pid: i32) -> bool {
        let is_new = tid > 0 && kernel_pid > 0 && self.by_kernel_pid.get(&kernel_pid) != Some(&tid);
        if is_new {
            self.replace(tid, kernel_pid);
        }
        is_new
    }

    #[cold]
    fn replace(&mut self, tid: i32, kernel_pid: i32) {
        if let Some(before) = self.by_tid.insert(tid, kernel_pid) {
            self.by_kernel_pid.remove(&before);
        }
        if let Some(before) = self.by_kernel_pid.insert(kernel_pid, tid) {
            self.by_tid.remove(&before);
        }
    }

    /// Returns rtrace's pid for the kernel's, if it is known.
    pub fn tid(&self, kernel_pid: i32) -> Option<i32> {
        self.by_kernel_pid.get(&kernel_pid).copied()
    }

    /// Returns whether the kernel's pid of this task is known.
    pub fn knows(&self, tid: i32) -> bool {
        self.by_tid.contains_key(&tid)
    }

    /// Removes a task that has ended, because the kernel can reuse its pid.
    pub fn forget(&mut self, tid: i32) {
        if let Some(kernel_pid) = self.by_tid.remove(&tid) {
            self.by_kernel_pid.remove(&kernel_pid);
        }
    }

    /// Removes all tasks, because any of them may have ended in a gap of the stream.
    pub fn forget_all(&mut self) {
        self.by_kernel_pid.clear();
        self.by_tid.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_pid_maps_to_its_latest_task() {
        let mut pids = KernelPids::default();
        pids.learn(2, 1002);
        pids.learn(3, 1003);
        assert_eq!([1002, 1003, 2].map(|kernel_pid| pids.tid(kernel_pid)), [Some(2), Some(3), None]);
        // Both pids were reused.
        pids.learn(4, 1002);
        pids.learn(3, 1009);
        assert_eq!([1002, 1003, 1009].map(|kernel_pid| pids.tid(kernel_pid)), [Some(4), None, Some(3)]);
        assert_eq!([2, 3, 4].map(|tid| pids.knows(tid)), [false, true, true]);
    }

    #[test]
    fn ended_tasks_have_no_translation() {
        let mut pids = KernelPids::default();
        pids.learn(2, 1002);
        pids.forget(2);
        pids.forget(2);
        assert_eq!((pids.tid(1002), pids.knows(2)), (None, false));
        pids.learn(0, 1004);
        pids.learn(-1, 1005);
        pids.learn(5, 0);
        assert_eq!([1004, 1005, 0].map(|kernel_pid| pids.tid(kernel_pid)), [None; 3]);
        pids.learn(2, 1002);
        pids.forget_all();
        assert_eq!((pids.tid(1002), pids.knows(2)), (None, false));
    }
}
