//! tracefs instances: separate ring buffers for events that perf_event_open(2) accepts but never delivers.
//!
//! The buffers wake up no reader. They are read together with perf's rings ([`crate::arm::live`]). The kernel
//! overwrites and counts the records that they cannot hold until then.

pub mod buffer;
pub mod page;
pub mod setup;
pub mod stale;
pub mod stats;

pub use setup::{Instance, Size, TaskFilter};
