//! The history of the cgroups that a task was in, with times.
//!
//! An entry whose cgroup is not known at first, because /proc has not been read yet, is completed later. The cgroup
//! then holds for the whole entry, because an entry ends at the event that reports a move of the task.

use crate::event::Time;
use smallvec::SmallVec;
use std::sync::Arc;

/// A cgroup's path below its mount.
pub type Cgroup = Arc<[u8]>;

/// The maximum number of entries that are kept for one tid.
const PERIODS_MAX: usize = 8;

/// The cgroups of the tasks that had one tid, in order of time.
#[derive(Debug, Default)]
pub struct CgroupHistory(SmallVec<[CgroupPeriod; 1]>);

/// A period in one cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupPeriod {
    /// When the period began; it lasts until the next one.
    pub since: Time,
    /// `None` if the cgroup is not known.
    pub cgroup: Option<Cgroup>,
    /// The task began in this cgroup, or was first seen there.
    first: bool,
}

impl CgroupHistory {
    /// Adds the first cgroup of a new task with this tid, or `None` if it is not known.
    pub fn begin(&mut self, since: Time, cgroup: Option<Cgroup>) {
        self.push(CgroupPeriod { since, cgroup, first: true });
    }

    /// Adds a move to another cgroup, or `None` if it is not known.
    pub fn moved(&mut self, since: Time, cgroup: Option<Cgroup>) {
        if self.0.last().is_none_or(|last| last.cgroup.is_none() || last.cgroup != cgroup) {
            self.push(CgroupPeriod { since, cgroup, first: false });
        }
    }

    /// Adds the cgroup that was read from /proc. It is ignored if a later event has already reported the cgroup.
    pub fn set_unknown(&mut self, cgroup: Cgroup) {
        match self.0.as_mut_slice() {
            [.., before, last] if last.cgroup.is_none() && !last.first && before.cgroup.as_ref() == Some(&cgroup) => _ = self.0.pop(),
            [.., last] if last.cgroup.is_none() => last.cgroup = Some(cgroup),
            _ => {}
        }
    }

    /// Returns the task's current cgroup, if it is known.
    pub fn last(&self) -> Option<&Cgroup> {
        self.0.last()?.cgroup.as_ref()
    }

    /// Returns the entry for a time.
    pub fn at(&self, time: Time) -> Option<&CgroupPeriod> {
        self.0.iter().rev().find(|period| period.since <= time)
    }

    /// Returns the entry for a time, and those before it since the task began.
    pub fn until(&self, time: Time) -> &[CgroupPeriod] {
        let end = self.0.iter().rposition(|period| period.since <= time).map_or(0, |at| at + 1);
        let begin = self.0[..end].iter().rposition(|period| period.first).unwrap_or(0);
        &self.0[begin..end]
    }

    fn push(&mut self, period: CgroupPeriod) {
        if self.0.len() == PERIODS_MAX {
            self.0.remove(0);
            // The cgroup before the oldest remaining entry is not known any more.
            if let Some(oldest) = self.0.first_mut().filter(|oldest| !oldest.first) {
                oldest.cgroup = None;
            }
        }
        self.0.push(period);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str) -> Option<Cgroup> {
        Some(name.as_bytes().into())
    }

    fn at(history: &CgroupHistory, time: u64) -> Option<Cgroup> {
        history.at(Time(time))?.cgroup.clone()
    }

    #[test]
    fn a_cgroup_is_valid_until_the_next_move() {
        let mut history = CgroupHistory::default();
        history.begin(Time(10), group("/a"));
        history.moved(Time(20), group("/b"));
        assert_eq!([9, 10, 19, 20].map(|time| at(&history, time)), [None, group("/a"), group("/a"), group("/b")]);
        assert_eq!((history.until(Time(15)).len(), history.until(Time(25)).len()), (1, 2));
        history.begin(Time(30), group("/c"));
        assert_eq!((at(&history, 25), at(&history, 30), history.until(Time(40)).len()), (group("/b"), group("/c"), 1));
    }

    #[test]
    fn a_cgroup_from_proc_completes_only_the_last_entry() {
        let mut history = CgroupHistory::default();
        history.begin(Time(10), None);
        history.set_unknown(group("/a").unwrap());
        assert_eq!(at(&history, 10), group("/a"));
        history.set_unknown(group("/late").unwrap());
        assert_eq!(at(&history, 10), group("/a"), "a late read is ignored");
        history.moved(Time(20), None);
        assert_eq!((at(&history, 19), at(&history, 20)), (group("/a"), None));
        history.set_unknown(group("/b").unwrap());
        assert_eq!(at(&history, 20), group("/b"));
    }

    #[test]
    fn a_refuted_doubt_leaves_no_entry() {
        let mut history = CgroupHistory::default();
        history.begin(Time(10), group("/a"));
        history.moved(Time(20), None);
        history.set_unknown(group("/a").unwrap());
        assert_eq!(history.until(Time(30)).len(), 1);
    }

    #[test]
    fn too_many_moves_leave_the_first_cgroup_unknown() {
        let mut history = CgroupHistory::default();
        history.begin(Time(0), group("/0"));
        (1..20).for_each(|i| history.moved(Time(i), group(&format!("/{i}"))));
        assert_eq!((at(&history, 1), at(&history, 12), at(&history, 13)), (None, None, group("/13")));
    }
}
