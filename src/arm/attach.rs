//! Opens events on running processes, whose tasks are created, end and execute programs meanwhile.
//!
//! Once all events of a task are open, the kernel also opens them on every task that it creates. So only tasks that
//! were created by other tasks must be found:
//!
//! ```text
//! list the threads ─▶ read the rings ─▶ open events on those that are not followed ─┐
//!        ▲            (which task created which, and when)                          │
//!        └──────────────────────────────────────────────────────────────────────────┘  until all are followed
//! ```
//!
//! The side band of a task is enabled as soon as it is open, so that its records report the tasks that it creates. They
//! also report when a followed task executes a program: all other threads of its process have ended then. If a task
//! that is not followed executes a program, it takes over the TID of the first thread, whose events end with their own
//! task. This is detected by an event that no task inherits (the guard).

use super::Arming;
use super::open::Failure;
use crate::event::{TaskId, Time};
use crate::kernel::procfs;
use crate::session::Role;
use crate::source::record::{Body, Records};
use crate::sys::clock;
use crate::sys::perf::{On, PerfEvent};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;

/// The most times that threads are listed. Threads may be created and end faster than events are opened on them.
const LISTINGS_MAX: u32 = 64;

/// What a record of a ring says about the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Created {
        child: TaskId,
        parent: TaskId,
    },
    Ended {
        task: TaskId,
    },
    /// The task has executed a program. If another thread than the first one did, it has the first one's TID now.
    Executed {
        task: TaskId,
    },
}

impl Change {
    /// The TID of the task that changed.
    fn subject(self) -> i32 {
        let (Change::Created { child: task, .. } | Change::Ended { task } | Change::Executed { task }) = self;
        task.tid
    }
}

/// The state of the tasks.
#[derive(Debug, Default)]
struct Followed {
    /// The processes that the user named.
    named: BTreeSet<i32>,
    /// The tasks, by TID, whose events are all open or all inherited, and the time since when.
    since: FxHashMap<i32, Time>,
    /// The time at which the last event was opened.
    last_opened: Time,
    /// The processes in which a followed task has executed a program, so that they have no other tasks.
    renewed: FxHashSet<i32>,
    /// The guards by process, as long as the first thread is the followed task.
    guards: FxHashMap<i32, PerfEvent>,
    /// The tasks that had ended before their events were opened, or whose TID only remains because they are zombies.
    ended: BTreeSet<i32>,
    /// The processes of the tasks, by TID, that may have only some of the events: they were created while these were
    /// opened, or they executed a program meanwhile.
    partly: FxHashMap<i32, i32>,
    /// The tasks on which the last event may have been opened while they created another task, which inherited only
    /// the events before it.
    may_be_forking: FxHashSet<i32>,
    /// Changes that have not been considered yet.
    changes: Vec<(Time, Change)>,
    /// The last change of each task, by TID. Two records report it if an event was opened twice on a task.
    last_changes: FxHashMap<i32, Change>,
}

impl Followed {
    fn is_followed(&self, tid: i32, time: Time) -> bool {
        self.since.get(&tid).is_some_and(|since| *since <= time)
    }

    /// Considers the changes until a time, in their order.
    fn update_until(&mut self, until: Time) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.sort_by_key(|(time, _)| *time);
        let later = changes.split_off(changes.partition_point(|(time, _)| *time <= until));
        changes.into_iter().for_each(|(time, change)| self.update(time, change));
        self.changes = later;
    }

    fn update(&mut self, time: Time, change: Change) {
        if self.last_changes.insert(change.subject(), change) == Some(change) {
            return;
        }
        match change {
            Change::Created { child, parent } => {
                let may_have_begun_before = self.may_be_forking.remove(&parent.tid);
                if self.is_followed(parent.tid, time) && !may_have_begun_before {
                    self.since.insert(child.tid, time);
                } else {
                    self.partly.insert(child.tid, child.pid);
                }
            }
            Change::Ended { task } => {
                self.since.remove(&task.tid);
                self.partly.remove(&task.tid);
                self.may_be_forking.remove(&task.tid);
            }
            Change::Executed { task } if time >= self.last_opened && self.partly.is_empty() => {
                self.since.insert(task.pid, time);
                self.renewed.insert(task.pid);
            }
            // Its other threads have ended. The record does not say which of them it was.
            Change::Executed { task } => {
                self.partly.retain(|_, pid| *pid != task.pid);
                self.may_be_forking.remove(&task.tid);
            }
        }
    }

    /// Returns the listed tasks that are not followed yet.
    fn missing(&mut self, pid: i32, tids: Vec<i32>) -> Vec<i32> {
        if self.renewed.contains(&pid) {
            return Vec::new();
        }
        if self.guards.get(&pid).is_some_and(PerfEvent::has_ended) {
            self.guards.remove(&pid);
            self.since.remove(&pid);
        }
        let (followed, mut missing): (Vec<i32>, Vec<i32>) =
            tids.into_iter().filter(|tid| *tid != pid).partition(|tid| self.since.contains_key(tid));
        if !self.since.contains_key(&pid) && !is_gone(pid, followed.len()) {
            missing.push(pid);
        }
        missing.retain(|&tid| tid == pid || !(self.ended.contains(&tid) && is_dead(pid, tid)));
        missing
    }
}

/// Returns whether the first thread of a process has ended, so that the process has only this number of other threads,
/// or none at all.
///
/// A thread that executes a program takes over the TID of the first thread, which gets that of the thread and is
/// reaped. Meanwhile the directory of the threads may list only one of the two, so their number decides.
fn is_gone(pid: i32, others: usize) -> bool {
    let stat = procfs::thread_stat(TaskId { pid, tid: pid });
    stat.is_none_or(|stat| is_ended(stat.state) && stat.threads as usize == 1 + others)
}

/// Returns whether a task has ended. It keeps its TID until it is reaped.
fn is_dead(pid: i32, tid: i32) -> bool {
    procfs::thread_stat(TaskId { pid, tid }).is_none_or(|stat| is_ended(stat.state))
}

fn is_ended(state: u8) -> bool {
    matches!(state, b'Z' | b'X')
}

impl Arming<'_> {
    /// Opens events on the threads of these processes. Returns false if some may be missing, since there were new
    /// threads at each listing.
    pub(super) fn processes(&mut self, pids: &[i32]) -> anyhow::Result<bool> {
        let mut followed = Followed { named: pids.iter().copied().collect(), ..Followed::default() };
        let inherits = self.plan.events.iter().any(|planned| planned.spec.role == Role::SideBand && planned.inherit);
        for _ in 0..LISTINGS_MAX {
            let all: BTreeSet<i32> = pids.iter().chain(followed.partly.values()).copied().collect();
            let listed: Vec<(i32, Vec<i32>)> = all.into_iter().map(|pid| (pid, procfs::threads(pid))).collect();
            self.read_rings(&mut followed);
            let missing: Vec<(i32, i32)> =
                listed.into_iter().flat_map(|(pid, tids)| followed.missing(pid, tids).into_iter().map(move |tid| (pid, tid))).collect();
            if missing.is_empty() {
                return Ok(true);
            }
            for (pid, tid) in missing {
                self.follow(&mut followed, pid, tid)?;
            }
            // Tasks that are created later are not traced.
            if !inherits {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn follow(&mut self, followed: &mut Followed, pid: i32, tid: i32) -> anyhow::Result<()> {
        let opened_before = self.armed.events.len();
        // The guard is opened first. While its task has not ended, the events opened after it are on the same task.
        let guard = self.plan.cpus.first().filter(|_| pid == tid).map(|&cpu| PerfEvent::guard(tid, cpu)).transpose();
        let has_ended = |error: &io::Error| error.raw_os_error() == Some(libc::ESRCH);
        let opened = match &guard {
            Err(error) if has_ended(error) => None,
            _ => match self.open_on_task(followed, pid, tid) {
                Err(failure) if failure.is_gone() => None,
                // It was created while events were opened, and has executed a program with more rights.
                Err(failure) if failure.is_not_own() && !followed.named.contains(&pid) => {
                    followed.partly.retain(|_, process| *process != pid);
                    return Ok(());
                }
                other => Some(other?),
            },
        };
        followed.last_opened = clock::now();
        let guard = guard.ok().flatten();
        if let (Some(guard), Some(ring)) = (&guard, self.armed.rings.first()) {
            guard.set_output(self.armed.events[ring.owner].event.as_fd())?;
        }
        if opened.is_none() {
            followed.ended.insert(tid);
        } else if !guard.as_ref().is_some_and(PerfEvent::has_ended) {
            followed.since.insert(tid, followed.last_opened);
            followed.partly.remove(&tid);
            followed.may_be_forking.insert(tid);
            followed.guards.extend(guard.map(|guard| (pid, guard)));
            return Ok(());
        }
        // A task that takes over the TID of the first thread keeps the events that were opened on it before.
        if self.armed.events.len() > opened_before {
            followed.partly.insert(tid, pid);
        }
        Ok(())
    }

    /// Opens the events on a task, the side band on all CPUs first. From then on, the records report all tasks that it
    /// creates, and those that it created before are listed.
    fn open_on_task(&mut self, followed: &mut Followed, pid: i32, tid: i32) -> Result<(), Failure> {
        self.target_by_role(On::Task(tid), |role| role == Role::SideBand)?;
        let unknown = procfs::threads(pid).into_iter().filter(|other| !followed.since.contains_key(other));
        followed.partly.extend(unknown.map(|other| (other, pid)));
        self.target_by_role(On::Task(tid), |role| role != Role::SideBand)
    }

    /// Reads the rings for the tasks that the followed tasks created and executed. The bytes are kept for the stream.
    fn read_rings(&mut self, followed: &mut Followed) {
        // The rings are read one after the other, so a later record may be read before an earlier one of another ring.
        // All records up to this time are there.
        let complete_until = clock::now();
        let table = &self.armed.table;
        for of_cpu in &mut self.armed.rings {
            let before = of_cpu.early.len();
            // Invalid bytes are reported when the stream is read.
            let _ = of_cpu.ring.drain(&mut of_cpu.early);
            let records = Records::new(table, of_cpu.cpu, &of_cpu.early[before..]).flatten();
            followed.changes.extend(records.filter_map(|record| Some((record.time, change(&record.body)?))));
        }
        followed.update_until(complete_until);
    }
}

fn change(body: &Body) -> Option<Change> {
    Some(match *body {
        Body::Fork { child, parent } => Change::Created { child, parent },
        Body::Exit { task } => Change::Ended { task },
        Body::Comm { task, exec: true, .. } => Change::Executed { task },
        _ => return None,
    })
}
