//! tracefs instances: buffers of our own for events that perf accepts and delivers nothing of.
//!
//! Nothing here wakes rtrace up: the buffers are looked at when perf's rings are ([`crate::arm::live`]), and what they cannot hold meanwhile the kernel overwrites and counts.

pub mod buffer;
pub mod left;
pub mod made;
pub mod page;
pub mod stats;

pub use made::{Instance, Size, Whose};
