//! What one look at the rings yields: owned copies of what each ring held.

use crate::event::{Note, Time};

/// The bytes that one ring held, in the ring's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    pub cpu: u32,
    pub form: Form,
    pub bytes: Vec<u8>,
}

/// How a ring's records are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// Whole perf records ([`super::frame`]).
    #[default]
    Records,
    /// Pages of a tracefs instance's buffer ([`super::instance::page`]).
    Pages,
}

/// One complete pass over all rings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The clock, read before the first ring was looked at. What a later round brings is younger than the `started` of the round before it.
    pub started: Time,
    /// At most one chunk a ring; rings that held nothing have none.
    pub chunks: Vec<Chunk>,
    /// What was learnt outside the rings.
    pub notes: Vec<(Time, Note)>,
}

impl Round {
    /// How many bytes of records it holds.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|c| c.bytes.len()).sum()
    }

    /// About how many bytes of memory it takes; more than zero, so that a bound in bytes is one in rounds too.
    pub fn weight(&self) -> usize {
        size_of::<Round>()
            + self.bytes()
            + self.chunks.len() * size_of::<Chunk>()
            + self.notes.iter().map(|(_, note)| size_of::<(Time, Note)>() + note.bytes()).sum::<usize>()
    }
}
