//! Looks that are made at tasks, and which events wait for their answers.

use crate::task::fds::Ticket;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// So many calls wait for one task's name at most.
const WAITING_MAX: usize = 1_024;

/// So many numbers that are no tasks are remembered.
const NOBODY_MAX: usize = 4_096;

/// Tasks that are asked for.
#[derive(Default)]
pub(super) struct Asked {
    /// Those without an answer, and the events that wait for it.
    waiting: FxHashMap<i32, SmallVec<[Ticket; 1]>>,
    /// Of these, those that no look was made for yet.
    to_ask: Vec<i32>,
    /// Numbers that are no tasks here; of another pid namespace, mostly.
    nobody: FxHashSet<i32>,
}

impl Asked {
    /// Who waits for a look at a task, which is made once.
    pub fn about(&mut self, tid: i32) -> &mut SmallVec<[Ticket; 1]> {
        self.waiting.entry(tid).or_insert_with(|| {
            self.to_ask.push(tid);
            SmallVec::new()
        })
    }

    /// The answer is still to come.
    pub fn is_awaited(&self, tid: i32) -> bool {
        self.waiting.contains_key(&tid)
    }

    /// A look may find a task of this number, and not too many wait for that.
    pub fn is_worth_asking(&self, tid: i32) -> bool {
        let waiting = self.waiting.get(&tid).map_or(0, |waiting| waiting.len());
        !self.nobody.contains(&tid) && waiting < WAITING_MAX
    }

    /// So many tasks at most for looks that are made now; the others' turn comes later.
    pub fn take(&mut self, most: usize) -> Vec<i32> {
        let later = self.to_ask.split_off(most.min(self.to_ask.len()));
        std::mem::replace(&mut self.to_ask, later)
    }

    /// A look found no task of this number.
    pub fn is_nobody(&mut self, tid: i32) {
        if self.nobody.len() == NOBODY_MAX {
            self.nobody.clear();
        }
        self.nobody.insert(tid);
    }

    /// The answer has come: who waited for it.
    pub fn answered(&mut self, tid: i32) -> SmallVec<[Ticket; 1]> {
        self.waiting.remove(&tid).unwrap_or_default()
    }
}
