//! The tracked state of the traced tasks: tasks and their comms, file descriptors, mappings, signals.
//!
//! This code is pure: it processes records in time order, and answers queries about the time of the current record. It
//! reads nothing of the live machine itself. It asks for such reads ([`ProcRead`]), and the answers come back as
//! [`crate::event::Synthesized`] records in the stream.

pub mod cgroup_history;
pub mod child_pids;
pub mod ends;
pub mod fds;
pub mod kernel_pids;
pub mod maps;
pub mod proc_reader;
pub mod signals;
pub mod tasks;

pub use proc_reader::{ProcRead, ProcReader};
pub use tasks::Tasks;
