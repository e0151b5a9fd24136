//! Chunks and rounds: owned copies of the bytes that the rings held.

use crate::event::{Synthesized, Time};

/// The bytes that one ring held, in the ring's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The CPU of the ring.
    pub cpu: u32,
    /// The format of the bytes.
    pub form: Form,
    /// The content of the ring: whole records or whole pages.
    pub bytes: Vec<u8>,
}

/// The format of a chunk's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// Complete perf records ([`super::frame`]).
    #[default]
    Records,
    /// Pages of a tracefs instance's buffer ([`super::instance::page`]).
    Pages,
}

/// One complete pass over all rings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The time at which the round began, read before the first ring was drained. All records of a later round are
    /// younger than the `started` of the round before it.
    pub started: Time,
    /// At most one chunk per ring. Rings that were empty have none.
    pub chunks: Vec<Chunk>,
    /// Records that rtrace synthesized from /proc since the last round.
    pub synthesized: Vec<(Time, Synthesized)>,
}

impl Round {
    /// Returns the number of bytes of records.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|c| c.bytes.len()).sum()
    }

    /// Returns the approximate memory use in bytes. It is greater than zero, so that a bound in bytes also bounds the
    /// number of rounds.
    pub fn weight(&self) -> usize {
        size_of::<Round>()
            + self.bytes()
            + self.chunks.len() * size_of::<Chunk>()
            + self.synthesized.iter().map(|(_, record)| size_of::<(Time, Synthesized)>() + record.bytes()).sum::<usize>()
    }
}
