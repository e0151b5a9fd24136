//! Whose side-band records are wanted, where those of everybody come.

use crate::source::Body;
use rustc_hash::FxHashSet;

/// The processes that are followed.
pub struct Ours {
    processes: FxHashSet<i32>,
}

impl Ours {
    pub fn new(targets: &[i32]) -> Ours {
        Ours { processes: targets.iter().copied().collect() }
    }

    /// Whether a record is of one of them. What they make is theirs.
    pub fn has(&mut self, body: &Body) -> bool {
        match body {
            Body::Fork { child, parent } if self.processes.contains(&parent.pid) => {
                self.processes.insert(child.pid);
                true
            }
            // The number is somebody else's by now.
            Body::Fork { child, .. } => {
                self.processes.remove(&child.pid);
                false
            }
            Body::Comm { task, .. } | Body::Exit { task } | Body::Map { task, .. } => self.processes.contains(&task.pid),
            Body::Sample(_) | Body::Lost { .. } | Body::Missed { .. } | Body::Note(_) => true,
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
    fn children_are_ours_until_somebody_else_has_their_number() {
        let mut ours = Ours::new(&[10]);
        assert!(ours.has(&Body::Fork { child: id(10, 11), parent: id(10, 10) }));
        assert!(ours.has(&Body::Fork { child: id(20, 20), parent: id(10, 11) }));
        assert!(ours.has(&Body::Exit { task: id(20, 20) }));
        assert!(!ours.has(&Body::Exit { task: id(21, 21) }));
        assert!(!ours.has(&Body::Fork { child: id(20, 20), parent: id(1, 1) }));
        assert!(!ours.has(&Body::Comm { task: id(20, 20), comm: b"other", exec: true }));
    }
}
