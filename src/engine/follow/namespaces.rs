//! In whose pid namespace a call was made: the numbers of tasks that it names are of that. And, where rtrace itself is in
//! one, which tasks the numbers in the fields of tracepoints mean: those are the first namespace's.
//!
//! A task stays in the namespace it was made in. That is its maker's, unless clone(2) began a new one, or unshare(2) or
//! setns(2) had chosen another one for what the maker makes. No way leads up
//! again (pid_namespaces(7)). Where the stream does not have all of these calls, only a look at the task itself tells.

use super::calls::Questions;
use super::{Follower, Here};
use crate::event::{Call, Event, Numbers, TaskId};
use crate::source::Sample;
use crate::syscall::behavior::{Behavior, Returns};
use crate::syscall::special::Special;
use crate::task::tasks::Slot;

/// include/uapi/linux/sched.h
const CLONE_NEWPID: u64 = libc::CLONE_NEWPID as u64;

impl Follower {
    /// A call that may choose another namespace for what its thread makes is entered.
    pub(super) fn may_choose_namespace(&mut self, here: Here, special: Special, args: &[u64; 6]) {
        let chooses = match special {
            Special::Unshare => args[0] & CLONE_NEWPID != 0,
            // 0: whatever the descriptor is of.
            Special::Setns => args[1] == 0 || args[1] & CLONE_NEWPID != 0,
            _ => false,
        };
        let nests = &mut self.threads[here.slot.index()].nests;
        if chooses && *nests == Some(false) {
            *nests = None;
        }
    }

    /// A task was made: `flags` are those of clone(2), if they are known.
    pub(super) fn inherit_namespace(&mut self, from: Slot, parent: TaskId, slot: Slot, child: TaskId, flags: Option<u64>) {
        let maker = &self.threads[from.index()];
        let (nested, nests) = if child.pid == parent.pid {
            (maker.nested, maker.nests)
        } else {
            let nested = match flags {
                Some(flags) if flags & CLONE_NEWPID != 0 => Some(true),
                Some(_) if self.facts.namespaces_complete => maker.nests,
                _ => maker.nests.filter(|nested| *nested),
            };
            (nested, nested)
        };
        let thread = &mut self.threads[slot.index()];
        (thread.nested, thread.nests) = (nested, nests);
    }

    /// What a look at a task said.
    pub(super) fn namespace_is(&mut self, slot: Slot, nested: bool) {
        let thread = &mut self.threads[slot.index()];
        thread.nested = Some(nested);
        if nested {
            thread.nests = Some(true);
        }
    }

    /// The writer of a record has its number here and, among the fields, the kernel's.
    #[cold]
    pub(super) fn learn_number(&mut self, writer: Here, sample: &Sample<'_>, events: &mut Vec<Event>) {
        let (Some(numbers), Some(field)) = (&mut self.numbers, self.writers.get(usize::from(sample.event.0))) else { return };
        let kernels = field.signed(sample.raw) as i32;
        if numbers.learn(writer.task.tid, kernels) && !self.unclaimed.is_empty() {
            self.claim_signals(writer, kernels, events);
        }
    }

    /// The number here of the task that a field of a tracepoint means, if that is known.
    pub(super) fn number_here(&self, kernels: i32) -> Option<i32> {
        match &self.numbers {
            Some(numbers) => numbers.here(kernels),
            None => Some(kernels),
        }
    }

    /// The same of the task that this one says it has just made (`task:task_newtask`). The kernel writes
    /// PERF_RECORD_FORK right before that, with the number here (`copy_process()` in kernel/fork.c).
    pub(super) fn made_by(&mut self, maker: Here, kernels: i32) -> Option<i32> {
        let Some(numbers) = &mut self.numbers else { return Some(kernels) };
        let (_, child) = self.threads[maker.slot.index()].child?;
        let slot = self.tasks.find(child)?;
        if numbers.knows(child) || !self.threads[slot.index()].fresh {
            // It was made earlier, and the record of this one's making is lost.
            return None;
        }
        numbers.learn(child, kernels);
        Some(child)
    }

    /// The stream has a gap: in it, tasks may have ended and their numbers been given to others.
    pub(super) fn forget_numbers(&mut self) {
        let Some(numbers) = &mut self.numbers else { return };
        numbers.forget_all();
        self.unclaimed.clear();
        self.threads.iter_mut().for_each(|thread| thread.child = None);
    }

    /// The stream has a gap: any thread may have chosen another namespace in it.
    pub(super) fn forget_namespaces(&mut self) {
        for thread in &mut self.threads {
            thread.nests = thread.nests.filter(|nested| *nested);
        }
    }

    /// Has a look made at the caller, if the call names tasks and it is not known in which namespace that is.
    pub(super) fn ask_namespace(&mut self, here: Here, behavior: &Behavior, call: &mut Call, questions: &mut Questions) {
        let thread = &mut self.threads[here.slot.index()];
        call.numbers = Numbers::of(thread.nested != Some(false));
        if thread.nested.is_some() || behavior.pids == 0 && behavior.returns != Returns::Pid {
            return;
        }
        let tid = here.task.tid;
        if !std::mem::replace(&mut thread.was_asked_about, true) || self.asked.is_awaited(tid) {
            questions.tids.push(tid);
        }
    }

    /// Finds out which tasks a caller in another pid namespace means. The BPF programs have looked up all numbers but that of
    /// a child that is gone when its parent is told of it (wait4). Without them, only the caller's own children are
    /// known: their forks and the returns of clone(2) say what either side calls them.
    #[cold]
    pub(super) fn translate(&mut self, here: Here, behavior: &Behavior, call: &mut Call) {
        if call.numbers == Numbers::Same {
            return;
        }
        let pid = here.task.pid;
        let returned = call.ret().filter(|&ret| ret > 0 && behavior.returns == Returns::Pid).map(|ret| ret as i32);
        if behavior.special == Special::Clone {
            let made = self.threads[here.slot.index()].child.take().filter(|(time, _)| *time >= call.id.start);
            if let (Some((_, child)), Some(number)) = (made, returned) {
                call.numbers.add(number, child);
                self.children.made(pid, number, child);
            }
        } else if let Some(number) = returned.filter(|&number| call.numbers.task(number).is_none())
            && let Some((child, _)) = self.child_called(pid, number)
        {
            call.numbers.add(number, child);
        }
        if self.facts.bpf.is_none()
            && let Some(args) = call.args
        {
            for number in (0..6).filter(|i| behavior.pids & (1 << i) != 0).map(|i| args[i] as i32) {
                // The number of a child that is gone may mean another task by now.
                if let Some((child, false)) = self.child_called(pid, number) {
                    call.numbers.add(number, child);
                }
            }
        }
    }

    /// The child that a process in another namespace was told under `number`, and whether it has ended. The record of its
    /// end may come later than the return of the wait4(2) that its parent made.
    fn child_called(&mut self, pid: i32, number: i32) -> Option<(i32, bool)> {
        let child = self.children.called(pid, number)?;
        let slot = self.tasks.find(child)?;
        let task = self.tasks.at(slot);
        (task.parent == pid).then_some((child, task.ended))
    }
}
