//! In whose pid namespace a call was made: the numbers of tasks that it names are of that.
//!
//! A task stays in the namespace it was made in. That is its maker's, unless clone(2) began a new one, or unshare(2) or
//! setns(2) had chosen another one for what the maker makes. No way leads up
//! again (pid_namespaces(7)). Where the stream does not have all of these calls, only a look at the task itself tells.

use super::calls::Questions;
use super::{Follower, Here};
use crate::event::{Call, TaskId};
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
                Some(_) if self.namespaces_complete => maker.nests,
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

    /// The stream has a gap: any thread may have chosen another namespace in it.
    pub(super) fn forget_namespaces(&mut self) {
        for thread in &mut self.threads {
            thread.nests = thread.nests.filter(|nested| *nested);
        }
    }

    /// Has a look made at the caller, if the call names tasks and it is not known in which namespace that is.
    pub(super) fn ask_namespace(&mut self, here: Here, behavior: &Behavior, call: &mut Call, questions: &mut Questions) {
        let thread = &mut self.threads[here.slot.index()];
        call.pids_are_known = thread.nested == Some(false);
        if thread.nested.is_some() || behavior.pids == 0 && behavior.returns != Returns::Pid {
            return;
        }
        let tid = here.task.tid;
        if !std::mem::replace(&mut thread.was_asked_about, true) || self.asked.contains_key(&tid) {
            questions.tids.push(tid);
        }
    }
}
