//! The cgroups in which a task was, and since when it was in each.
//!
//! What is not known at first (a look has not been answered yet) holds for the whole stay once it is: a stay ends when an event says that the task was moved.

use crate::event::Time;
use smallvec::SmallVec;
use std::sync::Arc;

/// A cgroup's path below its mount.
pub type Cgroup = Arc<[u8]>;

/// So many stays of one tid are remembered.
const STAYS_MAX: usize = 8;

/// The stays of the tasks that had one tid, from old to new.
#[derive(Debug, Default)]
pub struct Stays(SmallVec<[Stay; 1]>);

/// A time in one cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    pub since: Time,
    /// `None` if it is not known.
    pub cgroup: Option<Cgroup>,
    /// The task was there when it began, or when it was first seen.
    first: bool,
}

impl Stays {
    /// A new task with this tid begins in a cgroup; or it is not known where.
    pub fn begin(&mut self, since: Time, cgroup: Option<Cgroup>) {
        self.push(Stay { since, cgroup, first: true });
    }

    /// The task was moved there; or it is not known where it is now.
    pub fn moved(&mut self, since: Time, cgroup: Option<Cgroup>) {
        if self.0.last().is_none_or(|last| last.cgroup.is_none() || last.cgroup != cgroup) {
            self.push(Stay { since, cgroup, first: false });
        }
    }

    /// The task was seen there. Nothing follows from it where a later event has said where it is.
    pub fn found(&mut self, cgroup: Cgroup) {
        match self.0.as_mut_slice() {
            [.., before, last] if last.cgroup.is_none() && !last.first && before.cgroup.as_ref() == Some(&cgroup) => _ = self.0.pop(),
            [.., last] if last.cgroup.is_none() => last.cgroup = Some(cgroup),
            _ => {}
        }
    }

    /// Where the task is now, if that is known.
    pub fn last(&self) -> Option<&Cgroup> {
        self.0.last()?.cgroup.as_ref()
    }

    /// The stay that `time` falls into.
    pub fn at(&self, time: Time) -> Option<&Stay> {
        self.0.iter().rev().find(|stay| stay.since <= time)
    }

    /// The same and those before it since the task began.
    pub fn until(&self, time: Time) -> &[Stay] {
        let end = self.0.iter().rposition(|stay| stay.since <= time).map_or(0, |at| at + 1);
        let begin = self.0[..end].iter().rposition(|stay| stay.first).unwrap_or(0);
        &self.0[begin..end]
    }

    fn push(&mut self, stay: Stay) {
        if self.0.len() == STAYS_MAX {
            self.0.remove(0);
            // Where the task was before is not known any more.
            if let Some(oldest) = self.0.first_mut().filter(|oldest| !oldest.first) {
                oldest.cgroup = None;
            }
        }
        self.0.push(stay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str) -> Option<Cgroup> {
        Some(name.as_bytes().into())
    }

    fn at(stays: &Stays, time: u64) -> Option<Cgroup> {
        stays.at(Time(time))?.cgroup.clone()
    }

    #[test]
    fn a_stay_holds_until_the_next() {
        let mut stays = Stays::default();
        stays.begin(Time(10), group("/a"));
        stays.moved(Time(20), group("/b"));
        assert_eq!([9, 10, 19, 20].map(|time| at(&stays, time)), [None, group("/a"), group("/a"), group("/b")]);
        assert_eq!((stays.until(Time(15)).len(), stays.until(Time(25)).len()), (1, 2));
        stays.begin(Time(30), group("/c"));
        assert_eq!((at(&stays, 25), at(&stays, 30), stays.until(Time(40)).len()), (group("/b"), group("/c"), 1));
    }

    #[test]
    fn what_is_found_holds_for_the_whole_stay_and_never_for_another() {
        let mut stays = Stays::default();
        stays.begin(Time(10), None);
        stays.found(group("/a").unwrap());
        assert_eq!(at(&stays, 10), group("/a"));
        stays.found(group("/late").unwrap());
        assert_eq!(at(&stays, 10), group("/a"), "a look that came too late says nothing");
        stays.moved(Time(20), None);
        assert_eq!((at(&stays, 19), at(&stays, 20)), (group("/a"), None));
        stays.found(group("/b").unwrap());
        assert_eq!(at(&stays, 20), group("/b"));
    }

    #[test]
    fn a_doubt_that_proves_unfounded_leaves_no_stay() {
        let mut stays = Stays::default();
        stays.begin(Time(10), group("/a"));
        stays.moved(Time(20), None);
        stays.found(group("/a").unwrap());
        assert_eq!(stays.until(Time(30)).len(), 1);
    }

    #[test]
    fn too_many_stays_leave_the_first_unknown() {
        let mut stays = Stays::default();
        stays.begin(Time(0), group("/0"));
        (1..20).for_each(|i| stays.moved(Time(i), group(&format!("/{i}"))));
        assert_eq!((at(&stays, 1), at(&stays, 12), at(&stays, 13)), (None, None, group("/13")));
    }
}
