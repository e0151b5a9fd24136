//! Tasks that begin, execute programs and end.

use super::cgroups::CLONE_INTO_CGROUP;
use super::descriptors::CLONE_FILES;
use super::{Follower, RecordContext};
use crate::event::{Abi, Event, EventKind, ExitState, TaskEnd, TaskId, Time};
use crate::session::Scope;
use crate::syscall::gaps::Gaps;
use crate::syscall::pairing::ThreadState;
use crate::syscall::special::Special;
use crate::task::ends;
use crate::task::fds::{FdTableId, SETTLING};
use crate::task::tasks::Slot;

impl Follower {
    /// Returns the slot of a record's task.
    #[inline]
    pub(super) fn slot(&mut self, task: TaskId, time: Time) -> Slot {
        match self.tasks.find(task.tid) {
            Some(slot) if self.tasks.at(slot).id == task => slot,
            _ => self.appear(task, time),
        }
    }

    /// Adds a task that began unseen.
    #[cold]
    pub(super) fn appear(&mut self, task: TaskId, time: Time) -> Slot {
        let slot = self.begin(task, self.stream.abi);
        self.cgroup_of_unknown_task(slot, time);
        if self.stream.descriptors {
            let table = self.tables.add_existing(task.pid, Time(time.0 + SETTLING));
            self.threads[slot.index()].table = Some(table);
        }
        slot
    }

    /// Adds a new task; the previous task with its tid has ended.
    fn begin(&mut self, task: TaskId, abi: Abi) -> Slot {
        if let Some(slot) = self.tasks.find(task.tid).filter(|&slot| !self.tasks.at(slot).ended) {
            let before = self.tasks.at(slot).id;
            self.stale_calls.extend(self.threads[slot.index()].open.take().map(|open| (before, slot, open)));
            self.remove_task(slot);
        }
        let slot = self.tasks.begin(task, abi);
        if self.threads.len() <= slot.index() {
            self.threads.resize_with(slot.index() + 1, ThreadState::default);
        }
        let excluded = self.stream.is_excluded(task);
        self.threads[slot.index()] = ThreadState::new(excluded);
        self.ends.begin(task.pid);
        slot
    }

    /// Handles PERF_RECORD_FORK; `parent` is the thread that created the child.
    pub(super) fn fork(&mut self, child: TaskId, parent: TaskId, time: Time, cpu: u32, events: &mut Vec<Event>) {
        let slot = self.slot(parent, time);
        if self.add_child(RecordContext { time, cpu, task: parent, slot }, child) && !self.stream.new_tasks {
            self.emit_fork(RecordContext { time, cpu, task: parent, slot }, child, None, events);
        }
    }

    /// Adds a child of a thread; returns `false` if it is known already.
    fn add_child(&mut self, context: RecordContext, child: TaskId) -> bool {
        let RecordContext { time, cpu, task: parent, slot: from } = context;
        if self.tasks.find(child.tid).is_some_and(|slot| self.is_new(slot, child)) {
            // Two perf events report the same fork.
            return false;
        }
        let (abi, comm) = (self.tasks.at(from).abi, self.tasks.at(from).comm().cloned());
        let slot = self.begin(child, abi);
        self.tasks.at_mut(slot).parent = parent.pid;
        self.cgroup_of_child(from, slot, time);
        if let Some(comm) = comm {
            self.tasks.set_shared_comm(slot, time, comm);
        }
        self.inherit_namespace(from, parent, slot, child, None);
        self.threads[from.index()].child = Some((time, child.tid));
        let table = self.threads[from.index()].table.map(|table| self.table_of_child(table, from, child, parent, time));
        let mark = self.gaps.mark(cpu);
        let thread = &mut self.threads[slot.index()];
        (thread.fresh, thread.created, thread.mark, thread.table) = (true, Some(time), mark, table);
        if child.pid != parent.pid && self.stream.follows_maps {
            self.maps.fork(parent.pid, child.pid);
        }
        true
    }

    /// Returns whether this task was created and has done nothing yet.
    fn is_new(&self, slot: Slot, task: TaskId) -> bool {
        self.threads[slot.index()].fresh && self.tasks.at(slot).id == task && !self.tasks.at(slot).ended
    }

    /// Returns the descriptor table of a new task, as long as its clone flags are not known.
    fn table_of_child(&mut self, table: FdTableId, from: Slot, child: TaskId, parent: TaskId, time: Time) -> FdTableId {
        if child.pid == parent.pid {
            return self.tables.share(table);
        }
        let open = self.threads[from.index()].open.as_ref();
        let entered = open.filter(|open| open.behavior.special == Special::Clone).map(|open| open.call.id.start);
        self.tables.copy(table, child.pid, entered, time)
    }

    /// Handles task_newtask, which the parent writes after PERF_RECORD_FORK.
    pub(super) fn new_task(&mut self, context: RecordContext, tid: i32, comm: &[u8], flags: u64, events: &mut Vec<Event>) {
        let is_thread = flags & libc::CLONE_THREAD as u64 != 0;
        let child = TaskId { pid: if is_thread { context.task.pid } else { tid }, tid };
        let known = self.tasks.find(tid).filter(|&slot| self.is_new(slot, child));
        let slot = match known {
            Some(slot) => slot,
            None => {
                self.add_child(context, child);
                self.slot(child, context.time)
            }
        };
        self.tasks.set_comm(slot, context.time, comm);
        if flags & CLONE_INTO_CGROUP != 0 {
            self.invalidate_cgroup(slot, context.time);
        }
        self.inherit_namespace(context.slot, context.task, slot, child, Some(flags));
        if self.stream.descriptors {
            self.table_by_flags(context, slot, is_thread, flags & CLONE_FILES != 0);
        }
        self.emit_fork(context, child, Some(flags), events);
    }

    /// Corrects the child's descriptor table. The fork record does not say whether the table is shared; threads are
    /// assumed to share it, and processes to copy it.
    fn table_by_flags(&mut self, context: RecordContext, slot: Slot, is_thread: bool, shares: bool) {
        if shares == is_thread {
            return;
        }
        let parents = self.threads[context.slot.index()].table;
        let Some(table) = self.threads[slot.index()].table else { return };
        self.tables.leave(table);
        let table = match parents.filter(|_| shares) {
            Some(parents) => self.tables.share(parents),
            None => self.tables.add_private(),
        };
        self.threads[slot.index()].table = Some(table);
    }

    /// Emits the creation of a child, unless the parent is excluded or runs rtrace's own code.
    fn emit_fork(&mut self, context: RecordContext, child: TaskId, flags: Option<u64>, events: &mut Vec<Event>) {
        let thread = &self.threads[context.slot.index()];
        if !thread.excluded && !thread.set_up {
            self.emit(context, EventKind::Fork { child, flags }, 0, events);
        }
    }

    /// Handles sched_process_exec: the thread that called execve, `old_tid`, continues as the leader.
    pub(super) fn exec(&mut self, context: RecordContext, path: &[u8], old_tid: i32, events: &mut Vec<Event>) {
        let caller = if old_tid == context.task.tid { None } else { self.tasks.find(old_tid) };
        if let Some(caller) = caller.filter(|&slot| self.tasks.at(slot).id.pid == context.task.pid) {
            self.become_leader(context, caller, events);
        }
        self.revive(context);
        self.threads[context.slot.index()].executing = None;
        self.add_exec_path(context, path);
        self.ends.exec(context.task.pid);
        self.exec_descriptors(context);
        self.emit(context, EventKind::Exec { path: path.into(), old_tid }, 0, events);
    }

    /// Moves the state of the thread that called execve to the leader.
    fn become_leader(&mut self, context: RecordContext, caller: Slot, events: &mut Vec<Event>) {
        let old = std::mem::take(&mut self.threads[caller.index()]);
        if let Some(pids) = &mut self.kernel_pids {
            pids.forget(self.tasks.at(caller).id.tid);
        }
        self.tasks.end(caller);
        if let Some(open) = self.threads[context.slot.index()].open.take() {
            self.emit_without_exit(context, open, ExitState::Never, events);
        }
        let leader = &mut self.threads[context.slot.index()];
        leader.excluded |= old.excluded;
        if let Some(table) = leader.table.take() {
            self.tables.leave(table);
        }
        (leader.open, leader.mark, leader.table) = (old.open, old.mark, old.table);
    }

    /// Marks a leader as alive that was reported as ended when the executing thread took its place.
    pub(super) fn revive(&mut self, context: RecordContext) {
        if self.tasks.at(context.slot).ended {
            let thread = std::mem::take(&mut self.threads[context.slot.index()]);
            let abi = self.tasks.at(context.slot).abi;
            let slot = self.begin(context.task, abi);
            self.threads[slot.index()] = thread;
        }
    }

    /// Replaces the descriptor table after an execve.
    fn exec_descriptors(&mut self, context: RecordContext) {
        if !self.stream.descriptors {
            return;
        }
        if let Some(mut open) = self.threads[context.slot.index()].open.take() {
            self.descriptors_without_exit(context, &mut open);
            open.uses.clear();
            (open.changes, open.table) = (false, None);
            self.threads[context.slot.index()].open = Some(open);
        }
        let old = self.threads[context.slot.index()].table;
        let new = match old {
            Some(old) => self.tables.replace(old, context.task.pid, context.time),
            None => self.tables.add_existing(context.task.pid, context.time),
        };
        self.threads[context.slot.index()].table = Some(new);
        let inherited = self.command.take_fds(context.task);
        inherited.iter().for_each(|(fd, path)| self.tables.inherited(new, *fd, path, context.time));
    }

    /// Handles PERF_RECORD_EXIT: the task has ended; or it has just executed a program with more privileges, and the
    /// kernel has removed its perf events (begin_new_exec in fs/exec.c).
    pub(super) fn exit_record(&mut self, context: RecordContext, events: &mut Vec<Event>) {
        let now = self.gaps.mark(context.cpu);
        let executing = self.threads[context.slot.index()].executing.take();
        if executing.is_none_or(|since| !Gaps::none_between(since, now)) {
            return self.task_end(context, events);
        }
        if self.stream.bpf.is_some() {
            // The BPF programs still record its calls and its end.
            return;
        }
        if let Some(open) = self.threads[context.slot.index()].open.take() {
            self.emit_without_exit(context, open, ExitState::Unseen, events);
        }
        let end = match self.remove_task(context.slot) {
            TaskEnd::Unknown => TaskEnd::NotTraced,
            known => known,
        };
        self.emit_end(context, end, events);
    }

    /// Handles the end of a task.
    pub(super) fn task_end(&mut self, context: RecordContext, events: &mut Vec<Event>) {
        if self.tasks.at(context.slot).ended {
            return;
        }
        if let Some(open) = self.threads[context.slot.index()].open.take() {
            self.emit_without_exit(context, open, ExitState::Never, events);
        }
        let end = self.remove_task(context.slot);
        self.emit_end(context, end, events);
    }

    /// Emits the end of a task. The event waits until it is completely known how the task ended.
    fn emit_end(&mut self, context: RecordContext, end: TaskEnd, events: &mut Vec<Event>) {
        self.forget_call_events(context.task.tid, events);
        let thread = &self.threads[context.slot.index()];
        if thread.excluded || thread.set_up {
            return;
        }
        let is_command = self.command.is(context.task);
        let waits = ends::is_incomplete(end) && (is_command || self.stream.bpf.is_some() && self.stream.scope != Scope::System);
        if waits && is_command {
            self.command.end_waits(self.outbox.next());
        } else if waits {
            self.reported.end_waits(context.task.tid, &self.outbox);
        }
        self.emit(context, EventKind::Exit(end), u32::from(waits), events);
    }

    /// Handles the BPF programs' record of how a task ended. It is written before PERF_RECORD_EXIT, or after it (up to
    /// Linux 6.16, if the kernel has the fix "perf: Fix sample vs do_exit()" of 2025).
    pub(super) fn end_reported(&mut self, context: RecordContext, tid: i32, status: i32, events: &mut Vec<Event>) {
        if let Some(ticket) = self.reported.take_end(tid, &self.outbox) {
            return self.outbox.set_task_end(ticket, ends::of_status(status), events);
        }
        self.ends.exit_code(tid, status);
        self.task_end(context, events);
    }

    /// Removes the state of a task that has ended.
    fn remove_task(&mut self, slot: Slot) -> TaskEnd {
        let task = self.tasks.at(slot);
        if task.ended {
            return TaskEnd::Unknown;
        }
        let id = task.id;
        self.tasks.end(slot);
        if let Some(pids) = &mut self.kernel_pids {
            pids.forget(id.tid);
        }
        if let Some(table) = self.threads[slot.index()].table.take() {
            self.tables.leave(table);
            if id.pid == id.tid {
                self.tables.end_process(id.pid);
            }
        }
        let end = self.ends.end(id.pid, id.tid);
        // Other threads can outlive the leader, and still have call chains.
        if !self.ends.has_threads(id.pid) {
            self.child_pids.forget(id.pid);
            if self.stream.follows_maps {
                self.forget_maps(id.pid);
            }
        }
        end
    }

    /// Handles the start of the command, which runs rtrace's own code until its execve.
    pub(super) fn spawned(&mut self, task: TaskId, path: &[u8], fds: &[(i32, Vec<u8>)], nested: bool, time: Time) {
        let slot = self.slot(task, time);
        let thread = &mut self.threads[slot.index()];
        (thread.set_up, thread.nested, thread.children_nested) = (true, Some(nested), Some(nested));
        self.command.spawned(task, path, fds);
    }

    /// Ends the command's set-up, whether its execve was seen or not.
    pub(super) fn command_begun(&mut self, task: TaskId, comm: &[u8], time: Time) {
        let Some(slot) = self.tasks.find(task.tid).filter(|&slot| self.tasks.at(slot).id == task) else { return };
        self.threads[slot.index()].set_up = false;
        self.command.began(time);
        self.tasks.set_comm(slot, time, comm);
    }

    /// Returns the slot of a task that was read from /proc, and adds the task if it is unknown.
    pub(super) fn slot_from_proc(&mut self, task: TaskId, time: Time) -> Slot {
        match self.tasks.find(task.tid) {
            Some(slot) if self.tasks.at(slot).id == task && !self.tasks.at(slot).ended => slot,
            _ => self.appear(task, time),
        }
    }
}
