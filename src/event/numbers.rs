//! Which tasks the numbers in a call mean.

use smallvec::SmallVec;

/// Which tasks the numbers in a call's arguments and return mean. A caller in another pid namespace than rtrace's has
/// other numbers for the same tasks (pid_namespaces(7)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// They are certainly those that [`TaskId`](super::TaskId) has.
    Same,
    /// They are those of another pid namespace, or may be. Of these it is known which task is meant: the number in the
    /// call, and the number that [`TaskId`](super::TaskId) has.
    Other(SmallVec<[(i32, i32); 2]>),
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers::Other(SmallVec::new())
    }
}

impl Numbers {
    /// Those of a caller in rtrace's own pid namespace, or in another one.
    pub fn of(nested: bool) -> Numbers {
        if nested { Numbers::default() } else { Numbers::Same }
    }

    /// The task that `number` means, if that is known.
    pub fn task(&self, number: i32) -> Option<i32> {
        match self {
            Numbers::Same => Some(number),
            Numbers::Other(known) => known.iter().find(|(there, _)| *there == number).map(|(_, here)| *here),
        }
    }

    /// Learns that `there` in the call means the task `here`. It says nothing new where the numbers are the same.
    pub fn add(&mut self, there: i32, here: i32) {
        if let Numbers::Other(known) = self
            && !known.contains(&(there, here))
        {
            known.push((there, here));
        }
    }
}
