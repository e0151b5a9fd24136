//! Sets of syscalls in a stream, and those whose tracepoints the user asked for as events.

use crate::event::Abi;

/// A set of syscalls.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CallSet {
    /// The names of calls that have a row.
    pub names: Vec<String>,
    /// Calls that have a name but no row: the ABI, and the number in it.
    pub others: Vec<(Abi, u32)>,
    /// Whether all other calls without a row are in the set.
    pub nameless: bool,
}

impl CallSet {
    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        !self.nameless && self.names.is_empty() && self.others.is_empty()
    }
}

/// The calls that complete events: tracepoints at the entry and exit of calls (`syscalls:sys_enter_X`,
/// `raw_syscalls:sys_exit` and the like) that the user asked for. The BPF programs record these calls, at their entry
/// too, so that the events show strings, structs and files, which the records of the tracepoints do not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct EventCalls {
    /// The calls that the BPF programs record for such events.
    pub recorded: CallSet,
    /// Of all recorded calls, those that are shown themselves, because the user selected them as calls.
    pub shown: CallSet,
}
