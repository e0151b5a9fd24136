//! Filters side-band records by process, if the side band is system-wide.

use crate::source::Body;
use rustc_hash::FxHashSet;

/// The traced processes.
pub struct ProcessFilter {
    processes: FxHashSet<i32>,
}

impl ProcessFilter {
    pub fn new(targets: &[i32]) -> ProcessFilter {
        ProcessFilter { processes: targets.iter().copied().collect() }
    }

    /// Returns whether a record belongs to a traced process. Children of traced processes are added.
    pub fn accepts(&mut self, body: &Body) -> bool {
        match body {
            Body::Fork { child, parent } if self.processes.contains(&parent.pid) => {
                self.processes.insert(child.pid);
                true
            }
            // The pid was reused by a process that is not traced.
            Body::Fork { child, .. } => {
                self.processes.remove(&child.pid);
                false
            }
            Body::Comm { task, .. } | Body::Exit { task } | Body::Map { task, .. } => self.processes.contains(&task.pid),
            Body::Sample(_) | Body::Lost { .. } | Body::Missed { .. } | Body::Synthesized(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::TaskId;

    fn id(pid: i32, tid: i32) -> TaskId {
        TaskId { pid, tid }
    }

    #[test]
    fn children_are_traced_until_their_pid_is_reused() {
        let mut filter = ProcessFilter::new(&[10]);
        assert!(filter.accepts(&Body::Fork { child: id(10, 11), parent: id(10, 10) }));
        assert!(filter.accepts(&Body::Fork { child: id(20, 20), parent: id(10, 11) }));
        assert!(filter.accepts(&Body::Exit { task: id(20, 20) }));
        assert!(!filter.accepts(&Body::Exit { task: id(21, 21) }));
        assert!(!filter.accepts(&Body::Fork { child: id(20, 20), parent: id(1, 1) }));
        assert!(!filter.accepts(&Body::Comm { task: id(20, 20), comm: b"other", exec: true }));
    }
}
