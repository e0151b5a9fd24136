//! Tasks whose /proc files are to be read, and the events that wait for the results.

use crate::task::fds::Ticket;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// The maximum number of calls that wait for one task.
const WAITING_MAX: usize = 1_024;

/// The maximum number of remembered pids that belong to no task.
const MISSING_MAX: usize = 4_096;

/// The requested reads of tasks in /proc.
#[derive(Default)]
pub(super) struct TaskReads {
    /// Tasks without a result, and the events that wait for it.
    waiting: FxHashMap<i32, SmallVec<[Ticket; 1]>>,
    /// Of these, tasks that were not read yet.
    unread: Vec<i32>,
    /// Numbers that are no pids in rtrace's namespace; most of them belong to another pid namespace.
    missing: FxHashSet<i32>,
}

impl TaskReads {
    /// Requests a read of a task, once, and returns the events that wait for it.
    pub fn request(&mut self, tid: i32) -> &mut SmallVec<[Ticket; 1]> {
        self.waiting.entry(tid).or_insert_with(|| {
            self.unread.push(tid);
            SmallVec::new()
        })
    }

    /// Returns the tasks whose requested reads have no result yet.
    pub fn awaited(&self) -> impl Iterator<Item = i32> {
        self.waiting.keys().copied()
    }

    /// Returns whether a requested read has no result yet.
    pub fn is_awaited(&self, tid: i32) -> bool {
        self.waiting.contains_key(&tid)
    }

    /// Returns whether a read may find a task with this number, and not too many events wait for it.
    pub fn may_find(&self, tid: i32) -> bool {
        let waiting = self.waiting.get(&tid).map_or(0, |waiting| waiting.len());
        !self.missing.contains(&tid) && waiting < WAITING_MAX
    }

    /// Takes at most `most` tasks to read now; the rest follow later.
    pub fn take(&mut self, most: usize) -> Vec<i32> {
        let later = self.unread.split_off(most.min(self.unread.len()));
        std::mem::replace(&mut self.unread, later)
    }

    /// Stores that no task has this number.
    pub fn store_missing(&mut self, tid: i32) {
        if self.missing.len() == MISSING_MAX {
            self.missing.clear();
        }
        self.missing.insert(tid);
    }

    /// Takes the events that waited for the task's result.
    pub fn take_waiting(&mut self, tid: i32) -> SmallVec<[Ticket; 1]> {
        self.waiting.remove(&tid).unwrap_or_default()
    }
}
