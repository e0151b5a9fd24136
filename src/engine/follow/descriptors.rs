//! What calls do with descriptors: uses, changes, new ones.

use super::calls::{Questions, add_file};
use super::{Follower, Here};
use crate::event::{Call, FdPlace, Time};
use crate::syscall::behavior::Returns;
use crate::syscall::pairing::Open;
use crate::syscall::special::Special;
use crate::task::fds::{Answer, SETTLING, Use};
use crate::task::tasks::Slot;

/// CLONE_FILES, of unshare(2) (include/uapi/linux/sched.h).
pub(super) const CLONE_FILES: u64 = 0x400;
/// CLOSE_RANGE_UNSHARE and CLOSE_RANGE_CLOEXEC (include/uapi/linux/close_range.h).
const CLOSE_RANGE_UNSHARE: u64 = 2;
const CLOSE_RANGE_CLOEXEC: u64 = 4;
/// SECCOMP_IOCTL_NOTIF_ADDFD (include/uapi/linux/seccomp.h): puts a descriptor into another process.
const SECCOMP_ADDFD: u32 = 0x4018_2103;

impl Follower {
    pub(super) fn descriptors_at_entry(&mut self, here: Here, open: &mut Open, args: &[u64; 6]) {
        let Some(table) = open.table else { return };
        let behavior = open.behavior;
        for i in (0..6).filter(|i| behavior.fds & (1 << i) != 0) {
            let unproved = behavior.unproved & (1 << i) != 0;
            if let Some(using) = self.tables.enter(table, FdPlace::Arg(i), args[usize::from(i)] as i32, here.time, unproved) {
                open.uses.push(using);
            }
        }
        let fd = |i: usize| args[i] as i32;
        let changed = match behavior.special {
            Special::Close => Some((fd(0), fd(0))),
            Special::DupTo => Some((fd(1), fd(1))),
            Special::CloseRange if args[2] & CLOSE_RANGE_CLOEXEC == 0 => Some((clamped(args[0]), clamped(args[1]))),
            Special::Execve | Special::Execveat => Some((0, i32::MAX)),
            _ => None,
        };
        if let Some((first, last)) = changed.filter(|(first, _)| *first >= 0) {
            self.tables.begin_change(table, here.task.tid, first, last, &mut open.uses);
            open.changes = true;
        }
        self.beyond_one_descriptor(here, open, args);
    }

    /// Calls that concern whole tables, or those of others.
    fn beyond_one_descriptor(&mut self, here: Here, open: &Open, args: &[u64; 6]) {
        let Some(table) = open.table else { return };
        match open.behavior.special {
            Special::IoUring => self.tables.never(table),
            Special::Unshare if args[0] & CLONE_FILES != 0 => self.threads[here.slot.index()].table = Some(self.tables.unshare(table)),
            Special::CloseRange if args[2] & CLOSE_RANGE_UNSHARE != 0 => {
                self.threads[here.slot.index()].table = Some(self.tables.unshare(table));
            }
            Special::Ioctl if args[1] as u32 == SECCOMP_ADDFD => self.tables.forget_all(Time(here.time.0 + SETTLING)),
            _ => {}
        }
    }

    pub(super) fn descriptors_at_exit(&mut self, here: Here, open: &mut Open, ret: i64, questions: &mut Questions) {
        let Some(table) = open.table else { return };
        questions.table = Some(table);
        let entered = open.call.id.start;
        let special = open.behavior.special;
        let proved = Use::proved(ret) && !(special == Special::Splice && ret == 0);
        let mut first = None;
        for using in &open.uses {
            match self.tables.exit(table, using, entered, here.time, proved) {
                Answer::Known(path) => {
                    if using.place == FdPlace::Arg(0) {
                        first = Some(path.clone());
                    }
                    add_file(&mut open.call, using.place, &path);
                }
                Answer::Ask => questions.fds.push((using.place, using.fd)),
                Answer::Unknown => {}
            }
        }
        if open.changes {
            let effective = match special {
                Special::Execve | Special::Execveat => ret >= 0,
                // What it changed is told by what it returns.
                Special::DupTo => false,
                _ => true,
            };
            self.tables.end_change(table, open.call.id.tid, here.time, effective);
        }
        let args = open.call.args.unwrap_or_default();
        let copied = match special {
            Special::Dup | Special::DupTo => Some(first),
            Special::Fcntl if duplicates(args[1]) => Some(first),
            Special::Fcntl => None,
            Special::MaybeDescriptor => Some(None),
            _ => (open.behavior.returns == Returns::Fd).then_some(None),
        };
        let Some(path) = copied.filter(|_| (0..=i64::from(i32::MAX)).contains(&ret)) else { return };
        match self.tables.created(table, ret as i32, entered, here.time, path) {
            _ if special == Special::MaybeDescriptor => {}
            Answer::Known(path) => add_file(&mut open.call, FdPlace::Return, &path),
            Answer::Ask => questions.fds.push((FdPlace::Return, ret as i32)),
            Answer::Unknown => {}
        }
    }

    /// The call's exit was not seen, or there is none.
    pub(super) fn descriptors_without_exit(&mut self, here: Here, open: &mut Open) {
        let Some(table) = open.table else { return };
        for using in &open.uses {
            if let Answer::Known(path) = self.tables.exit(table, using, open.call.id.start, here.time, false) {
                add_file(&mut open.call, using.place, &path);
            }
        }
        if open.changes {
            self.tables.end_change(table, open.call.id.tid, here.time, true);
        }
    }

    /// A call in flight: what is known is shown, and what is not is looked at, for its end.
    pub(super) fn descriptors_in_flight(&mut self, slot: Slot, call: &mut Call) {
        let Some(open) = self.threads[slot.index()].open.as_ref().filter(|_| self.facts.descriptors) else { return };
        let Some(table) = open.table else { return };
        for using in &open.uses {
            match self.tables.exit(table, using, call.id.start, self.now, false) {
                Answer::Known(path) => add_file(call, using.place, &path),
                _ => self.tables.wants_look(table, using, self.now),
            }
        }
    }

    /// A call of this kind is over, and which descriptors it changed was not seen.
    pub(super) fn forget_descriptors(&mut self, here: Here, special: Special) {
        let Some(table) = self.threads[here.slot.index()].table.filter(|_| self.facts.descriptors) else { return };
        match special {
            Special::Close | Special::CloseRange | Special::DupTo | Special::Execve | Special::Execveat => {
                self.tables.forget_until(table, here.time)
            }
            Special::IoUring | Special::Unshare => self.tables.never(table),
            Special::Ioctl => self.tables.forget_all(here.time),
            _ => {}
        }
    }
}

/// F_DUPFD and F_DUPFD_CLOEXEC of fcntl(2).
fn duplicates(command: u64) -> bool {
    matches!(command as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC)
}

/// close_range(2) takes unsigned numbers, of which only the first half can be descriptors.
fn clamped(fd: u64) -> i32 {
    i32::try_from(fd as u32).unwrap_or(i32::MAX)
}
