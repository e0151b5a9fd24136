//! Where processes come from: the parent of a process, and the program that it executed, if the kernel reported that.
//! The next object of the process has them, whatever else it is about, so that a reader can put processes into a tree.

use super::write::Elements;
use crate::event::{Event, EventKind};
use rustc_hash::FxHashMap;

/// How many processes may have something that no object has yet. Most processes beyond have ended without an object, so
/// what is known of all of them is dropped.
const PROCESSES_MAX: usize = 1 << 16;

/// What no object has yet, by process.
#[derive(Default)]
pub struct Origins {
    parents: FxHashMap<i32, i32>,
    programs: FxHashMap<i32, Box<[u8]>>,
}

impl Origins {
    /// Takes the creation of a process, or the execution of a program. Other events say nothing.
    pub fn learn(&mut self, event: &Event) {
        if self.parents.len().max(self.programs.len()) >= PROCESSES_MAX {
            *self = Origins::default();
        }
        match &event.kind {
            EventKind::Fork { child, .. } if child.pid != event.task.pid => _ = self.parents.insert(child.pid, event.task.pid),
            EventKind::Exec { path, .. } => _ = self.programs.insert(event.task.pid, path.clone()),
            _ => {}
        }
    }

    /// Writes what no object of the process has yet.
    pub fn write(&mut self, o: &mut Elements, pid: i32) {
        if self.parents.is_empty() && self.programs.is_empty() {
            return;
        }
        self.parents.remove(&pid).iter().for_each(|parent| o.int("parent", i64::from(*parent)));
        self.programs.remove(&pid).iter().for_each(|path| o.bytes("program", path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beauty::samples;
    use crate::event::{TaskId, Time};

    fn members(origins: &mut Origins, pid: i32) -> String {
        let mut text = Vec::new();
        origins.write(&mut Elements::further(&mut text), pid);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_next_object_alone_has_the_parent_and_the_program() {
        let mut origins = Origins::default();
        let mut learn = |pid: i32, kind| {
            origins.learn(&Event { task: TaskId { pid, tid: pid }, ..samples::event(Time(0), kind) });
        };
        learn(7, EventKind::Fork { child: TaskId { pid: 8, tid: 8 }, flags: None });
        learn(8, EventKind::Fork { child: TaskId { pid: 8, tid: 9 }, flags: None });
        learn(8, EventKind::Exec { path: b"/bin/first"[..].into(), old_tid: 8 });
        learn(8, EventKind::Exec { path: b"/bin/x"[..].into(), old_tid: 8 });
        assert_eq!(members(&mut origins, 7), "");
        assert_eq!(members(&mut origins, 8), r#","parent":7,"program":"/bin/x""#);
        assert_eq!(members(&mut origins, 8), "");
    }

    #[test]
    fn processes_without_objects_do_not_accumulate() {
        let mut origins = Origins::default();
        for pid in 0..3 * PROCESSES_MAX as i32 {
            let kind = EventKind::Fork { child: TaskId { pid: pid + 1, tid: pid + 1 }, flags: None };
            origins.learn(&Event { task: TaskId { pid, tid: pid }, ..samples::event(Time(0), kind) });
        }
        assert!(origins.parents.len() <= PROCESSES_MAX);
    }
}
