//! Tasks that begin, execute and end.

use super::cgroups::CLONE_INTO_CGROUP;
use super::descriptors::CLONE_FILES;
use super::{Follower, Here};
use crate::event::{Abi, Event, Exit, TaskEnd, TaskId, Time, What};
use crate::session::Scope;
use crate::syscall::gaps::Gaps;
use crate::syscall::pairing::Thread;
use crate::syscall::special::Special;
use crate::task::ends;
use crate::task::fds::{SETTLING, TableId};
use crate::task::tasks::Slot;

impl Follower {
    /// The slot of the task that a record is of.
    #[inline]
    pub(super) fn slot(&mut self, task: TaskId, time: Time) -> Slot {
        match self.tasks.find(task.tid) {
            Some(slot) if self.tasks.at(slot).id == task => slot,
            _ => self.appear(task, time),
        }
    }

    /// A task that nobody saw begin.
    #[cold]
    pub(super) fn appear(&mut self, task: TaskId, time: Time) -> Slot {
        let slot = self.begin(task, self.facts.abi);
        self.cgroup_of_stranger(slot, time);
        if self.facts.descriptors {
            let table = self.tables.appear(task.pid, Time(time.0 + SETTLING));
            self.threads[slot.index()].table = Some(table);
        }
        slot
    }

    /// A new task; who had its number before is gone.
    fn begin(&mut self, task: TaskId, abi: Abi) -> Slot {
        if let Some(slot) = self.tasks.find(task.tid).filter(|&slot| !self.tasks.at(slot).ended) {
            let before = self.tasks.at(slot).id;
            self.orphans.extend(self.threads[slot.index()].open.take().map(|open| (before, slot, open)));
            self.task_gone(slot);
        }
        let slot = self.tasks.begin(task, abi);
        if self.threads.len() <= slot.index() {
            self.threads.resize_with(slot.index() + 1, Thread::default);
        }
        let excluded = self.facts.is_excluded(task);
        self.threads[slot.index()] = Thread::new(excluded);
        self.ends.begin(task.pid);
        slot
    }

    /// PERF_RECORD_FORK: `parent` is the thread that made the child.
    pub(super) fn fork(&mut self, child: TaskId, parent: TaskId, time: Time, cpu: u32, events: &mut Vec<Event>) {
        let slot = self.slot(parent, time);
        if self.make_child(Here { time, cpu, task: parent, slot }, child) && !self.facts.new_tasks {
            self.give_fork(Here { time, cpu, task: parent, slot }, child, None, events);
        }
    }

    /// A thread made a child; `false` if that is known already.
    fn make_child(&mut self, here: Here, child: TaskId) -> bool {
        let Here { time, cpu, task: parent, slot: from } = here;
        if self.tasks.find(child.tid).is_some_and(|slot| self.is_new(slot, child)) {
            // Two opened events report the same fork.
            return false;
        }
        let (abi, comm) = (self.tasks.at(from).abi, self.tasks.at(from).comm().cloned());
        let slot = self.begin(child, abi);
        self.tasks.at_mut(slot).parent = parent.pid;
        self.cgroup_of_child(from, slot, time);
        if let Some(comm) = comm {
            self.tasks.share_name(slot, time, comm);
        }
        self.inherit_namespace(from, parent, slot, child, None);
        self.threads[from.index()].child = Some((time, child.tid));
        let table = self.threads[from.index()].table.map(|table| self.table_of_child(table, from, child, parent, time));
        let mark = self.gaps.mark(cpu);
        let thread = &mut self.threads[slot.index()];
        (thread.fresh, thread.made, thread.mark, thread.table) = (true, Some(time), mark, table);
        if child.pid != parent.pid && self.facts.follows_maps {
            self.maps.fork(parent.pid, child.pid);
        }
        true
    }

    /// Whether this task was made and did nothing yet.
    fn is_new(&self, slot: Slot, task: TaskId) -> bool {
        self.threads[slot.index()].fresh && self.tasks.at(slot).id == task && !self.tasks.at(slot).ended
    }

    fn table_of_child(&mut self, table: TableId, from: Slot, child: TaskId, parent: TaskId, time: Time) -> TableId {
        if child.pid == parent.pid {
            return self.tables.share(table);
        }
        let open = self.threads[from.index()].open.as_ref();
        let entered = open.filter(|open| open.behavior.special == Special::Clone).map(|open| open.call.id.start);
        self.tables.copy(table, child.pid, entered, time)
    }

    /// task_newtask, which the parent writes after PERF_RECORD_FORK.
    pub(super) fn new_task(&mut self, here: Here, tid: i32, comm: &[u8], flags: u64, events: &mut Vec<Event>) {
        let is_thread = flags & libc::CLONE_THREAD as u64 != 0;
        let child = TaskId { pid: if is_thread { here.task.pid } else { tid }, tid };
        let known = self.tasks.find(tid).filter(|&slot| self.is_new(slot, child));
        let slot = match known {
            Some(slot) => slot,
            None => {
                self.make_child(here, child);
                self.slot(child, here.time)
            }
        };
        self.tasks.name(slot, here.time, comm);
        if flags & CLONE_INTO_CGROUP != 0 {
            self.doubt_cgroup(slot, here.time);
        }
        self.inherit_namespace(here.slot, here.task, slot, child, Some(flags));
        if self.facts.descriptors {
            self.table_by_flags(here, slot, is_thread, flags & CLONE_FILES != 0);
        }
        self.give_fork(here, child, Some(flags), events);
    }

    /// The fork record does not say whether descriptors are shared: threads were taken to share, processes to copy.
    fn table_by_flags(&mut self, here: Here, slot: Slot, is_thread: bool, shares: bool) {
        if shares == is_thread {
            return;
        }
        let parents = self.threads[here.slot.index()].table;
        let Some(table) = self.threads[slot.index()].table else { return };
        self.tables.leave(table);
        let table = match parents.filter(|_| shares) {
            Some(parents) => self.tables.share(parents),
            None => self.tables.apart(),
        };
        self.threads[slot.index()].table = Some(table);
    }

    fn give_fork(&mut self, here: Here, child: TaskId, flags: Option<u64>, events: &mut Vec<Event>) {
        let thread = &self.threads[here.slot.index()];
        if !thread.excluded && !thread.set_up {
            self.give(here, What::Fork { child, flags }, 0, events);
        }
    }

    /// sched_process_exec: the thread that called execve, `old_tid`, goes on as the leader.
    pub(super) fn exec(&mut self, here: Here, path: &[u8], old_tid: i32, events: &mut Vec<Event>) {
        let caller = if old_tid == here.task.tid { None } else { self.tasks.find(old_tid) };
        if let Some(caller) = caller.filter(|&slot| self.tasks.at(slot).id.pid == here.task.pid) {
            self.become_leader(here, caller, events);
        }
        self.revive(here);
        self.threads[here.slot.index()].executing = None;
        self.add_exec_path(here, path);
        self.ends.exec(here.task.pid);
        self.exec_descriptors(here);
        self.give(here, What::Exec { path: path.into(), old_tid }, 0, events);
    }

    fn become_leader(&mut self, here: Here, caller: Slot, events: &mut Vec<Event>) {
        let old = std::mem::take(&mut self.threads[caller.index()]);
        if let Some(numbers) = &mut self.numbers {
            numbers.forget(self.tasks.at(caller).id.tid);
        }
        self.tasks.end(caller);
        if let Some(open) = self.threads[here.slot.index()].open.take() {
            self.give_without_exit(here, open, Exit::Never, events);
        }
        let leader = &mut self.threads[here.slot.index()];
        leader.excluded |= old.excluded;
        if let Some(table) = leader.table.take() {
            self.tables.leave(table);
        }
        (leader.open, leader.mark, leader.table) = (old.open, old.mark, old.table);
    }

    /// The leader may have been reported gone, when the thread that executes took its place.
    pub(super) fn revive(&mut self, here: Here) {
        if self.tasks.at(here.slot).ended {
            let thread = std::mem::take(&mut self.threads[here.slot.index()]);
            let abi = self.tasks.at(here.slot).abi;
            let slot = self.begin(here.task, abi);
            self.threads[slot.index()] = thread;
        }
    }

    fn exec_descriptors(&mut self, here: Here) {
        if !self.facts.descriptors {
            return;
        }
        if let Some(mut open) = self.threads[here.slot.index()].open.take() {
            self.descriptors_without_exit(here, &mut open);
            open.uses.clear();
            (open.changes, open.table) = (false, None);
            self.threads[here.slot.index()].open = Some(open);
        }
        let old = self.threads[here.slot.index()].table;
        let new = match old {
            Some(old) => self.tables.replace(old, here.task.pid, here.time),
            None => self.tables.appear(here.task.pid, here.time),
        };
        self.threads[here.slot.index()].table = Some(new);
        let inherited = self.command.take_fds(here.task);
        inherited.iter().for_each(|(fd, path)| self.tables.inherited(new, *fd, path, here.time));
    }

    /// PERF_RECORD_EXIT: the task is gone; or it has a program with more rights since a moment, and is watched no more (begin_new_exec in fs/exec.c).
    pub(super) fn watch_ends(&mut self, here: Here, events: &mut Vec<Event>) {
        let now = self.gaps.mark(here.cpu);
        let executing = self.threads[here.slot.index()].executing.take();
        if executing.is_none_or(|since| !Gaps::none_between(since, now)) {
            return self.task_end(here, events);
        }
        if self.facts.bpf.is_some() {
            // Its calls come all the same, and its end.
            return;
        }
        if let Some(open) = self.threads[here.slot.index()].open.take() {
            self.give_without_exit(here, open, Exit::Unseen, events);
        }
        let end = match self.task_gone(here.slot) {
            TaskEnd::Unknown => TaskEnd::NotTraced,
            known => known,
        };
        self.give_end(here, end, events);
    }

    /// A task is gone.
    pub(super) fn task_end(&mut self, here: Here, events: &mut Vec<Event>) {
        if self.tasks.at(here.slot).ended {
            return;
        }
        if let Some(open) = self.threads[here.slot.index()].open.take() {
            self.give_without_exit(here, open, Exit::Never, events);
        }
        let end = self.task_gone(here.slot);
        self.give_end(here, end, events);
    }

    fn give_end(&mut self, here: Here, end: TaskEnd, events: &mut Vec<Event>) {
        let thread = &self.threads[here.slot.index()];
        if thread.excluded || thread.set_up {
            return;
        }
        let is_command = self.command.is(here.task);
        let waits = end == TaskEnd::Unknown && (is_command || self.facts.bpf.is_some() && self.facts.scope != Scope::System);
        if waits && is_command {
            self.command.end_waits(self.outbox.next());
        } else if waits {
            self.told.end_waits(here.task.tid, &self.outbox);
        }
        self.give(here, What::Exit(end), u32::from(waits), events);
    }

    /// The BPF programs tell how a task ends: before its PERF_RECORD_EXIT, or after it (from Linux 6.16 down, where the fix of 2025 "perf: Fix sample vs do_exit()" is).
    pub(super) fn end_told(&mut self, here: Here, tid: i32, status: i32, events: &mut Vec<Event>) {
        if let Some(ticket) = self.told.take_end(tid, &self.outbox) {
            return self.outbox.end_known(ticket, ends::of_status(status), events);
        }
        self.ends.told(tid, status);
        self.task_end(here, events);
    }

    /// Forgets what a living task has.
    fn task_gone(&mut self, slot: Slot) -> TaskEnd {
        let task = self.tasks.at(slot);
        if task.ended {
            return TaskEnd::Unknown;
        }
        let id = task.id;
        self.tasks.end(slot);
        if let Some(numbers) = &mut self.numbers {
            numbers.forget(id.tid);
        }
        if let Some(table) = self.threads[slot.index()].table.take() {
            self.tables.leave(table);
            if id.pid == id.tid {
                self.tables.end_process(id.pid);
            }
        }
        let end = self.ends.end(id.pid, id.tid);
        // Other threads may outlive the first one, and have stacks.
        if !self.ends.has_threads(id.pid) {
            self.children.forget(id.pid);
            if self.facts.follows_maps {
                self.forget_maps(id.pid);
            }
        }
        end
    }

    /// The command was made: until it executes, it runs rtrace's own code.
    pub(super) fn spawned(&mut self, task: TaskId, path: &[u8], fds: &[(i32, Vec<u8>)], nested: bool, time: Time) {
        let slot = self.slot(task, time);
        let thread = &mut self.threads[slot.index()];
        (thread.set_up, thread.nested, thread.nests) = (true, Some(nested), Some(nested));
        self.command.spawned(task, path, fds);
    }

    /// The command is no longer rtrace's own code, whether its call was seen or not.
    pub(super) fn command_begun(&mut self, task: TaskId, comm: &[u8], time: Time) {
        let Some(slot) = self.tasks.find(task.tid).filter(|&slot| self.tasks.at(slot).id == task) else { return };
        self.threads[slot.index()].set_up = false;
        self.command.began(time);
        self.tasks.name(slot, time, comm);
    }

    /// The slot of a task that a look found: a new one, unless the stream knows it.
    pub(super) fn slot_for_look(&mut self, task: TaskId, time: Time) -> Slot {
        match self.tasks.find(task.tid) {
            Some(slot) if self.tasks.at(slot).id == task && !self.tasks.at(slot).ended => slot,
            _ => self.appear(task, time),
        }
    }
}
