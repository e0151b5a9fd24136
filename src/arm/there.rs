//! Arming of tasks that are there already, and that come, go and execute programs while events are opened on them.
//!
//! Whatever a task makes once all its events are open is followed by the kernel. So what is left to find are tasks that were made by others:
//!
//! ```text
//! list the threads ─▶ read the rings ─▶ open events on those that are not followed ─┐
//!        ▲               (who was made by whom, and when)                           │
//!        └──────────────────────────────────────────────────────────────────────────┘   until all that are listed are followed
//! ```
//!
//! The side band of a task is switched on as soon as it is open, so that its rings tell of what it makes. They also tell when a task that is followed executes a program: all other threads of its process are gone then. If one
//! that is not followed does, it takes over the number of the first thread, whose events end with their own task. An event that nobody inherits (the guard) tells that.

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

/// No more looks are made at threads that come and go faster than events are opened on them.
const LOOKS_MAX: u32 = 64;

/// What is known of the tasks.
#[derive(Debug, Default)]
struct Followed {
    /// Tasks whose events are all open, or who inherited them all, by number: since when.
    since: FxHashMap<i32, Time>,
    /// Since when no event was opened.
    last_opened: Time,
    /// Processes in which a task that is followed has executed a program: nobody else is in them.
    renewed: FxHashSet<i32>,
    /// By process, as long as its first thread is the one that is followed.
    guards: FxHashMap<i32, PerfEvent>,
    /// Tasks that were gone when they were to be armed, or are gone but for their number.
    ended: BTreeSet<i32>,
    /// Tasks that inherited some of the events: they were made while these were opened.
    partly: FxHashSet<i32>,
}

impl Followed {
    /// What a ring told since the last look.
    fn told(&mut self, time: Time, body: &Body) {
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

    /// Those of the listed tasks that are not followed.
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

/// A first thread that has ended keeps its number as long as others run.
fn is_dead(pid: i32, tid: i32) -> bool {
    procfs::thread_stat(crate::event::TaskId { pid, tid }).is_none_or(|stat| matches!(stat.state, b'Z' | b'X'))
}

impl Arming<'_> {
    /// Arms the threads of these processes. False: some may be missing, since there were new ones at each look.
    pub(super) fn processes(&mut self, pids: &[i32]) -> anyhow::Result<bool> {
        let mut followed = Followed::default();
        let inherits = self.plan.events.iter().any(|planned| planned.spec.role == Role::SideBand && planned.inherit);
        for _ in 0..LOOKS_MAX {
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
            // Whoever is made later is not meant.
            if !inherits {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn follow(&mut self, followed: &mut Followed, pid: i32, tid: i32) -> anyhow::Result<()> {
        // It is opened first: as long as it has not ended, what is opened behind it is on the same task.
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

    /// What the tasks that are followed made and executed until now. It stays with the rings' bytes, for whoever reads these later.
    fn read_rings(&mut self, followed: &mut Followed) {
        let table = &self.armed.table;
        let mut told = Vec::new();
        for of_cpu in &mut self.armed.rings {
            let before = of_cpu.early.len();
            // Bytes that make no sense are said when they are read again.
            let _ = of_cpu.ring.drain(&mut of_cpu.early);
            let records = Records::new(table, of_cpu.cpu, &of_cpu.early[before..]);
            told.extend(records.flatten().map(|record| (record.time, record.body)));
        }
        told.sort_by_key(|(time, _)| *time);
        told.iter().for_each(|(time, body)| followed.told(*time, body));
    }
}
