//! Which task the kernel's own numbers mean, where rtrace is in another pid namespace than the first.
//!
//! A record says who wrote it by the number in rtrace's namespace (`perf_event_pid_type()` in kernel/events/core.c), but
//! numbers in the fields of tracepoints are the first namespace's. Nothing translates one into the other there, but every
//! tracepoint's record has both for the task that wrote it: `common_pid` is the kernel's number. So a task is known from
//! its first record on, and one that was just made is known from the record of its making.

use rustc_hash::FxHashMap;

/// The tasks whose numbers are known on both sides.
#[derive(Debug, Default)]
pub struct KernelNumbers {
    /// From the kernel's number to rtrace's.
    here: FxHashMap<i32, i32>,
    /// From rtrace's number to the kernel's.
    kernels: FxHashMap<i32, i32>,
}

impl KernelNumbers {
    /// The task that is `tid` here has this number in the kernel; returns whether that is new. Tasks without a number
    /// here (0, or -1 once they are ending) are none of ours.
    #[inline]
    pub fn learn(&mut self, tid: i32, kernels: i32) -> bool {
        let is_new = tid > 0 && kernels > 0 && self.here.get(&kernels) != Some(&tid);
        if is_new {
            self.replace(tid, kernels);
        }
        is_new
    }

    #[cold]
    fn replace(&mut self, tid: i32, kernels: i32) {
        if let Some(before) = self.kernels.insert(tid, kernels) {
            self.here.remove(&before);
        }
        if let Some(before) = self.here.insert(kernels, tid) {
            self.kernels.remove(&before);
        }
    }

    /// The number here of the task that has this number in the kernel, if it is known.
    pub fn here(&self, kernels: i32) -> Option<i32> {
        self.here.get(&kernels).copied()
    }

    /// Whether the kernel's number of the task that is `tid` here is known.
    pub fn knows(&self, tid: i32) -> bool {
        self.kernels.contains_key(&tid)
    }

    /// The task that was `tid` here is gone: the kernel may give its number to anybody.
    pub fn forget(&mut self, tid: i32) {
        if let Some(kernels) = self.kernels.remove(&tid) {
            self.here.remove(&kernels);
        }
    }

    /// The stream has a gap, in which any task may have ended.
    pub fn forget_all(&mut self) {
        self.here.clear();
        self.kernels.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_means_the_task_that_had_it_last() {
        let mut numbers = KernelNumbers::default();
        numbers.learn(2, 1002);
        numbers.learn(3, 1003);
        assert_eq!([1002, 1003, 2].map(|kernels| numbers.here(kernels)), [Some(2), Some(3), None]);
        // The kernel's number was given again, and so was the one here.
        numbers.learn(4, 1002);
        numbers.learn(3, 1009);
        assert_eq!([1002, 1003, 1009].map(|kernels| numbers.here(kernels)), [Some(4), None, Some(3)]);
        assert_eq!([2, 3, 4].map(|tid| numbers.knows(tid)), [false, true, true]);
    }

    #[test]
    fn what_is_gone_is_not_known() {
        let mut numbers = KernelNumbers::default();
        numbers.learn(2, 1002);
        numbers.forget(2);
        numbers.forget(2);
        assert_eq!((numbers.here(1002), numbers.knows(2)), (None, false));
        numbers.learn(0, 1004);
        numbers.learn(-1, 1005);
        numbers.learn(5, 0);
        assert_eq!([1004, 1005, 0].map(|kernels| numbers.here(kernels)), [None; 3]);
        numbers.learn(2, 1002);
        numbers.forget_all();
        assert_eq!((numbers.here(1002), numbers.knows(2)), (None, false));
    }
}
