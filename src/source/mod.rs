//! Where records come from, and how they become one stream in time order.

pub mod chunk;
pub mod dump;
pub mod file;
pub mod files;
pub mod frame;
pub mod instance;
pub mod look;
pub mod memory;
pub mod merge;
pub mod queue;
pub mod record;

use crate::session::Session;

pub use chunk::{Chunk, Form, Round};
pub use merge::Merge;
pub use record::{Body, Record, Sample};

/// A giver of rounds: live rings, a file, or memory.
pub trait Source {
    /// What was armed, on which machine.
    fn session(&self) -> &Session;

    /// The next complete round over all rings; `None` at the end.
    ///
    /// # Errors
    /// A file that cannot be read or is not what it says.
    fn next_round(&mut self) -> anyhow::Result<Option<Round>>;

    /// Gives a round's buffers back for reuse.
    fn recycle(&mut self, _round: Round) {}
}
