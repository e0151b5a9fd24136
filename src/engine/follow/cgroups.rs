//! Which cgroup each task is in.
//!
//! Nothing is guessed: a task's cgroup is what a look at /proc said, or its parent's at the fork, and holds until an event says that it was moved. Where moves
//! are not seen (there is no such event, or records were lost), it is unknown until the next look.

use super::Follower;
use crate::event::{TaskId, Time};
use crate::kernel::cgroups;
use crate::session::{Role, Session};
use crate::syscall::layout::CgroupMoveLayout;
use crate::task::stays::Cgroup;
use crate::task::tasks::{Slot, Task};
use rustc_hash::{FxHashMap, FxHashSet};

/// The flag of clone3(2) that puts the child into another cgroup than its parent's (include/uapi/linux/sched.h).
pub const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// So many tasks are asked for in one round.
const LOOKS_MAX: usize = 256;
/// So many moves of tasks that are not followed are remembered: such a task may come into the cgroup that is traced.
const STRANGERS_MAX: usize = 4_096;

/// What is known beside the tasks' own states.
pub struct Cgroups {
    /// Moves are seen, so a child is where its parent was.
    moves: bool,
    names: Names,
    /// Numbers in moves are those of another pid namespace: who was moved is not known.
    of_others_numbers: bool,
    to_ask: FxHashSet<i32>,
    /// Where tasks went that the stream had not told of.
    strangers: FxHashMap<i32, Option<Cgroup>>,
}

impl Cgroups {
    pub fn new(session: &Session) -> Cgroups {
        let moves = session.events.find(Role::CgroupMove).is_some();
        let names = Names {
            known: session.cgroups.iter().map(|(id, path)| (*id, path.as_slice().into())).collect(),
            root: session.cgroups_from_root.then(Vec::new),
        };
        let of_others_numbers = session.fields_have_other_numbers;
        Cgroups { moves, names, of_others_numbers, to_ask: FxHashSet::default(), strangers: FxHashMap::default() }
    }
}

/// What looks call the cgroups that moves name as the kernel does.
struct Names {
    /// In a cgroup namespace, by the numbers of cgroups: those that were there at the start.
    known: FxHashMap<u64, Cgroup>,
    /// What the kernel calls the root of the namespace, when a move into one of these has told.
    root: Option<Vec<u8>>,
}

impl Names {
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
    /// A child begins where the thread is that made it.
    pub(super) fn cgroup_of_child(&mut self, parent: Slot, child: Slot, time: Time) {
        let Some(cgroups) = &mut self.cgroups else { return };
        let cgroup = if cgroups.moves { self.tasks.at(parent).stays.last().cloned() } else { None };
        self.begin_in_cgroup(child, time, cgroup);
    }

    /// A task that nobody saw begin.
    pub(super) fn cgroup_of_stranger(&mut self, slot: Slot, time: Time) {
        let Some(cgroups) = &mut self.cgroups else { return };
        let TaskId { pid, tid } = self.tasks.at(slot).id;
        let moved = cgroups.strangers.remove(&tid).or_else(|| cgroups.strangers.get(&pid).cloned()).flatten();
        self.begin_in_cgroup(slot, time, moved);
    }

    fn begin_in_cgroup(&mut self, slot: Slot, time: Time, cgroup: Option<Cgroup>) {
        let task = self.tasks.at_mut(slot);
        if let (None, Some(cgroups)) = (&cgroup, &mut self.cgroups) {
            cgroups.to_ask.insert(task.id.tid);
        }
        task.stays.begin(time, cgroup);
    }

    /// It is not where it would be expected.
    pub(super) fn doubt_cgroup(&mut self, slot: Slot, time: Time) {
        let Some(cgroups) = &mut self.cgroups else { return };
        let task = self.tasks.at_mut(slot);
        task.stays.moved(time, None);
        cgroups.to_ask.insert(task.id.tid);
    }

    /// What a look found. Whoever was moved since then is known to be elsewhere.
    pub(super) fn cgroup_seen(&mut self, task: TaskId, cgroup: Option<&[u8]>) {
        if let (Some(_), Some(cgroup)) = (&self.cgroups, cgroup)
            && let Some(slot) = self.tasks.find(task.tid).filter(|&slot| self.tasks.at(slot).id == task)
        {
            self.tasks.at_mut(slot).stays.found(cgroup.into());
        }
    }

    /// Somebody moved a task, or a whole process, which the event does not tell apart: its other threads are asked for.
    pub(super) fn cgroup_changed(&mut self, layout: CgroupMoveLayout, raw: &[u8], time: Time) {
        let Some(cgroups) = &mut self.cgroups else { return };
        if cgroups.of_others_numbers {
            return self.forget_cgroups(time);
        }
        let (tid, path) = (layout.pid.signed(raw) as i32, layout.path.far_text(raw));
        // What is in the unified hierarchy's root is looked for in others, and so is what was moved in those.
        let is_told = layout.root.signed(raw) == 0 && !path.is_empty();
        let cgroup = is_told.then(|| cgroups.names.of(layout.id.unsigned(raw), path)).flatten().filter(|name| **name != *b"/");
        let is_other = |task: &Task| !task.ended && task.id.pid == tid && task.id.tid != tid;
        let others: Vec<Slot> = self.tasks.slots().filter(|&slot| is_other(self.tasks.at(slot))).collect();
        others.into_iter().for_each(|slot| self.doubt_cgroup(slot, time));
        match self.tasks.find(tid).filter(|&slot| !self.tasks.at(slot).ended) {
            Some(slot) if cgroup.is_some() => self.tasks.at_mut(slot).stays.moved(time, cgroup),
            Some(slot) => self.doubt_cgroup(slot, time),
            None => self.cgroup_of_unknown(tid, cgroup),
        }
    }

    fn cgroup_of_unknown(&mut self, tid: i32, cgroup: Option<Cgroup>) {
        let Some(cgroups) = &mut self.cgroups else { return };
        if cgroups.strangers.len() == STRANGERS_MAX {
            cgroups.strangers.clear();
        }
        cgroups.strangers.insert(tid, cgroup);
    }

    /// Records were lost, and moves may be among them.
    pub(super) fn forget_cgroups(&mut self, time: Time) {
        let Some(cgroups) = &mut self.cgroups else { return };
        cgroups.strangers.clear();
        let living: Vec<Slot> = self.tasks.slots().filter(|&slot| !self.tasks.at(slot).ended).collect();
        living.into_iter().for_each(|slot| self.doubt_cgroup(slot, time));
    }

    /// The tasks whose cgroup is to be looked at now.
    pub(super) fn cgroups_to_ask(&mut self) -> Vec<i32> {
        let Some(cgroups) = &mut self.cgroups else { return Vec::new() };
        let now: Vec<i32> = cgroups.to_ask.iter().copied().take(LOOKS_MAX).collect();
        now.iter().for_each(|tid| _ = cgroups.to_ask.remove(tid));
        now
    }
}
