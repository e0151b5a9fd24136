//! Threads and processes, with their comms over time.
//!
//! A tid can be reused and a task can be renamed, but a line about the past needs the comm of its time. So each tid
//! keeps its last few comms with the time from which each was valid, across the tasks that had this tid. Ended tasks
//! are kept until their tid is reused, up to a limit.

use super::cgroup_history::CgroupHistory;
use crate::event::{Abi, Comm, TaskId, Time};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// The maximum number of ended tasks that are kept.
const ENDED_MAX: usize = 16_384;
/// The maximum number of comms that are kept for one tid.
const COMMS_MAX: usize = 8;
/// The start time in `/proc/PID/stat` is rounded down to a multiple of this, in nanoseconds (USER_HZ is 100).
const STARTED_UNIT: u64 = 10_000_000;

/// All tasks that were seen.
#[derive(Debug, Default)]
pub struct Tasks {
    by_tid: FxHashMap<i32, Slot>,
    tasks: Vec<Task>,
    free: Vec<Slot>,
    /// Ended tasks, the oldest first. An entry is stale if the generation differs.
    ended_tasks: VecDeque<(Slot, u32)>,
    /// The last result of a lookup, because records often come in bursts of one task.
    recent: Option<(i32, Slot)>,
    /// The changes since they were taken, if they are kept.
    changes: Option<Vec<Change>>,
}

/// A change of the tasks and comms, by which a copy elsewhere follows. It has no cgroups.
#[derive(Clone, Debug)]
pub struct Change(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Begin(TaskId, Abi),
    End(Slot),
    Comm(Slot, Time, Comm),
}

/// The index of a task's state, in this table and in parallel arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(u32);

/// A tid, and the task that has it or had it last.
#[derive(Debug, Default)]
pub struct Task {
    /// The numbers of the thread and its process.
    pub id: TaskId,
    /// The ABI of its program, as far as it is known.
    pub abi: Abi,
    /// Whether it has ended.
    pub ended: bool,
    /// The process that created it; 0 if that is not known.
    pub parent: i32,
    /// The cgroups of the tasks that had this tid, if cgroups are tracked.
    pub cgroup_history: CgroupHistory,
    /// The number of tasks that have used this slot.
    generation: u32,
    /// The last comm is that of this task, not of an earlier one with the same tid.
    has_comm: bool,
    /// The comms in order of time.
    comms: SmallVec<[(Time, Comm); 1]>,
}

impl Slot {
    /// Returns the slot as an index of parallel arrays.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Tasks {
    /// Keeps the changes from now on for [`Tasks::take_changes`].
    pub fn keep_changes(&mut self) {
        self.changes.get_or_insert_default();
    }

    /// Takes the changes since the last call. A copy that repeats all of them has the same tasks and comms.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Makes changes that were made elsewhere.
    pub fn repeat(&mut self, changes: Vec<Change>) {
        for Change(change) in changes {
            match change {
                Kind::Begin(id, abi) => _ = self.begin(id, abi),
                Kind::End(slot) => self.end(slot),
                Kind::Comm(slot, time, comm) => self.set_shared_comm(slot, time, comm),
            }
        }
    }

    fn changed(&mut self, change: impl FnOnce() -> Kind) {
        if let Some(changes) = &mut self.changes {
            changes.push(Change(change()));
        }
    }

    /// Returns the task's current comm, or its last one if the task has ended; `None` if the task is unknown.
    pub fn comm(&self, tid: i32) -> Option<Comm> {
        self.get(tid)?.comm().cloned()
    }

    /// Returns the comm that this tid had at `time`.
    pub fn comm_at(&self, tid: i32, time: Time) -> Option<Comm> {
        let comms = &self.get(tid)?.comms;
        comms.iter().rev().find(|(from, _)| *from <= time).map(|(_, comm)| comm.clone())
    }

    /// Returns the process of a thread.
    pub fn pid(&self, tid: i32) -> Option<i32> {
        self.get(tid).map(|task| task.id.pid)
    }

    /// Returns the cgroups of the tasks that had this tid.
    pub fn cgroup_history(&self, tid: i32) -> Option<&CgroupHistory> {
        self.get(tid).map(|task| &task.cgroup_history)
    }

    /// Returns the task with this tid, or the last one that had it.
    pub fn get(&self, tid: i32) -> Option<&Task> {
        self.by_tid.get(&tid).map(|slot| &self.tasks[slot.index()])
    }

    /// Returns the slot of the task with this tid, or of the last one that had it.
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

    /// Returns the task in a slot.
    #[inline]
    pub fn at(&self, slot: Slot) -> &Task {
        &self.tasks[slot.index()]
    }

    /// Returns the task in a slot, to be changed.
    #[inline]
    pub fn at_mut(&mut self, slot: Slot) -> &mut Task {
        &mut self.tasks[slot.index()]
    }

    /// Returns all slots in use.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.tasks.len() as u32).map(Slot)
    }

    /// Adds a new task with this tid. The comms of earlier tasks with the tid are kept, for lines about the past.
    pub fn begin(&mut self, id: TaskId, abi: Abi) -> Slot {
        self.changed(|| Kind::Begin(id, abi));
        let slot = match self.find(id.tid) {
            Some(slot) => slot,
            None => self.take_slot(id.tid),
        };
        let task = self.at_mut(slot);
        let (comms, cgroup_history) = (std::mem::take(&mut task.comms), std::mem::take(&mut task.cgroup_history));
        *task = Task { id, abi, comms, cgroup_history, generation: task.generation.wrapping_add(1), ..Task::default() };
        slot
    }

    /// Marks the task as ended; it is kept for some time.
    pub fn end(&mut self, slot: Slot) {
        let task = self.at_mut(slot);
        if std::mem::replace(&mut task.ended, true) {
            return;
        }
        let generation = task.generation;
        self.changed(|| Kind::End(slot));
        self.ended_tasks.push_back((slot, generation));
        while self.ended_tasks.len() > ENDED_MAX
            && let Some((slot, generation)) = self.ended_tasks.pop_front()
        {
            self.forget(slot, generation);
        }
    }

    /// Sets the comm of the task from `time` on.
    pub fn set_comm(&mut self, slot: Slot, time: Time, comm: &[u8]) {
        if !self.at(slot).has_comm || self.at(slot).comm().is_none_or(|last| **last != *comm) {
            self.set_shared_comm(slot, time, Arc::from(comm));
        }
    }

    /// As [`Tasks::set_comm`], with a comm that is shared with another task.
    pub fn set_shared_comm(&mut self, slot: Slot, time: Time, comm: Comm) {
        self.changed(|| Kind::Comm(slot, time, comm.clone()));
        let task = self.at_mut(slot);
        task.has_comm = true;
        let comms = &mut task.comms;
        if comms.len() == COMMS_MAX {
            comms.remove(0);
        }
        comms.push((time, comm));
    }

    /// Sets a comm that was read from /proc, if no record has named the task. It is valid from the start time on (which
    /// was rounded down).
    pub fn set_comm_from_proc(&mut self, slot: Slot, comm: &[u8], started: Time) {
        if !self.at(slot).has_comm {
            let from = if started.0 == 0 { started } else { Time(started.0 + STARTED_UNIT) };
            self.set_shared_comm(slot, from, Arc::from(comm));
        }
    }

    /// Returns a free slot for a tid that has none.
    fn take_slot(&mut self, tid: i32) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.tasks.push(Task::default());
            Slot(self.tasks.len() as u32 - 1)
        });
        self.by_tid.insert(tid, slot);
        self.recent = Some((tid, slot));
        slot
    }

    /// Removes an ended task, unless its slot was reused.
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
    /// Returns the last comm.
    #[inline]
    pub fn comm(&self) -> Option<&Comm> {
        self.comms.last().map(|(_, comm)| comm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(tid: i32) -> TaskId {
        TaskId { pid: tid, tid }
    }

    #[test]
    fn a_comm_is_looked_up_by_time() {
        let mut tasks = Tasks::default();
        let slot = tasks.begin(id(7), Abi::X86_64);
        tasks.set_comm(slot, Time(10), b"sh");
        tasks.set_comm(slot, Time(20), b"cat");
        tasks.end(slot);
        let slot = tasks.begin(id(7), Abi::X86_64);
        tasks.set_comm(slot, Time(30), b"other");
        let name = |time| tasks.comm_at(7, Time(time)).map(|c| c.to_vec());
        assert_eq!(name(9), None);
        assert_eq!(name(19), Some(b"sh".to_vec()));
        assert_eq!(name(29), Some(b"cat".to_vec()));
        assert_eq!(name(30), Some(b"other".to_vec()));
        assert_eq!(tasks.comm(8), None);
    }

    #[test]
    fn a_copy_that_repeats_the_changes_has_the_same_comms() {
        let (mut tasks, mut copy) = (Tasks::default(), Tasks::default());
        tasks.keep_changes();
        let mut number = 1u32;
        for time in 0..300_000 {
            number = number.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            let tid = (number >> 16) as i32 % 20_000;
            match tasks.find(tid) {
                Some(slot) if number & 0x800 == 0 => tasks.set_comm(slot, Time(time), &number.to_le_bytes()),
                Some(slot) if number & 0x400 == 0 => tasks.end(slot),
                _ => _ = tasks.begin(id(tid), Abi::X86_64),
            }
            if time % 1000 == 0 {
                copy.repeat(tasks.take_changes());
            }
        }
        copy.repeat(tasks.take_changes());
        assert!(tasks.take_changes().is_empty() && copy.take_changes().is_empty());
        assert!(tasks.ended_tasks.len() == ENDED_MAX, "tasks were forgotten, too");
        for tid in 0..20_000 {
            let of = |tasks: &Tasks| (tasks.pid(tid), tasks.comm(tid), tasks.comm_at(tid, Time(290_000)));
            assert_eq!(of(&copy), of(&tasks), "{tid}");
        }
    }

    #[test]
    fn a_comm_from_proc_is_not_valid_before_the_start_time() {
        let mut tasks = Tasks::default();
        let slot = tasks.begin(id(9), Abi::X86_64);
        tasks.set_comm_from_proc(slot, b"late", Time(1_000_000_000));
        assert_eq!(tasks.comm_at(9, Time(1_005_000_000)), None);
        assert!(tasks.comm_at(9, Time(1_010_000_000)).is_some());
    }

    #[test]
    fn only_ended_tasks_are_evicted() {
        let mut tasks = Tasks::default();
        let live = tasks.begin(id(1), Abi::X86_64);
        tasks.set_comm(live, Time(0), b"init");
        for tid in 2..(ENDED_MAX as i32 + 100) {
            let slot = tasks.begin(id(tid), Abi::X86_64);
            tasks.set_comm(slot, Time(1), b"x");
            tasks.end(slot);
        }
        assert_eq!(tasks.comm(2), None);
        assert!(tasks.comm(1).is_some());
        assert!(tasks.comm(ENDED_MAX as i32).is_some());
        assert!(tasks.tasks.len() <= ENDED_MAX + 2);
    }
}
