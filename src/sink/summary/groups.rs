//! Groups of tasks that are counted together: a thread, a process, the tasks of a cgroup, or all tasks.

use super::numbers::shown;
use crate::event::{Comm, TaskId, Time};
use crate::show::SummaryBy;
use crate::sink::View;
use crate::task::cgroup_history::{Cgroup, CgroupPeriod};
use crate::task::tasks::Tasks;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// All groups of the trace.
pub struct Groups {
    by: SummaryBy,
    all: Vec<Group>,
    /// The group of the task that has this TID now, or of the process that has this PID when grouped by process.
    of_task: FxHashMap<i32, u32>,
    of_cgroups: FxHashMap<TaskCgroups, u32>,
    /// The group of the last task, and since when the task is in its present cgroup. Events come in bursts of one task.
    recent: Option<(i32, Option<Time>, u32)>,
}

/// A group.
#[derive(Debug)]
pub struct Group {
    key: GroupKey,
    name: Option<Comm>,
}

/// The tasks that are counted in a group.
#[derive(Clone, Copy, Debug)]
pub enum Members<'g> {
    Thread {
        task: TaskId,
        comm: Option<&'g [u8]>,
    },
    Process {
        pid: i32,
        comm: Option<&'g [u8]>,
    },
    /// The tasks of a cgroup, or the tasks that were in several cgroups one after the other; `None` if the cgroups are
    /// unknown.
    Cgroups(Option<&'g [Cgroup]>),
    All,
}

/// What a group stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum GroupKey {
    Thread(TaskId),
    /// A process, by its PID.
    Process(i32),
    Cgroup(TaskCgroups),
    Total,
}

/// The cgroups of tasks during their calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TaskCgroups {
    /// This cgroup, or a sequence of cgroups that the task was in one after the other.
    Known(Vec<Cgroup>),
    /// Not known yet: the task's cgroup in the period that began at `since`, or those in all periods up to that one.
    Pending {
        tid: i32,
        since: Time,
        span: Span,
    },
    Unknown,
}

/// The part of a task's life that an event covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Span {
    /// The moment of the event.
    Moment,
    /// The task's life up to the event, for calls that were aggregated.
    Life,
}

impl Groups {
    pub fn new(by: SummaryBy) -> Groups {
        Groups { by, all: Vec::new(), of_task: FxHashMap::default(), of_cgroups: FxHashMap::default(), recent: None }
    }

    /// Returns the group of a task. A group has the latest comm of its thread, or of its process's first thread.
    pub fn of(&mut self, task: TaskId, comm: Option<&Comm>, time: Time, span: Span, view: &View) -> u32 {
        let group = match self.by {
            SummaryBy::Thread => self.of_task(task.tid, GroupKey::Thread(task), time, view),
            SummaryBy::Process => self.of_task(task.pid, GroupKey::Process(task.pid), time, view),
            SummaryBy::Cgroup => return self.of_cgroup(task.tid, time, span, view.tasks),
            SummaryBy::Total | SummaryBy::OneTable => return self.of_task(0, GroupKey::Total, time, view),
        };
        let name = &mut self.all[group as usize].name;
        if let Some(comm) = comm
            && (self.by == SummaryBy::Thread || task.tid == task.pid)
            && !name.as_ref().is_some_and(|name| Arc::ptr_eq(name, comm))
        {
            *name = Some(comm.clone());
        }
        group
    }

    /// Returns the group with this number, which is a TID, a PID, or 0 for all tasks. Creates it with this key if there
    /// is none.
    fn of_task(&mut self, number: i32, key: GroupKey, time: Time, view: &View) -> u32 {
        if let Some((_, _, group)) = self.recent.filter(|(recent, ..)| *recent == number) {
            return group;
        }
        let group = match self.of_task.get(&number) {
            Some(group) => *group,
            None => {
                let name = if key == GroupKey::Total { None } else { view.tasks.comm_at(number, time) };
                let group = self.begin(key, name);
                self.of_task.insert(number, group);
                group
            }
        };
        self.recent = Some((number, None, group));
        group
    }

    fn of_cgroup(&mut self, tid: i32, time: Time, span: Span, tasks: &Tasks) -> u32 {
        let since = tasks.cgroup_history(tid).and_then(|history| history.at(time)).map(|period| period.since);
        if let Some((_, _, group)) = self.recent.filter(|recent| (recent.0, recent.1) == (tid, since) && span == Span::Moment) {
            return group;
        }
        let cgroups = since.map_or(TaskCgroups::Unknown, |since| cgroups(tid, since, span, tasks));
        let group = match self.of_cgroups.get(&cgroups) {
            Some(group) => *group,
            None => {
                let group = self.begin(GroupKey::Cgroup(cgroups.clone()), None);
                self.of_cgroups.insert(cgroups, group);
                group
            }
        };
        self.recent = (span == Span::Moment).then_some((tid, since, group));
        group
    }

    fn begin(&mut self, key: GroupKey, name: Option<Comm>) -> u32 {
        self.all.push(Group { key, name });
        self.all.len() as u32 - 1
    }

    /// Forgets a task's number, which its next owner has for another task.
    pub fn forget(&mut self, key: i32) {
        if matches!(self.by, SummaryBy::Thread | SummaryBy::Process) {
            self.of_task.remove(&key);
            self.recent = None;
        }
    }

    /// Completes the cgroups that are known by now. Returns for each group the first group with the same cgroups, in
    /// which it is counted.
    pub fn resolve_cgroups(&mut self, tasks: &Tasks) -> Vec<u32> {
        let mut same: Vec<u32> = Vec::with_capacity(self.all.len());
        let mut of_cgroups: FxHashMap<TaskCgroups, u32> = FxHashMap::default();
        for (at, group) in self.all.iter_mut().enumerate() {
            let at = at as u32;
            let GroupKey::Cgroup(known_cgroups) = &mut group.key else {
                same.push(at);
                continue;
            };
            if let TaskCgroups::Pending { tid, since, span } = *known_cgroups {
                *known_cgroups = cgroups(tid, since, span, tasks);
            }
            let key = if matches!(known_cgroups, TaskCgroups::Pending { .. }) { TaskCgroups::Unknown } else { known_cgroups.clone() };
            same.push(*of_cgroups.entry(key).or_insert(at));
        }
        same
    }

    /// Returns the members of a group; `None` if there is no such group.
    pub fn members(&self, group: u32) -> Option<Members<'_>> {
        let Group { key, name } = self.all.get(group as usize)?;
        Some(match key {
            GroupKey::Thread(task) => Members::Thread { task: *task, comm: name.as_deref() },
            GroupKey::Process(pid) => Members::Process { pid: *pid, comm: name.as_deref() },
            GroupKey::Cgroup(TaskCgroups::Known(cgroups)) => Members::Cgroups(Some(cgroups)),
            GroupKey::Cgroup(_) => Members::Cgroups(None),
            GroupKey::Total => Members::All,
        })
    }

    /// Returns the name of a group: ` sh (7)`.
    pub fn name(&self, group: u32) -> String {
        let of_task = |comm: Option<&[u8]>, id: i32| format!("{} ({id})", comm.map_or_else(|| "?".to_owned(), shown));
        match self.members(group) {
            Some(Members::Thread { task, comm }) => of_task(comm, task.tid),
            Some(Members::Process { pid, comm }) => of_task(comm, pid),
            Some(Members::Cgroups(Some(cgroups))) => {
                let names: Vec<String> = cgroups.iter().map(|cgroup| shown(cgroup)).collect();
                format!("cgroup {}", names.join(" -> "))
            }
            Some(Members::Cgroups(None)) => "cgroup ?".to_owned(),
            Some(Members::All) => "total".to_owned(),
            None => "?".to_owned(),
        }
    }
}

/// Returns the cgroups of a task in the period that began at `since`, or in all periods up to that one.
fn cgroups(tid: i32, since: Time, span: Span, tasks: &Tasks) -> TaskCgroups {
    let periods: &[CgroupPeriod] = match (tasks.cgroup_history(tid), span) {
        (None, _) => &[],
        (Some(history), Span::Moment) => history.at(since).map(std::slice::from_ref).unwrap_or_default(),
        (Some(history), Span::Life) => history.until(since),
    };
    let cgroups: Option<Vec<Cgroup>> = periods.iter().map(|period| period.cgroup.clone()).collect();
    match cgroups {
        Some(cgroups) if !cgroups.is_empty() => TaskCgroups::Known(cgroups),
        _ => TaskCgroups::Pending { tid, since, span },
    }
}
