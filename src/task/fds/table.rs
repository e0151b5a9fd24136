//! One descriptor table: the known files, and the changes in progress.

use super::{Path, Ticket};
use crate::event::{FdPlace, Time};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A descriptor table, which threads or processes may share.
#[derive(Debug, Default)]
pub(super) struct FdTable {
    /// The process whose /proc/PID/fd shows the table.
    pub pid: i32,
    /// The number of threads that share the table.
    pub users: u32,
    /// Nothing is known of the table before this time.
    pub from: Time,
    /// The table's files cannot be determined for the rest of the trace.
    pub untracked: bool,
    /// The descriptors of which something is known or awaited, by number.
    pub fds: FxHashMap<i32, FdState>,
    /// Incremented at each begin and end of a change.
    pub clock: u64,
    /// The value of `clock` at the last change of all descriptors.
    pub all: u64,
    /// The end of the last change of any descriptor; it applies to descriptors without an entry.
    pub since: Time,
    /// The changes in progress.
    pub changing: SmallVec<[FdChange; 2]>,
    /// The number of failed reads in sequence, up to a limit.
    pub failures: u32,
    /// No reads of /proc before this time.
    pub retry: Time,
}

/// The state of one descriptor.
#[derive(Debug, Default)]
pub(super) struct FdState {
    /// The table's clock when a change of the descriptor last began or ended.
    pub version: u64,
    /// The time at which the last change ended.
    pub since: Time,
    /// The file, if it is known.
    pub path: Option<Path>,
    /// The descriptor was certainly open at this time, and no change has begun since.
    pub open: Option<Time>,
    /// The calls that wait for the file.
    pub waiting: SmallVec<[(Ticket, FdPlace); 1]>,
}

/// A change in progress: the thread, and the range of descriptors.
#[derive(Clone, Copy, Debug)]
pub(super) struct FdChange {
    /// The thread whose call makes the change.
    pub tid: i32,
    /// The lowest descriptor that may change.
    pub first: i32,
    /// The highest descriptor that may change; it belongs to the range.
    pub last: i32,
}

impl FdTable {
    /// Marks a change of a range of descriptors: waiting calls will not learn their files.
    pub fn mark_changed(
        &mut self,
        first: i32,
        last: i32,
        settled: &mut Vec<(Ticket, FdPlace, Option<Path>)>,
        mut change: impl FnMut(&mut FdState),
    ) {
        self.clock += 1;
        let clock = self.clock;
        let mut one = |entry: &mut FdState| {
            entry.version = clock;
            settled.extend(entry.waiting.drain(..).map(|(ticket, place)| (ticket, place, None)));
            change(entry);
        };
        if first == last {
            self.fds.get_mut(&first).map(&mut one);
            return;
        }
        if first == 0 && last == i32::MAX {
            self.all = clock;
        }
        self.fds.iter_mut().filter(|(fd, _)| (first..=last).contains(fd)).for_each(|(_, entry)| one(entry));
    }

    /// Returns the descriptor's version.
    pub fn version(&self, fd: i32) -> u64 {
        self.fds.get(&fd).map_or(0, |entry| entry.version.max(self.all))
    }

    /// Returns whether a change of the descriptor is in progress.
    pub fn is_changing(&self, fd: i32) -> bool {
        self.changing.iter().any(|change| (change.first..=change.last).contains(&fd))
    }

    /// Returns whether a read of /proc can show the table's files now.
    pub fn may_be_read(&self, now: Time) -> bool {
        !self.untracked && self.pid != 0 && now >= self.retry
    }
}
