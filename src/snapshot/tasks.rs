//! What is known of the tasks at one moment of the stream: the state in which a snapshot begins.
//!
//! It follows from the records about tasks and from what was read in /proc. It has the living tasks only, so it is as
//! large as the machine's tasks are many, however long the trace is.

use crate::event::synthesized::FileMapping;
use crate::event::{Abi, Synthesized, TaskId, Time};
use crate::source::record::Body;
use crate::task::maps::Maps;
use std::collections::{BTreeMap, BTreeSet};

/// A task that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTask {
    /// The thread and its process.
    pub id: TaskId,
    /// Its comm; `None` if its parent's was not known, and it has not executed a program since.
    pub comm: Option<Vec<u8>>,
    /// The process that created it, or 0.
    pub parent: i32,
    /// When it started.
    pub started: Time,
    /// Its cgroup, if cgroups are followed.
    pub cgroup: Option<Vec<u8>>,
    /// The ABI of its program; `None` if it has executed a program since that was read.
    pub abi: Option<Abi>,
    /// It is in a pid namespace below rtrace's.
    pub nested: bool,
}

/// The tasks that are alive, and the mappings of their processes.
#[derive(Clone, Debug, Default)]
pub struct KnownTasks {
    /// By process and thread.
    tasks: BTreeMap<(i32, i32), KnownTask>,
    /// The traced processes, where the side band is that of all tasks ([`crate::session::Session::processes`]).
    processes: Option<BTreeSet<i32>>,
    maps: Maps,
}

impl KnownTasks {
    /// Returns the state in which nothing is known but which processes are traced, if the side band is that of all
    /// tasks.
    pub fn new(processes: Option<&[i32]>) -> KnownTasks {
        KnownTasks { processes: processes.map(|pids| pids.iter().copied().collect()), ..KnownTasks::default() }
    }

    /// Returns the traced processes that are alive, if the side band is that of all tasks.
    pub fn processes(&self) -> Option<Vec<i32>> {
        self.processes.as_ref().map(|pids| pids.iter().copied().collect())
    }

    /// Applies what a record of the side band says.
    pub fn record(&mut self, time: Time, body: &Body) {
        match *body {
            Body::Fork { child, parent } => self.fork(child, parent, time),
            Body::Comm { task, comm, exec } => {
                let known = self.task(task, time);
                known.comm = Some(comm.to_vec());
                if exec {
                    known.abi = None;
                    self.maps.clear(task.pid);
                    // The other threads have ended. One of them may have been the one that executed the program.
                    let threads = self.tasks.range((task.pid, i32::MIN)..=(task.pid, i32::MAX)).map(|(key, _)| *key);
                    let ended: Vec<_> = threads.filter(|(_, tid)| *tid != task.tid).collect();
                    ended.iter().for_each(|key| _ = self.tasks.remove(key));
                }
            }
            Body::Exit { task } => self.end(task),
            Body::Map { task, start, len, offset, file, executable, path } => {
                self.maps.map(task.pid, (start, len, offset), executable, file, path);
            }
            // Which tasks have ended or changed meanwhile is not known.
            Body::Lost { .. } => self.forget(),
            _ => {}
        }
    }

    /// Applies what a synthesized record says about tasks.
    pub fn fact(&mut self, time: Time, fact: &Synthesized) {
        match fact {
            Synthesized::Spawned { task, cgroup, nested, .. } => {
                let known = self.task(*task, time);
                (known.cgroup, known.nested) = (cgroup.clone(), *nested);
            }
            Synthesized::Executed { task, comm } => self.task(*task, time).comm = Some(comm.clone()),
            Synthesized::Task { task, comm, ppid, started, cgroup, abi, nested } => {
                let known = KnownTask {
                    id: *task,
                    comm: Some(comm.clone()),
                    parent: *ppid,
                    started: *started,
                    cgroup: cgroup.clone(),
                    abi: *abi,
                    nested: *nested,
                };
                self.tasks.insert((task.pid, task.tid), known);
            }
            Synthesized::Maps { pid, maps } => {
                for FileMapping { start, end, offset, file, path } in maps {
                    self.maps.map(*pid, (*start, end.saturating_sub(*start), *offset), true, *file, path);
                }
            }
            Synthesized::Full { .. } => self.forget(),
            _ => {}
        }
    }

    /// Returns what is known of a task.
    pub fn get(&self, task: TaskId) -> Option<&KnownTask> {
        self.tasks.get(&(task.pid, task.tid))
    }

    /// Adds what was read of a task later, as far as it is not known.
    pub fn add_missing(&mut self, time: Time, read: &Synthesized) {
        let Synthesized::Task { task, comm, ppid, started, cgroup, abi, nested } = read else { return };
        if self.get(*task).is_none() {
            return self.fact(time, read);
        }
        let known = self.task(*task, time);
        known.comm.get_or_insert_with(|| comm.clone());
        known.abi = known.abi.or(*abi);
        if known.parent == 0 {
            (known.parent, known.started, known.nested) = (*ppid, *started, *nested);
        }
        if known.cgroup.is_none() {
            known.cgroup.clone_from(cgroup);
        }
    }

    /// Returns the tasks of which something that a snapshot needs is not known.
    pub fn incomplete(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.values().filter(|task| task.comm.is_none() || task.abi.is_none()).map(|task| task.id)
    }

    /// Returns the facts from which a stream continues in this state.
    pub fn facts(&self) -> Vec<Synthesized> {
        let tasks = self.tasks.values().filter_map(|task| {
            Some(Synthesized::Task {
                task: task.id,
                comm: task.comm.clone()?,
                ppid: task.parent,
                started: task.started,
                cgroup: task.cgroup.clone(),
                abi: task.abi,
                nested: task.nested,
            })
        });
        let mut processes: Vec<i32> = self.tasks.keys().map(|(pid, _)| *pid).collect();
        processes.dedup();
        let maps = processes.into_iter().filter_map(|pid| {
            let areas = self.maps.of(pid)?.iter().filter(|(_, area)| area.executable);
            let maps: Vec<FileMapping> = areas
                .map(|(start, area)| FileMapping {
                    start: *start,
                    end: area.end,
                    offset: area.offset,
                    file: area.file,
                    path: area.path.to_vec(),
                })
                .collect();
            (!maps.is_empty()).then_some(Synthesized::Maps { pid, maps })
        });
        tasks.chain(maps).collect()
    }

    fn task(&mut self, task: TaskId, time: Time) -> &mut KnownTask {
        let unknown = || KnownTask { id: task, comm: None, parent: 0, started: time, cgroup: None, abi: None, nested: false };
        self.tasks.entry((task.pid, task.tid)).or_insert_with(unknown)
    }

    fn fork(&mut self, child: TaskId, parent: TaskId, time: Time) {
        // Two perf events may report the same fork, before the child does anything.
        if self.get(child).is_some() {
            return;
        }
        let known = match self.get(parent) {
            Some(from) => KnownTask { id: child, parent: parent.pid, started: time, ..from.clone() },
            None => KnownTask { id: child, comm: None, parent: parent.pid, started: time, cgroup: None, abi: None, nested: false },
        };
        self.tasks.insert((child.pid, child.tid), known);
        if child.pid != parent.pid {
            self.maps.fork(parent.pid, child.pid);
            if let Some(processes) = self.processes.as_mut().filter(|processes| processes.contains(&parent.pid)) {
                processes.insert(child.pid);
            }
        }
    }

    fn end(&mut self, task: TaskId) {
        self.tasks.remove(&(task.pid, task.tid));
        // Other threads may outlive the leader.
        if self.tasks.range((task.pid, i32::MIN)..=(task.pid, i32::MAX)).next().is_none() {
            self.maps.clear(task.pid);
            self.processes.as_mut().map(|processes| processes.remove(&task.pid));
        }
    }

    fn forget(&mut self) {
        *self = KnownTasks { processes: self.processes.take(), ..KnownTasks::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: TaskId = TaskId { pid: 10, tid: 10 };
    const CHILD: TaskId = TaskId { pid: 20, tid: 20 };

    fn read(task: TaskId, comm: &str) -> Synthesized {
        let comm = comm.as_bytes().to_vec();
        Synthesized::Task { task, comm, ppid: 1, started: Time(1), cgroup: None, abi: Some(Abi::I386), nested: true }
    }

    fn comms(tasks: &KnownTasks) -> Vec<(i32, String, Option<Abi>)> {
        let of = |fact: Synthesized| match fact {
            Synthesized::Task { task, comm, abi, .. } => Some((task.tid, String::from_utf8(comm).unwrap(), abi)),
            _ => None,
        };
        tasks.facts().into_iter().filter_map(of).collect()
    }

    #[test]
    fn a_child_is_what_its_parent_was_until_it_executes_a_program() {
        let mut tasks = KnownTasks::default();
        tasks.fact(Time(5), &read(PARENT, "sh"));
        tasks.record(Time(6), &Body::Fork { child: CHILD, parent: PARENT });
        assert_eq!(comms(&tasks), [(10, "sh".into(), Some(Abi::I386)), (20, "sh".into(), Some(Abi::I386))]);
        tasks.record(Time(7), &Body::Comm { task: CHILD, comm: b"cat", exec: true });
        tasks.record(Time(7), &Body::Fork { child: CHILD, parent: PARENT });
        assert_eq!(comms(&tasks), [(10, "sh".into(), Some(Abi::I386)), (20, "cat".into(), None)]);
        assert_eq!(tasks.incomplete().collect::<Vec<_>>(), [CHILD]);
        tasks.record(Time(8), &Body::Exit { task: PARENT });
        assert_eq!(comms(&tasks), [(20, "cat".into(), None)]);
    }

    #[test]
    fn traced_processes_are_followed_where_the_side_band_has_all() {
        let other = TaskId { pid: 30, tid: 30 };
        let mut tasks = KnownTasks::new(Some(&[10]));
        tasks.record(Time(6), &Body::Fork { child: CHILD, parent: PARENT });
        tasks.record(Time(6), &Body::Fork { child: TaskId { pid: 31, tid: 31 }, parent: other });
        tasks.record(Time(7), &Body::Lost { records: 1, after: None });
        assert_eq!(tasks.processes(), Some(vec![10, 20]));
        tasks.record(Time(8), &Body::Exit { task: PARENT });
        assert_eq!(tasks.processes(), Some(vec![20]));
        assert_eq!(KnownTasks::default().processes(), None);
    }

    #[test]
    fn after_a_gap_nothing_is_known() {
        let mut tasks = KnownTasks::default();
        tasks.fact(Time(5), &read(PARENT, "sh"));
        tasks.record(Time(6), &Body::Lost { records: 1, after: None });
        assert_eq!(tasks.facts(), []);
        tasks.record(Time(7), &Body::Fork { child: CHILD, parent: PARENT });
        assert_eq!(comms(&tasks), [], "the comm of the parent is not known");
    }

    #[test]
    fn mappings_belong_to_the_process_as_long_as_it_has_a_thread() {
        let thread = TaskId { pid: 10, tid: 11 };
        let mut tasks = KnownTasks::default();
        tasks.fact(Time(5), &read(PARENT, "sh"));
        let map =
            |start| Body::Map { task: PARENT, start, len: 4096, offset: 0, file: Default::default(), executable: true, path: b"/lib" };
        tasks.record(Time(6), &map(4096));
        tasks.record(Time(6), &Body::Fork { child: thread, parent: PARENT });
        tasks.record(Time(6), &Body::Fork { child: CHILD, parent: thread });
        let of = |tasks: &KnownTasks| {
            let pid = |fact| if let Synthesized::Maps { pid, maps } = fact { Some((pid, maps.len())) } else { None };
            tasks.facts().into_iter().filter_map(pid).collect::<Vec<_>>()
        };
        assert_eq!(of(&tasks), [(10, 1), (20, 1)]);
        tasks.record(Time(7), &Body::Exit { task: PARENT });
        tasks.record(Time(7), &map(8192));
        assert_eq!(of(&tasks), [(10, 2), (20, 1)]);
        tasks.record(Time(8), &Body::Exit { task: thread });
        assert_eq!(of(&tasks), [(20, 1)]);
    }
}
