//! Effects of calls on descriptors: uses, changes, new descriptors.

use super::calls::{Lookups, add_file};
use super::{Follower, RecordContext};
use crate::event::{Call, FdPlace, Time};
use crate::syscall::behavior::Returns;
use crate::syscall::pairing::OpenCall;
use crate::syscall::special::Special;
use crate::task::fds::{FdFile, FdUse, SETTLING};
use crate::task::tasks::Slot;

/// CLONE_FILES, of unshare(2) (include/uapi/linux/sched.h).
pub(super) const CLONE_FILES: u64 = 0x400;
/// CLOSE_RANGE_UNSHARE and CLOSE_RANGE_CLOEXEC (include/uapi/linux/close_range.h).
const CLOSE_RANGE_UNSHARE: u64 = 2;
const CLOSE_RANGE_CLOEXEC: u64 = 4;
/// SECCOMP_IOCTL_NOTIF_ADDFD (include/uapi/linux/seccomp.h): installs a descriptor in another process.
const SECCOMP_ADDFD: u32 = 0x4018_2103;

impl Follower {
    pub(super) fn descriptors_at_entry(&mut self, context: RecordContext, open: &mut OpenCall, args: &[u64; 6]) {
        let Some(table) = open.table else { return };
        let behavior = open.behavior;
        for i in (0..6).filter(|i| behavior.fds & (1 << i) != 0) {
            let unproved = behavior.unproved & (1 << i) != 0;
            if let Some(using) = self.tables.enter(table, FdPlace::Arg(i), args[usize::from(i)] as i32, context.time, unproved) {
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
            self.tables.begin_change(table, context.task.tid, first, last, &mut open.uses);
            open.changes = true;
        }
        self.change_whole_tables(context, open, args);
    }

    /// Handles calls that affect whole tables, or tables of other processes.
    fn change_whole_tables(&mut self, context: RecordContext, open: &OpenCall, args: &[u64; 6]) {
        let Some(table) = open.table else { return };
        match open.behavior.special {
            Special::IoUring => self.tables.stop_tracking(table),
            Special::Unshare if args[0] & CLONE_FILES != 0 => self.threads[context.slot.index()].table = Some(self.tables.unshare(table)),
            Special::CloseRange if args[2] & CLOSE_RANGE_UNSHARE != 0 => {
                self.threads[context.slot.index()].table = Some(self.tables.unshare(table));
            }
            Special::Ioctl if args[1] as u32 == SECCOMP_ADDFD => self.tables.forget_all(Time(context.time.0 + SETTLING)),
            _ => {}
        }
    }

    pub(super) fn descriptors_at_exit(&mut self, context: RecordContext, open: &mut OpenCall, ret: i64, lookups: &mut Lookups) {
        let Some(table) = open.table else { return };
        lookups.table = Some(table);
        let entered = open.call.id.start;
        let special = open.behavior.special;
        let proved = FdUse::proved(ret) && !(special == Special::Splice && ret == 0);
        let mut first = None;
        for using in &open.uses {
            match self.tables.exit(table, using, entered, context.time, proved) {
                FdFile::Known(path) => {
                    if using.place == FdPlace::Arg(0) {
                        first = Some(path.clone());
                    }
                    add_file(&mut open.call, using.place, &path);
                }
                FdFile::NeedsRead => lookups.fds.push((using.place, using.fd)),
                FdFile::Unknown => {}
            }
        }
        if open.changes {
            let effective = match special {
                Special::Execve | Special::Execveat => ret >= 0,
                // Its return value is the descriptor that it changed.
                Special::DupTo => false,
                _ => true,
            };
            self.tables.end_change(table, open.call.id.tid, context.time, effective);
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
        match self.tables.created(table, ret as i32, entered, context.time, path) {
            _ if special == Special::MaybeDescriptor => {}
            FdFile::Known(path) => add_file(&mut open.call, FdPlace::Return, &path),
            FdFile::NeedsRead => lookups.fds.push((FdPlace::Return, ret as i32)),
            FdFile::Unknown => {}
        }
    }

    /// Handles a call whose exit was not seen, or that has none.
    pub(super) fn descriptors_without_exit(&mut self, context: RecordContext, open: &mut OpenCall) {
        let Some(table) = open.table else { return };
        for using in &open.uses {
            if let FdFile::Known(path) = self.tables.exit(table, using, open.call.id.start, context.time, false) {
                add_file(&mut open.call, using.place, &path);
            }
        }
        if open.changes {
            self.tables.end_change(table, open.call.id.tid, context.time, true);
        }
    }

    /// Adds the known files to a call in flight, and requests reads of the others, for the call's end.
    pub(super) fn descriptors_in_flight(&mut self, slot: Slot, call: &mut Call) {
        let Some(open) = self.threads[slot.index()].open.as_ref().filter(|_| self.stream.descriptors) else { return };
        let Some(table) = open.table else { return };
        for using in &open.uses {
            match self.tables.exit(table, using, call.id.start, self.now, false) {
                FdFile::Known(path) => add_file(call, using.place, &path),
                _ => self.tables.request_read(table, using, self.now),
            }
        }
    }

    /// Forgets the files that a call without an entry may have changed.
    pub(super) fn forget_descriptors(&mut self, context: RecordContext, special: Special) {
        let Some(table) = self.threads[context.slot.index()].table.filter(|_| self.stream.descriptors) else { return };
        match special {
            Special::Close | Special::CloseRange | Special::DupTo | Special::Execve | Special::Execveat => {
                self.tables.forget_until(table, context.time)
            }
            Special::IoUring | Special::Unshare => self.tables.stop_tracking(table),
            Special::Ioctl => self.tables.forget_all(context.time),
            _ => {}
        }
    }
}

/// Returns whether the command of fcntl(2) duplicates a descriptor: F_DUPFD and F_DUPFD_CLOEXEC.
fn duplicates(command: u64) -> bool {
    matches!(command as i32, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC)
}

/// Clamps a descriptor of close_range(2), which takes unsigned numbers; only the lower half of their range can be
/// descriptors.
fn clamped(fd: u64) -> i32 {
    i32::try_from(fd as u32).unwrap_or(i32::MAX)
}
