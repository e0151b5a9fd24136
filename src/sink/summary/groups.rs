//! Tasks that are counted together: a thread, a process, those of a cgroup, or all.

use super::numbers::shown;
use crate::event::{Comm, TaskId, Time};
use crate::show::SummaryBy;
use crate::sink::View;
use crate::task::stays::{Cgroup, Stay};
use crate::task::tasks::Tasks;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// All groups that there were.
pub struct Groups {
    by: SummaryBy,
    all: Vec<Group>,
    /// From a tid, or a pid when grouped by process, to its group: of the task that has it now.
    of_task: FxHashMap<i32, u32>,
    of_place: FxHashMap<Place, u32>,
    /// The last task asked for, and since when it is where it is: events come in bursts of one task.
    recent: Option<(i32, Option<Time>, u32)>,
}

/// One of them.
#[derive(Debug)]
pub struct Group {
    who: Who,
    name: Option<Comm>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    /// A thread or a process.
    Task(i32),
    Cgroup(Place),
    Total,
}

/// Where tasks were when they made their calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// In this cgroup, or first in one and then in the next.
    In(Vec<Cgroup>),
    /// Not known yet of this task in the stay that began then, or in all up to that.
    Open {
        tid: i32,
        since: Time,
        span: Span,
    },
    Unknown,
}

/// What of a task's time an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Span {
    /// The event's moment.
    Moment,
    /// All since the task began: calls that were summed up.
    Life,
}

impl Groups {
    pub fn new(by: SummaryBy) -> Groups {
        Groups { by, all: Vec::new(), of_task: FxHashMap::default(), of_place: FxHashMap::default(), recent: None }
    }

    /// The group of a task; named after its latest name, a process after its first thread.
    pub fn of(&mut self, task: TaskId, comm: Option<&Comm>, time: Time, span: Span, view: &View) -> u32 {
        let group = match self.by {
            SummaryBy::Thread => self.of_task(task.tid, time, view),
            SummaryBy::Process => self.of_task(task.pid, time, view),
            SummaryBy::Cgroup => return self.of_cgroup(task.tid, time, span, view.tasks),
            SummaryBy::Total | SummaryBy::Whole => return self.of_task(0, time, view),
        };
        let known = &mut self.all[group as usize].name;
        if let Some(comm) = comm
            && (self.by == SummaryBy::Thread || task.tid == task.pid)
            && !known.as_ref().is_some_and(|known| Arc::ptr_eq(known, comm))
        {
            *known = Some(comm.clone());
        }
        group
    }

    fn of_task(&mut self, key: i32, time: Time, view: &View) -> u32 {
        if let Some((_, _, group)) = self.recent.filter(|(recent, ..)| *recent == key) {
            return group;
        }
        let group = match self.of_task.get(&key) {
            Some(group) => *group,
            None => {
                let group = match self.by {
                    SummaryBy::Total | SummaryBy::Whole => self.begin(Who::Total, None),
                    _ => self.begin(Who::Task(key), view.tasks.comm_at(key, time)),
                };
                self.of_task.insert(key, group);
                group
            }
        };
        self.recent = Some((key, None, group));
        group
    }

    fn of_cgroup(&mut self, tid: i32, time: Time, span: Span, tasks: &Tasks) -> u32 {
        let since = tasks.stays(tid).and_then(|stays| stays.at(time)).map(|stay| stay.since);
        if let Some((_, _, group)) = self.recent.filter(|recent| (recent.0, recent.1) == (tid, since) && span == Span::Moment) {
            return group;
        }
        let place = since.map_or(Place::Unknown, |since| place(tid, since, span, tasks));
        let group = match self.of_place.get(&place) {
            Some(group) => *group,
            None => {
                let group = self.begin(Who::Cgroup(place.clone()), None);
                self.of_place.insert(place, group);
                group
            }
        };
        self.recent = (span == Span::Moment).then_some((tid, since, group));
        group
    }

    fn begin(&mut self, who: Who, name: Option<Comm>) -> u32 {
        self.all.push(Group { who, name });
        self.all.len() as u32 - 1
    }

    /// The next task with this number is another one.
    pub fn forget(&mut self, key: i32) {
        if matches!(self.by, SummaryBy::Thread | SummaryBy::Process) {
            self.of_task.remove(&key);
            self.recent = None;
        }
    }

    /// What looks have told since then of where tasks were: the groups that are one by that, each with the one that stands for it.
    pub fn settle(&mut self, tasks: &Tasks) -> Vec<u32> {
        let mut same: Vec<u32> = Vec::with_capacity(self.all.len());
        let mut of_place: FxHashMap<Place, u32> = FxHashMap::default();
        for (at, group) in self.all.iter_mut().enumerate() {
            let at = at as u32;
            let Who::Cgroup(told) = &mut group.who else {
                same.push(at);
                continue;
            };
            if let Place::Open { tid, since, span } = *told {
                *told = place(tid, since, span, tasks);
            }
            let key = if matches!(told, Place::Open { .. }) { Place::Unknown } else { told.clone() };
            same.push(*of_place.entry(key).or_insert(at));
        }
        same
    }

    /// What a group is called: ` sh (7)`.
    pub fn name(&self, group: u32) -> String {
        let Some(group) = self.all.get(group as usize) else { return "?".to_owned() };
        match &group.who {
            Who::Task(id) => format!("{} ({id})", group.name.as_deref().map_or_else(|| "?".to_owned(), shown)),
            Who::Cgroup(Place::In(cgroups)) => {
                let names: Vec<String> = cgroups.iter().map(|cgroup| shown(cgroup)).collect();
                format!("cgroup {}", names.join(" -> "))
            }
            Who::Cgroup(_) => "cgroup ?".to_owned(),
            Who::Total => "total".to_owned(),
        }
    }
}

/// Where a task was in the stay that began at `since`, or in all up to that.
fn place(tid: i32, since: Time, span: Span, tasks: &Tasks) -> Place {
    let stays: &[Stay] = match (tasks.stays(tid), span) {
        (None, _) => &[],
        (Some(stays), Span::Moment) => stays.at(since).map(std::slice::from_ref).unwrap_or_default(),
        (Some(stays), Span::Life) => stays.until(since),
    };
    let cgroups: Option<Vec<Cgroup>> = stays.iter().map(|stay| stay.cgroup.clone()).collect();
    match cgroups {
        Some(cgroups) if !cgroups.is_empty() => Place::In(cgroups),
        _ => Place::Open { tid, since, span },
    }
}
