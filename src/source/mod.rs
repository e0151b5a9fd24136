//! Record sources, and the merge of their records into one stream in time order.

pub mod chunk;
pub mod dump;
pub mod file;
pub mod files;
pub mod frame;
pub mod instance;
pub mod memory;
pub mod merge;
pub mod proc_reader;
pub mod queue;
pub mod record;

use crate::session::Session;

pub use chunk::{Chunk, Form, Round};
pub use merge::Merge;
pub use record::{Body, Record, Sample};

/// A source of rounds: live rings, a chunk file, or memory.
pub trait Source {
    /// The session: the armed events and the machine on which they were recorded.
    fn session(&self) -> &Session;

    /// Returns the next complete round over all rings, or `None` at the end.
    ///
    /// # Errors
    /// A chunk file cannot be read, or its content is invalid.
    fn next_round(&mut self) -> anyhow::Result<Option<Round>>;

    /// Returns a round's buffers to the source for reuse.
    fn recycle(&mut self, _round: Round) {}
}
