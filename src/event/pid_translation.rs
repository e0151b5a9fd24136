//! The translation of pids in a call's arguments between pid namespaces.

use smallvec::SmallVec;

/// Which tasks the pids in a call's arguments and return value stand for. A caller in another pid namespace than
/// rtrace's uses other numbers for the same tasks (pid_namespaces(7)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PidTranslation {
    /// The pids are those that [`TaskId`](super::TaskId) has.
    Same,
    /// The pids belong, or may belong, to another pid namespace. Each known translation is a pair of the pid in the
    /// call and the pid that [`TaskId`](super::TaskId) has.
    Other(SmallVec<[(i32, i32); 2]>),
}

impl Default for PidTranslation {
    fn default() -> PidTranslation {
        PidTranslation::Other(SmallVec::new())
    }
}

impl PidTranslation {
    /// Returns the translation for a caller in a nested pid namespace, or in rtrace's own.
    pub fn of(nested: bool) -> PidTranslation {
        if nested { PidTranslation::default() } else { PidTranslation::Same }
    }

    /// Returns the task that `number` stands for, if it is known.
    pub fn task(&self, number: i32) -> Option<i32> {
        match self {
            PidTranslation::Same => Some(number),
            PidTranslation::Other(known) => known.iter().find(|(other, _)| *other == number).map(|(_, task)| *task),
        }
    }

    /// Stores that `number` in the call stands for the task `task`. This has no effect if the pids are the same.
    pub fn add(&mut self, number: i32, task: i32) {
        if let PidTranslation::Other(known) = self
            && !known.contains(&(number, task))
        {
            known.push((number, task));
        }
    }
}
