//! What strace sees later than the kernel reports it.
//!
//! strace is told of a signal when the task leaves the kernel, and of the end of a process's first thread (the leader)
//! when no other thread is left. The kernel's events are earlier: a signal that is ignored, or that kills, is seen when
//! it is sent, and the leader's end when it ends.

use crate::event::{Event, TaskId, Time};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Events whose lines come later.
#[derive(Default)]
pub struct Later {
    /// The signals of each task.
    signals: FxHashMap<i32, Vec<Event>>,
    /// The living threads of each process, without its leader.
    threads: FxHashMap<i32, FxHashSet<i32>>,
    /// The ends of leaders whose processes have other threads.
    leaders: FxHashMap<i32, Event>,
}

impl Later {
    /// Notes that a task is alive.
    pub fn seen(&mut self, task: TaskId) {
        if task.tid != task.pid {
            self.threads.entry(task.pid).or_default().insert(task.tid);
        }
    }

    /// Keeps a signal until the task leaves the kernel.
    pub fn keep(&mut self, event: &Event) {
        self.signals.entry(event.task.tid).or_default().push(event.clone());
    }

    /// Takes the signals of a task that were sent up to the time `at`, and moves them to that time.
    pub fn signals(&mut self, tid: i32, at: Time) -> Vec<Event> {
        if self.signals.is_empty() {
            return Vec::new();
        }
        let Some(kept) = self.signals.get_mut(&tid) else { return Vec::new() };
        let count = kept.partition_point(|event| event.time <= at);
        let mut taken: Vec<Event> = kept.drain(..count).collect();
        if kept.is_empty() {
            self.signals.remove(&tid);
        }
        taken.iter_mut().for_each(|event| event.time = at);
        taken
    }

    /// Notes the end of a task. Returns the ends that strace sees now: not that of a leader before the other threads,
    /// but after the last of these.
    pub fn ended(&mut self, event: &Event) -> SmallVec<[Event; 2]> {
        let TaskId { pid, tid } = event.task;
        let is_second = tid == pid && self.leaders.remove(&pid).is_some();
        if is_second {
            // Another thread executed a program, and no line said so.
            self.executed(pid);
        }
        if tid == pid && self.threads.get(&pid).is_some_and(|threads| !threads.is_empty()) {
            self.leaders.insert(pid, event.clone());
            return SmallVec::new();
        }
        let mut ends: SmallVec<[Event; 2]> = std::iter::once(event.clone()).collect();
        let is_last = self.threads.get_mut(&pid).is_none_or(|threads| {
            threads.remove(&tid);
            threads.is_empty()
        });
        if is_last {
            self.threads.remove(&pid);
            ends.extend(self.leaders.remove(&pid).map(|leader| Event { time: event.time, ..leader }));
        }
        ends
    }

    /// Notes that a process executes a program. Only its leader is left, even if another thread called execve.
    pub fn executed(&mut self, pid: i32) {
        self.threads.remove(&pid);
        self.leaders.remove(&pid);
    }

    /// Takes everything, in the order of time: signals and ends of leaders.
    pub fn take_all(&mut self) -> Vec<Event> {
        let mut all: Vec<Event> = self.signals.drain().flat_map(|(_, kept)| kept).collect();
        all.extend(self.leaders.drain().map(|(_, event)| event));
        all.sort_by_key(|event| event.time);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Disposition, EventKind, Signal, TaskEnd};

    fn event(pid: i32, tid: i32, time: u64, kind: EventKind) -> Event {
        Event { time: Time(time), cpu: 0, task: TaskId { pid, tid }, comm: None, kind }
    }

    fn end(pid: i32, tid: i32, time: u64) -> Event {
        event(pid, tid, time, EventKind::Exit(TaskEnd::Exited(0)))
    }

    fn ended(later: &mut Later, event: &Event) -> Vec<(i32, u64)> {
        later.ended(event).iter().map(|event| (event.task.tid, event.time.0)).collect()
    }

    #[test]
    fn a_leader_ends_after_its_threads() {
        let mut later = Later::default();
        for tid in [8, 9] {
            later.seen(TaskId { pid: 7, tid });
        }
        assert_eq!(ended(&mut later, &end(7, 8, 1)), [(8, 1)]);
        assert_eq!(ended(&mut later, &end(7, 7, 2)), []);
        assert_eq!(ended(&mut later, &end(7, 9, 3)), [(9, 3), (7, 3)]);
        assert_eq!(ended(&mut later, &end(5, 5, 4)), [(5, 4)]);
    }

    #[test]
    fn a_thread_that_executes_a_program_takes_the_place_of_the_leader() {
        let mut later = Later::default();
        later.seen(TaskId { pid: 7, tid: 8 });
        assert_eq!(ended(&mut later, &end(7, 7, 1)), []);
        later.executed(7);
        assert_eq!(ended(&mut later, &end(7, 7, 2)), [(7, 2)]);
    }

    #[test]
    fn signals_wait_for_the_end_of_a_call() {
        let of = |disposition, number| EventKind::Signal(Box::new(Signal { number, disposition, ..Signal::default() }));
        let mut later = Later::default();
        later.keep(&event(7, 7, 10, of(Disposition::Ignored, 17)));
        later.keep(&event(7, 7, 11, of(Disposition::Kills, 15)));
        assert!(later.signals(7, Time(9)).is_empty() && later.signals(8, Time(20)).is_empty());
        let times: Vec<u64> = later.signals(7, Time(20)).iter().map(|event| event.time.0).collect();
        assert_eq!(times, [20, 20]);
        assert!(later.take_all().is_empty());
    }
}
