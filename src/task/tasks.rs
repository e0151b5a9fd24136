//! Threads and processes: who they are, what they were called and when.
//!
//! A tid is reused, and a task is renamed; a line about the past wants the name of then. So each tid keeps its last few names with the time from which
//! each held, across the tasks that had that tid. Tasks that ended are remembered until their tid is reused, up to a bound.

use super::stays::Stays;
use crate::event::{Abi, Comm, TaskId, Time};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many ended tasks are remembered.
const DEAD_MAX: usize = 16_384;
/// How many names of one tid are remembered.
const NAMES_MAX: usize = 8;
/// What `/proc/PID/stat` says of a start is rounded down to this many nanoseconds (USER_HZ is 100).
const STARTED_UNIT: u64 = 10_000_000;

/// All tasks that were seen.
#[derive(Debug, Default)]
pub struct Tasks {
    by_tid: FxHashMap<i32, Slot>,
    tasks: Vec<Task>,
    free: Vec<Slot>,
    /// Ended tasks, the oldest first; stale where the generation differs.
    dead: VecDeque<(Slot, u32)>,
    /// The last one asked for: records come in bursts of one task.
    recent: Option<(i32, Slot)>,
}

/// Where a task's state is, here and in arrays beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(u32);

/// One tid, and the task that has it or had it last.
#[derive(Debug, Default)]
pub struct Task {
    pub id: TaskId,
    pub abi: Abi,
    pub ended: bool,
    pub parent: i32,
    /// The cgroups in which tasks with this tid were, if that is followed.
    pub stays: Stays,
    /// Counts the tasks that had this slot.
    generation: u32,
    /// The last name is this task's, and not that of an earlier one with its tid.
    named: bool,
    /// From old to new.
    names: SmallVec<[(Time, Comm); 1]>,
}

impl Slot {
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Tasks {
    /// The task's name now, or its last one if it ended; `None` when it was never seen.
    pub fn comm(&self, tid: i32) -> Option<Comm> {
        self.get(tid)?.comm().cloned()
    }

    /// The name that this tid had at `time`.
    pub fn comm_at(&self, tid: i32, time: Time) -> Option<Comm> {
        let names = &self.get(tid)?.names;
        names.iter().rev().find(|(from, _)| *from <= time).map(|(_, comm)| comm.clone())
    }

    /// The process of a thread.
    pub fn pid(&self, tid: i32) -> Option<i32> {
        self.get(tid).map(|task| task.id.pid)
    }

    /// The cgroups in which tasks with this tid were.
    pub fn stays(&self, tid: i32) -> Option<&Stays> {
        self.get(tid).map(|task| &task.stays)
    }

    /// The task with this tid, or the last that had it.
    pub fn get(&self, tid: i32) -> Option<&Task> {
        self.by_tid.get(&tid).map(|slot| &self.tasks[slot.index()])
    }

    #[inline]
    pub fn find(&mut self, tid: i32) -> Option<Slot> {
        if let Some((recent, slot)) = self.recent
            && recent == tid
        {
            return Some(slot);
        }
        let slot = *self.by_tid.get(&tid)?;
        self.recent = Some((tid, slot));
        Some(slot)
    }

    #[inline]
    pub fn at(&self, slot: Slot) -> &Task {
        &self.tasks[slot.index()]
    }

    #[inline]
    pub fn at_mut(&mut self, slot: Slot) -> &mut Task {
        &mut self.tasks[slot.index()]
    }

    /// All slots in use.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.tasks.len() as u32).map(Slot)
    }

    /// A new task takes this tid. Names of the tasks that had it before stay, for lines about the past.
    pub fn begin(&mut self, id: TaskId, abi: Abi) -> Slot {
        let slot = match self.find(id.tid) {
            Some(slot) => slot,
            None => self.take_slot(id.tid),
        };
        let task = self.at_mut(slot);
        let (names, stays) = (std::mem::take(&mut task.names), std::mem::take(&mut task.stays));
        *task = Task { id, abi, names, stays, generation: task.generation.wrapping_add(1), ..Task::default() };
        slot
    }

    /// The task is gone; it is remembered for a while.
    pub fn end(&mut self, slot: Slot) {
        let task = self.at_mut(slot);
        if std::mem::replace(&mut task.ended, true) {
            return;
        }
        let generation = task.generation;
        self.dead.push_back((slot, generation));
        while self.dead.len() > DEAD_MAX
            && let Some((slot, generation)) = self.dead.pop_front()
        {
            self.forget(slot, generation);
        }
    }

    /// From now on the task has this name.
    pub fn name(&mut self, slot: Slot, time: Time, comm: &[u8]) {
        if !self.at(slot).named || self.at(slot).comm().is_none_or(|last| **last != *comm) {
            self.share_name(slot, time, Arc::from(comm));
        }
    }

    /// The same, with a name that another task has as well.
    pub fn share_name(&mut self, slot: Slot, time: Time, comm: Comm) {
        let task = self.at_mut(slot);
        task.named = true;
        let names = &mut task.names;
        if names.len() == NAMES_MAX {
            names.remove(0);
        }
        names.push((time, comm));
    }

    /// What a look said of a task that the stream has not named: its name holds from its start on (which was rounded down).
    pub fn looked_at(&mut self, slot: Slot, comm: &[u8], started: Time) {
        if !self.at(slot).named {
            let from = if started.0 == 0 { started } else { Time(started.0 + STARTED_UNIT) };
            self.share_name(slot, from, Arc::from(comm));
        }
    }

    fn take_slot(&mut self, tid: i32) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.tasks.push(Task::default());
            Slot(self.tasks.len() as u32 - 1)
        });
        self.by_tid.insert(tid, slot);
        self.recent = Some((tid, slot));
        slot
    }

    fn forget(&mut self, slot: Slot, generation: u32) {
        let task = self.at_mut(slot);
        if task.generation != generation || !task.ended {
            return;
        }
        let tid = task.id.tid;
        *task = Task { generation: generation.wrapping_add(1), ended: true, ..Task::default() };
        self.by_tid.remove(&tid);
        self.recent = None;
        self.free.push(slot);
    }
}

impl Task {
    /// Its last name.
    #[inline]
    pub fn comm(&self) -> Option<&Comm> {
        self.names.last().map(|(_, comm)| comm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(tid: i32) -> TaskId {
        TaskId { pid: tid, tid }
    }

    #[test]
    fn a_name_is_that_of_the_time_asked_for() {
        let mut tasks = Tasks::default();
        let slot = tasks.begin(id(7), Abi::X86_64);
        tasks.name(slot, Time(10), b"sh");
        tasks.name(slot, Time(20), b"cat");
        tasks.end(slot);
        let slot = tasks.begin(id(7), Abi::X86_64);
        tasks.name(slot, Time(30), b"other");
        let name = |time| tasks.comm_at(7, Time(time)).map(|c| c.to_vec());
        assert_eq!(name(9), None);
        assert_eq!(name(19), Some(b"sh".to_vec()));
        assert_eq!(name(29), Some(b"cat".to_vec()));
        assert_eq!(name(30), Some(b"other".to_vec()));
        assert_eq!(tasks.comm(8), None);
    }

    #[test]
    fn a_look_names_nobody_before_its_start() {
        let mut tasks = Tasks::default();
        let slot = tasks.begin(id(9), Abi::X86_64);
        tasks.looked_at(slot, b"late", Time(1_000_000_000));
        assert_eq!(tasks.comm_at(9, Time(1_005_000_000)), None);
        assert!(tasks.comm_at(9, Time(1_010_000_000)).is_some());
    }

    #[test]
    fn ended_tasks_are_forgotten_in_the_end_and_living_ones_never() {
        let mut tasks = Tasks::default();
        let live = tasks.begin(id(1), Abi::X86_64);
        tasks.name(live, Time(0), b"init");
        for tid in 2..(DEAD_MAX as i32 + 100) {
            let slot = tasks.begin(id(tid), Abi::X86_64);
            tasks.name(slot, Time(1), b"x");
            tasks.end(slot);
        }
        assert_eq!(tasks.comm(2), None);
        assert!(tasks.comm(1).is_some());
        assert!(tasks.comm(DEAD_MAX as i32).is_some());
        assert!(tasks.tasks.len() <= DEAD_MAX + 2);
    }
}
