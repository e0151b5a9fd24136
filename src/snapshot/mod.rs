//! Snapshots: the newest records of rings that the kernel overwrites, as the rounds of a recording.
//!
//! ```text
//! side band ──journal.rs──▶ tasks.rs (before the rings' oldest records), entries (since then)
//! rings, newest record first ──ring.rs──▶ records in order ──rounds.rs──▶ rounds of a recording
//! ```
//!
//! The records of calls overwrite each other in their rings, and nobody reads them until a snapshot is taken. The
//! records about tasks are few. They are read at once, as in every trace, because a snapshot needs what they say from
//! before its beginning. Nothing here reads the system.

mod journal;
mod ring;
mod rounds;
mod tasks;

pub use journal::{Entry, Journal, Match};
pub use ring::RingRecords;
pub use rounds::{Content, rounds};
pub use tasks::KnownTasks;
