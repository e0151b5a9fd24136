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
use crate::event::Time;
use crate::kernel::procfs;
use crate::session::Role;
use crate::source::record::{Body, Records};
use crate::sys::clock;
use crate::sys::perf::{On, PerfEvent};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::os::fd::AsFd;

/// The most times that threads are listed. Threads may be created and end faster than events are opened on them.
const LISTINGS_MAX: u32 = 64;

/// The state of the tasks.
#[derive(Debug, Default)]
struct Followed {
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
    /// The tasks that inherited some of the events: they were created while these were opened.
    partly: FxHashSet<i32>,
}

impl Followed {
    /// Updates the state by a record of a ring.
    fn update(&mut self, time: Time, body: &Body) {
        match *body {
            Body::Fork { child, parent } if self.since.get(&parent.tid).is_some_and(|since| *since <= time) => {
                self.since.insert(child.tid, time);
            }
            Body::Fork { child, .. } => _ = self.partly.insert(child.tid),
            Body::Exit { task } => {
                self.since.remove(&task.tid);
                self.partly.remove(&task.tid);
            }
            Body::Comm { task, exec: true, .. } if time >= self.last_opened && self.partly.is_empty() => {
                self.since.insert(task.pid, time);
                self.renewed.insert(task.pid);
            }
            _ => {}
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
        let is_done = |tid: i32| self.since.contains_key(&tid) || self.ended.contains(&tid) && is_dead(pid, tid);
        tids.into_iter().filter(|tid| !is_done(*tid)).collect()
    }
}

/// Returns whether a task has ended. A first thread that has ended keeps its TID while other threads run.
fn is_dead(pid: i32, tid: i32) -> bool {
    procfs::thread_stat(crate::event::TaskId { pid, tid }).is_none_or(|stat| matches!(stat.state, b'Z' | b'X'))
}

impl Arming<'_> {
    /// Opens events on the threads of these processes. Returns false if some may be missing, since there were new
    /// threads at each listing.
    pub(super) fn processes(&mut self, pids: &[i32]) -> anyhow::Result<bool> {
        let mut followed = Followed::default();
        let inherits = self.plan.events.iter().any(|planned| planned.spec.role == Role::SideBand && planned.inherit);
        for _ in 0..LISTINGS_MAX {
            let listed: Vec<(i32, Vec<i32>)> = pids.iter().map(|&pid| (pid, procfs::threads(pid))).collect();
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
        // The guard is opened first. While its task has not ended, the events opened after it are on the same task.
        let first = |cpu: &&u32| PerfEvent::guard(tid, **cpu).ok();
        let guard = if pid == tid { self.plan.cpus.first().as_ref().and_then(first) } else { None };
        let opened = self.target(On::Task(tid));
        followed.last_opened = clock::now();
        match opened {
            Err(failure) if failure.is_gone() => {
                followed.ended.insert(tid);
                followed.partly.remove(&tid);
            }
            other => {
                other?;
                followed.since.insert(tid, followed.last_opened);
                followed.partly.remove(&tid);
                if let (Some(guard), Some(ring)) = (guard, self.armed.rings.first()) {
                    guard.set_output(self.armed.events[ring.owner].event.as_fd())?;
                    followed.guards.insert(pid, guard);
                }
            }
        }
        Ok(())
    }

    /// Reads the rings for the tasks that the followed tasks created and executed. The bytes are kept for the stream.
    fn read_rings(&mut self, followed: &mut Followed) {
        let table = &self.armed.table;
        let mut update = Vec::new();
        for of_cpu in &mut self.armed.rings {
            let before = of_cpu.early.len();
            // Invalid bytes are reported when the stream is read.
            let _ = of_cpu.ring.drain(&mut of_cpu.early);
            let records = Records::new(table, of_cpu.cpu, &of_cpu.early[before..]);
            update.extend(records.flatten().map(|record| (record.time, record.body)));
        }
        update.sort_by_key(|(time, _)| *time);
        update.iter().for_each(|(time, body)| followed.update(*time, body));
    }
}
