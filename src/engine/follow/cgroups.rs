//! The cgroup of each task.
//!
//! A task's cgroup is the one read from /proc, or its parent's at the fork, and stays valid until an event reports a
//! move. If moves are not recorded (the event is not armed, or records were lost), the cgroup is unknown until the next
//! read. It is never guessed.

use super::Follower;
use crate::event::{TaskId, Time};
use crate::kernel::cgroups;
use crate::session::{Role, Session};
use crate::syscall::layout::CgroupMoveLayout;
use crate::task::cgroup_history::Cgroup;
use crate::task::tasks::{Slot, Task};
use rustc_hash::{FxHashMap, FxHashSet};

/// The flag of clone3(2) that places the child in another cgroup than its parent's (include/uapi/linux/sched.h).
pub const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// The maximum number of tasks that are read in one round.
const READS_MAX: usize = 256;
/// The maximum number of remembered moves of unknown tasks, which may have been moved into the traced cgroup.
const UNKNOWN_MAX: usize = 4_096;

/// The state of cgroup tracking, apart from the tasks' own histories.
pub struct Cgroups {
    /// Moves are recorded, so a child begins in its parent's cgroup.
    moves: bool,
    paths: CgroupPaths,
    /// The pids in records of moves belong to another pid namespace, so the moved task is not known.
    has_foreign_pids: bool,
    /// Tasks whose cgroup is to be read.
    to_read: FxHashSet<i32>,
    /// The last known cgroups of tasks that the stream has not introduced.
    unknown_tasks: FxHashMap<i32, Option<Cgroup>>,
}

impl Cgroups {
    pub fn new(session: &Session) -> Cgroups {
        let moves = session.events.find(Role::CgroupMove).is_some();
        let paths = CgroupPaths {
            known: session.cgroups.iter().map(|(id, path)| (*id, path.as_slice().into())).collect(),
            root: session.cgroups_from_root.then(Vec::new),
        };
        let has_foreign_pids = session.fields_have_other_numbers;
        Cgroups { moves, paths, has_foreign_pids, to_read: FxHashSet::default(), unknown_tasks: FxHashMap::default() }
    }
}

/// Translates the kernel's paths of cgroups to those in /proc.
struct CgroupPaths {
    /// If rtrace is in a cgroup namespace: the cgroups that existed at the start, by id.
    known: FxHashMap<u64, Cgroup>,
    /// The kernel's path of the namespace's root, once a move into one of these cgroups has shown it.
    root: Option<Vec<u8>>,
}

impl CgroupPaths {
    /// Returns the /proc path of the cgroup with this id and path in the kernel.
    fn of(&mut self, id: u64, path: &[u8]) -> Option<Cgroup> {
        if let Some(root) = &self.root {
            return Some(if root.is_empty() { path.into() } else { cgroups::relative(root, path).into() });
        }
        let known = self.known.get(&id)?.clone();
        if !known.starts_with(b"/..") {
            self.root = path.strip_suffix(if *known == *b"/" { &b""[..] } else { &known[..] }).map(<[u8]>::to_vec);
        }
        Some(known)
    }
}

impl Follower {
    /// Sets the cgroup of a child, which begins in the cgroup of the thread that created it.
    pub(super) fn cgroup_of_child(&mut self, parent: Slot, child: Slot, time: Time) {
        let Some(cgroups) = &mut self.cgroups else { return };
        let cgroup = if cgroups.moves { self.tasks.at(parent).cgroup_history.last().cloned() } else { None };
        self.begin_in_cgroup(child, time, cgroup);
    }

    /// Sets the cgroup of a task that began unseen.
    pub(super) fn cgroup_of_unknown_task(&mut self, slot: Slot, time: Time) {
        let Some(cgroups) = &mut self.cgroups else { return };
        let TaskId { pid, tid } = self.tasks.at(slot).id;
        let moved = cgroups.unknown_tasks.remove(&tid).or_else(|| cgroups.unknown_tasks.get(&pid).cloned()).flatten();
        self.begin_in_cgroup(slot, time, moved);
    }

    /// Sets the first cgroup of a task, and requests a read if it is not known.
    fn begin_in_cgroup(&mut self, slot: Slot, time: Time, cgroup: Option<Cgroup>) {
        let task = self.tasks.at_mut(slot);
        if let (None, Some(cgroups)) = (&cgroup, &mut self.cgroups) {
            cgroups.to_read.insert(task.id.tid);
        }
        task.cgroup_history.begin(time, cgroup);
    }

    /// Marks the cgroup as unknown, and requests a read.
    pub(super) fn invalidate_cgroup(&mut self, slot: Slot, time: Time) {
        let Some(cgroups) = &mut self.cgroups else { return };
        let task = self.tasks.at_mut(slot);
        task.cgroup_history.moved(time, None);
        cgroups.to_read.insert(task.id.tid);
    }

    /// Stores a cgroup that was read from /proc. It is ignored if the task was moved since.
    pub(super) fn set_cgroup(&mut self, task: TaskId, cgroup: Option<&[u8]>) {
        if let (Some(_), Some(cgroup)) = (&self.cgroups, cgroup)
            && let Some(slot) = self.tasks.find(task.tid).filter(|&slot| self.tasks.at(slot).id == task)
        {
            self.tasks.at_mut(slot).cgroup_history.set_unknown(cgroup.into());
        }
    }

    /// Handles a move of a task or of a whole process. The event does not distinguish the two, so the process's other
    /// threads are read.
    pub(super) fn cgroup_changed(&mut self, layout: CgroupMoveLayout, raw: &[u8], time: Time) {
        let Some(cgroups) = &mut self.cgroups else { return };
        if cgroups.has_foreign_pids {
            return self.forget_cgroups(time);
        }
        let (tid, path) = (layout.pid.signed(raw) as i32, layout.path.data_loc_text(raw));
        // A task in the unified hierarchy's root is shown with its cgroup in another hierarchy, and so is a task that
        // is moved within another hierarchy; both have to be read.
        let is_known = layout.root.signed(raw) == 0 && !path.is_empty();
        let cgroup = is_known.then(|| cgroups.paths.of(layout.id.unsigned(raw), path)).flatten().filter(|name| **name != *b"/");
        let is_other = |task: &Task| !task.ended && task.id.pid == tid && task.id.tid != tid;
        let others: Vec<Slot> = self.tasks.slots().filter(|&slot| is_other(self.tasks.at(slot))).collect();
        others.into_iter().for_each(|slot| self.invalidate_cgroup(slot, time));
        match self.tasks.find(tid).filter(|&slot| !self.tasks.at(slot).ended) {
            Some(slot) if cgroup.is_some() => self.tasks.at_mut(slot).cgroup_history.moved(time, cgroup),
            Some(slot) => self.invalidate_cgroup(slot, time),
            None => self.keep_unknown_move(tid, cgroup),
        }
    }

    /// Keeps the cgroup of a task that the stream has not introduced.
    fn keep_unknown_move(&mut self, tid: i32, cgroup: Option<Cgroup>) {
        let Some(cgroups) = &mut self.cgroups else { return };
        if cgroups.unknown_tasks.len() == UNKNOWN_MAX {
            cgroups.unknown_tasks.clear();
        }
        cgroups.unknown_tasks.insert(tid, cgroup);
    }

    /// Marks all cgroups as unknown, because moves may be among lost records.
    pub(super) fn forget_cgroups(&mut self, time: Time) {
        let Some(cgroups) = &mut self.cgroups else { return };
        cgroups.unknown_tasks.clear();
        let living: Vec<Slot> = self.tasks.slots().filter(|&slot| !self.tasks.at(slot).ended).collect();
        living.into_iter().for_each(|slot| self.invalidate_cgroup(slot, time));
    }

    /// Takes the tasks whose cgroup is to be read now.
    pub(super) fn cgroups_to_read(&mut self) -> Vec<i32> {
        let Some(cgroups) = &mut self.cgroups else { return Vec::new() };
        let now: Vec<i32> = cgroups.to_read.iter().copied().take(READS_MAX).collect();
        now.iter().for_each(|tid| _ = cgroups.to_read.remove(tid));
        now
    }
}
