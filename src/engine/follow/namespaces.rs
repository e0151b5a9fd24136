//! The pid namespace of each caller, which the pids in its calls belong to; and the translation of pids in the fields
//! of tracepoints, which belong to the initial pid namespace, if rtrace is in another one.
//!
//! A task stays in the pid namespace that it was created in. That is its parent's, unless clone(2) created a new one,
//! or the parent had chosen another one for its children by unshare(2) or setns(2). Only descendant namespaces can be
//! chosen (pid_namespaces(7)). If the stream does not have all of these calls, the namespace has to be read from /proc.

use super::calls::Lookups;
use super::{Follower, RecordContext};
use crate::event::{Call, Event, PidTranslation, TaskId};
use crate::source::Sample;
use crate::syscall::behavior::{Behavior, Returns};
use crate::syscall::special::Special;
use crate::task::tasks::Slot;

/// include/uapi/linux/sched.h
const CLONE_NEWPID: u64 = libc::CLONE_NEWPID as u64;

impl Follower {
    /// Handles the entry of a call that may choose another namespace for the caller's children.
    pub(super) fn may_choose_namespace(&mut self, context: RecordContext, special: Special, args: &[u64; 6]) {
        let chooses = match special {
            Special::Unshare => args[0] & CLONE_NEWPID != 0,
            // 0 allows a descriptor of any kind of namespace.
            Special::Setns => args[1] == 0 || args[1] & CLONE_NEWPID != 0,
            _ => false,
        };
        let children_nested = &mut self.threads[context.slot.index()].children_nested;
        if chooses && *children_nested == Some(false) {
            *children_nested = None;
        }
    }

    /// Sets the namespace of a new task; `flags` are those of clone(2), if they are known.
    pub(super) fn inherit_namespace(&mut self, from: Slot, parent: TaskId, slot: Slot, child: TaskId, flags: Option<u64>) {
        let creator = &self.threads[from.index()];
        let (nested, children_nested) = if child.pid == parent.pid {
            (creator.nested, creator.children_nested)
        } else {
            let nested = match flags {
                Some(flags) if flags & CLONE_NEWPID != 0 => Some(true),
                Some(_) if self.stream.namespaces_complete => creator.children_nested,
                _ => creator.children_nested.filter(|nested| *nested),
            };
            (nested, nested)
        };
        let thread = &mut self.threads[slot.index()];
        (thread.nested, thread.children_nested) = (nested, children_nested);
    }

    /// Stores the namespace that was read from /proc.
    pub(super) fn set_namespace(&mut self, slot: Slot, nested: bool) {
        let thread = &mut self.threads[slot.index()];
        thread.nested = Some(nested);
        if nested {
            thread.children_nested = Some(true);
        }
    }

    /// Learns the pids of the task that wrote a record: its pid in rtrace's namespace, and the kernel's in a field.
    #[cold]
    pub(super) fn learn_kernel_pid(&mut self, writer: RecordContext, sample: &Sample<'_>, events: &mut Vec<Event>) {
        let (Some(pids), Some(field)) = (&mut self.kernel_pids, self.writer_fields.get(usize::from(sample.event.0))) else { return };
        let kernel_pid = field.signed(sample.raw) as i32;
        if pids.learn(writer.task.tid, kernel_pid) && !self.unclaimed_signals.is_empty() {
            self.claim_signals(writer, kernel_pid, events);
        }
    }

    /// Returns the pid in rtrace's namespace for a pid in a field of a tracepoint, if it is known.
    pub(super) fn translate_pid(&self, kernel_pid: i32) -> Option<i32> {
        match &self.kernel_pids {
            Some(pids) => pids.tid(kernel_pid),
            None => Some(kernel_pid),
        }
    }

    /// Returns the pid in rtrace's namespace of a task that this one has just created (`task:task_newtask`). The kernel
    /// writes PERF_RECORD_FORK right before that record, with this pid (`copy_process()` in kernel/fork.c).
    pub(super) fn created_child(&mut self, creator: RecordContext, kernel_pid: i32) -> Option<i32> {
        let Some(pids) = &mut self.kernel_pids else { return Some(kernel_pid) };
        let (_, child) = self.threads[creator.slot.index()].child?;
        let slot = self.tasks.find(child)?;
        if pids.knows(child) || !self.threads[slot.index()].fresh {
            // That child was created earlier: the fork record of this one was lost.
            return None;
        }
        pids.learn(child, kernel_pid);
        Some(child)
    }

    /// Forgets all translations, because tasks may have ended and their pids may have been reused in a gap.
    pub(super) fn forget_kernel_pids(&mut self) {
        let Some(pids) = &mut self.kernel_pids else { return };
        pids.forget_all();
        self.unclaimed_signals.clear();
        self.threads.iter_mut().for_each(|thread| thread.child = None);
    }

    /// Forgets the namespaces of future children, because any thread may have chosen another one in a gap.
    pub(super) fn forget_namespaces(&mut self) {
        for thread in &mut self.threads {
            thread.children_nested = thread.children_nested.filter(|nested| *nested);
        }
    }

    /// Requests a read of the caller if the call names tasks, and the caller's namespace is not known.
    pub(super) fn request_namespace(&mut self, context: RecordContext, behavior: &Behavior, call: &mut Call, lookups: &mut Lookups) {
        let thread = &mut self.threads[context.slot.index()];
        call.pids = PidTranslation::of(thread.nested != Some(false));
        if thread.nested.is_some() || behavior.pids == 0 && behavior.returns != Returns::Pid {
            return;
        }
        let tid = context.task.tid;
        if !std::mem::replace(&mut thread.read_requested, true) || self.task_reads.is_awaited(tid) {
            lookups.tids.push(tid);
        }
    }

    /// Translates the pids of a caller in another pid namespace. The BPF programs have translated all of them, except
    /// that of a child that has ended before its parent's wait4 returns its pid. Without these programs only the
    /// caller's own children can be translated: their forks have one pid, and the returns of clone(2) the other.
    #[cold]
    pub(super) fn translate(&mut self, context: RecordContext, behavior: &Behavior, call: &mut Call) {
        let has_pids = behavior.pids != 0 || behavior.returns == Returns::Pid || behavior.special == Special::Clone;
        if call.pids == PidTranslation::Same || !has_pids {
            return;
        }
        let pid = context.task.pid;
        let returned = call.ret().filter(|&ret| ret > 0 && behavior.returns == Returns::Pid).map(|ret| ret as i32);
        if behavior.special == Special::Clone {
            let created = self.threads[context.slot.index()].child.take().filter(|(time, _)| *time >= call.id.start);
            if let (Some((_, child)), Some(number)) = (created, returned) {
                call.pids.add(number, child);
                self.child_pids.insert(pid, number, child);
            }
        } else if let Some(number) = returned.filter(|&number| call.pids.task(number).is_none())
            && let Some((child, _)) = self.child_known_as(pid, number)
        {
            call.pids.add(number, child);
        }
        if self.stream.bpf.is_none()
            && let Some(args) = call.args
        {
            for number in (0..6).filter(|i| behavior.pids & (1 << i) != 0).map(|i| args[i] as i32) {
                // The pid of an ended child may have been reused.
                if let Some((child, false)) = self.child_known_as(pid, number) {
                    call.pids.add(number, child);
                }
            }
        }
    }

    /// Returns the child that a process in another namespace knows as `number`, and whether it has ended. The record of
    /// its end can be later than the return of its parent's wait4(2).
    fn child_known_as(&mut self, pid: i32, number: i32) -> Option<(i32, bool)> {
        let child = self.child_pids.get(pid, number)?;
        let slot = self.tasks.find(child)?;
        let task = self.tasks.at(slot);
        (task.parent == pid).then_some((child, task.ended))
    }
}
