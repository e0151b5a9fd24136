//! Delays the tasks of a command while a ring buffer is nearly full (`--lossless`), by the CPU controller of cgroups.
//! It puts off tasks that run, and interrupts no call: those of a frozen or stopped process would return EINTR.
//!
//! ```text
//! run ──command, rings──▶ process.rs ──protocol.rs──▶ watcher.rs, in a process of its own ──policy.rs──▶ group.rs
//! ```
//!
//! The process that watches the rings is not rtrace itself, which may be stopped, or wait for a CPU. It also lifts the
//! limit and removes the cgroup when rtrace ends, however it ends.

mod controller;
mod group;
mod policy;
mod process;
mod protocol;
mod stale;
mod watcher;

pub use process::Throttle;
pub use protocol::RingKind;
pub use stale::remove_stale;
pub use watcher::serve_if_started_as_watcher;
