//! Puts the records of a file together to rounds.

use crate::event::{Synthesized, Time};
use crate::source::{Chunk, Form, Round};
use rustc_hash::FxHashMap;

/// The round that is being read.
#[derive(Debug, Default)]
pub struct RoundBuilder {
    round: Round,
    /// The index in `round.chunks` of the chunk of each CPU.
    chunk_of_cpu: FxHashMap<u32, usize>,
    /// The CPU of the last record, with the index of its chunk: records come in bursts of one CPU.
    recent: Option<(u32, usize)>,
    bytes: usize,
    /// Emptied buffers of chunks.
    spare: Vec<Vec<u8>>,
}

impl RoundBuilder {
    /// Takes the emptied buffers of chunks for reuse. Those of pages came from elsewhere.
    pub fn recycle(&mut self, spent: Round) {
        let of_records = spent.chunks.into_iter().filter(|chunk| chunk.form == Form::Records);
        self.spare.extend(of_records.map(|chunk| chunk.bytes));
    }

    /// Returns the number of bytes of records in the round.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether the round has nothing.
    pub fn is_empty(&self) -> bool {
        self.round.chunks.is_empty() && self.round.synthesized.is_empty()
    }

    /// Adds a record of the ring of this CPU.
    #[inline]
    pub fn record(&mut self, cpu: u32, record: &[u8]) {
        self.append(cpu, |bytes| bytes.extend_from_slice(record));
    }

    /// Lets a record of the ring of this CPU be appended to the bytes of its chunk. Returns what `append` returns.
    #[inline]
    pub fn append<T>(&mut self, cpu: u32, append: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let index = match self.recent.filter(|recent| recent.0 == cpu) {
            Some((_, index)) => index,
            None => self.chunk_of(cpu),
        };
        let bytes = &mut self.round.chunks[index].bytes;
        let before = bytes.len();
        let appended = append(bytes);
        self.bytes += bytes.len() - before;
        appended
    }

    /// Adds pages of the buffer of this CPU in a tracefs instance.
    pub fn pages(&mut self, cpu: u32, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.round.chunks.push(Chunk { cpu, form: Form::Pages, bytes });
    }

    /// Adds a record that rtrace synthesized.
    pub fn synthesized(&mut self, time: Time, record: Synthesized) {
        self.round.synthesized.push((time, record));
    }

    /// Returns the round, which began at this time, and begins the next one.
    pub fn finish(&mut self, started: Time) -> Round {
        self.chunk_of_cpu.clear();
        (self.recent, self.bytes) = (None, 0);
        Round { started, ..std::mem::take(&mut self.round) }
    }

    fn chunk_of(&mut self, cpu: u32) -> usize {
        let (chunks, spare) = (&mut self.round.chunks, &mut self.spare);
        let index = *self.chunk_of_cpu.entry(cpu).or_insert_with(|| {
            chunks.push(Chunk { cpu, form: Form::Records, bytes: spare.pop().unwrap_or_default() });
            chunks.len() - 1
        });
        self.recent = Some((cpu, index));
        index
    }
}
