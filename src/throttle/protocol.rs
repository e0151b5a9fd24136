//! The messages between rtrace and the process that watches the rings.

use super::group::Group;
use serde::{Deserialize, Serialize};

/// The greatest length of a request in bytes.
pub const REQUEST_MAX: usize = 64 << 10;
/// The greatest length of a report in bytes.
pub const REPORT_MAX: usize = 4 << 10;

/// A ring whose descriptor a message passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingKind {
    /// Whether the descriptor is a BPF ring buffer. Otherwise it is an event with a ring.
    pub is_map: bool,
    /// The size of the ring's data in bytes.
    pub bytes: usize,
}

/// A message from rtrace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Watch these rings too. The message passes their descriptors in the same order.
    Rings(Vec<RingKind>),
    /// The rings are complete: delay the tasks of this cgroup from now on.
    Begin {
        group: Group,
        /// The CPUs on which the tasks may run.
        cpus: Vec<u32>,
        /// The fastest rate at which a ring is filled, in bytes per nanosecond.
        fill_rate: u64,
    },
}

/// A message to rtrace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The rings are watched. The text says why that is without real-time priority, if it is.
    Ready(Option<String>),
    /// The rings cannot be watched.
    Failed(String),
    /// A ring was written to although the tasks were held.
    NotDelayed,
}
