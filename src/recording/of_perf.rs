//! Reads a recording of perf (`perf trace record`, `perf record -e 'raw_syscalls:*'`, `perf record -e 'syscalls:*'`) as
//! the input of the engine.
//!
//! Such a file has the records of the kernel, and what perf read in /proc as records of the kernel's types. It has no
//! memory that arguments point to, no files of descriptors, and no counts of calls: what rtrace does not find there it
//! does not show, and never guesses.

mod attrs;
mod dump;
mod fields;
mod identity;
mod normalize;
mod programs;
mod session;

pub use identity::{BuildIdBytes, build_id, padded};
pub use programs::{KernelPlace, Programs};

use super::fact::Begin;
use super::layout::{Header, kind};
use super::reader::Damage;
use super::record_stream::{RecordStream, Regular};
use super::round_builder::RoundBuilder;
use crate::event::{EventIndex, Synthesized, Time};
use crate::source::{Input, Round, frame};
use crate::stack::symbols::ReadAt;
use normalize::{Normalized, Normalizer};
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// Returns the identifiers of a file's events; `None` if they cannot be read.
pub fn event_ids(file: &dyn ReadAt, header: &Header) -> Option<impl Iterator<Item = u64>> {
    attrs::events(file, header).ok().map(|events| events.into_iter().flat_map(|event| event.ids))
}

/// How many bytes of records form a round in a file without marks of rounds. Such files were sorted by time
/// (`perf inject`), or are older than the marks.
const UNMARKED_ROUND_BYTES: usize = 16 << 20;

/// A round ends at a mark when it has this many bytes. perf 7 writes a mark after every few records, and each round
/// costs more than they do.
const MARKED_ROUND_BYTES: usize = 64 << 10;

/// The largest round of a file with marks: that of a machine whose rings together have one GiB.
const ROUND_MAX: usize = 1 << 30;

/// How many places that cannot be read are kept. The others are counted.
const DAMAGES_MAX: usize = 100;

/// PERF_RECORD_MISC_LOST_SAMPLES_BPF: a filter of perf left the samples out.
const MISC_FILTERED: u16 = 1 << 15;

/// An open recording of perf.
pub struct PerfReader {
    begin: Begin,
    stream: RecordStream,
    normalizer: Normalizer,
    side_band: EventIndex,
    has_wall_clock: bool,
    lasts: Option<(Time, Time)>,
    round: RoundBuilder,
    /// The record that is being rewritten.
    record: Vec<u8>,
    /// The time of the newest record.
    newest: Time,
    /// The time of the newest record before the last mark.
    before: Time,
    has_marks: bool,
    lost: Lost,
    unreadable: u64,
    has_ended: bool,
    programs: Option<Programs>,
}

/// Records that the kernel dropped, as far as the file says.
#[derive(Debug, Default)]
struct Lost {
    /// By the LOST records of the rings, which also count other records than samples.
    in_rings: u64,
    /// By the counts of the events, which perf reads at the end.
    of_events: BTreeMap<u16, u64>,
}

impl PerfReader {
    /// Opens a recording with this header, and reads how its stream is to be read.
    ///
    /// # Errors
    /// The file is damaged, or has nothing that rtrace can show: a clause that continues the name of the file.
    pub fn open(file: Regular, header: &Header) -> Result<PerfReader, String> {
        let session::Found { session, selection, normalizer, side_band, has_wall_clock, lasts, programs } = session::read(&file, header)?;
        let begin = Begin { version: String::new(), selection, session, ..Begin::default() };
        Ok(PerfReader {
            begin,
            stream: RecordStream::new(Box::new(file), header.data),
            normalizer,
            side_band,
            has_wall_clock,
            lasts,
            round: RoundBuilder::default(),
            record: Vec::new(),
            newest: Time(0),
            before: Time(0),
            has_marks: false,
            lost: Lost::default(),
            unreadable: 0,
            has_ended: false,
            programs,
        })
    }

    /// Returns how the stream is to be read.
    pub fn begin(&self) -> &Begin {
        &self.begin
    }

    /// Returns what the file says about the programs of which it has stacks; `None` if it has no stacks.
    pub fn programs(&self) -> Option<&Programs> {
        self.programs.as_ref()
    }

    /// Returns whether the file says which time of day its time stamps mean.
    pub fn has_wall_clock(&self) -> bool {
        self.has_wall_clock
    }

    /// Returns the times of the first and the last sample; `None` if the file does not say them.
    pub fn lasts(&self) -> Option<(Time, Time)> {
        self.lasts
    }

    /// Returns what is wrong with the file, as far as it was read.
    pub fn damages(&self) -> &[Damage] {
        self.stream.damages()
    }

    /// Returns the number of records that cannot be read, beside those that are damages.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Returns the number of bytes of the records that were read, and that of all of them.
    pub fn progress(&self) -> (u64, u64) {
        self.stream.progress()
    }

    /// Takes the emptied buffers of chunks for reuse.
    pub fn recycle(&mut self, spent: Round) {
        self.round.recycle(spent);
    }

    /// Returns the next round; `None` at the end of the file, or where it cannot be read any further.
    pub fn next_input(&mut self) -> Option<Input> {
        while !self.has_ended {
            let Some(record) = self.stream.next_record() else {
                self.has_ended = true;
                self.add_losses();
                return Some(self.end_round());
            };
            match record.frame.kind {
                kind::FINISHED_ROUND => {
                    (self.has_marks, self.before) = (true, self.newest);
                    if self.round.bytes() >= MARKED_ROUND_BYTES {
                        return Some(self.end_round());
                    }
                    continue;
                }
                frame::kind::LOST => self.lost.in_rings += word(record.frame.body, 8),
                frame::kind::LOST_SAMPLES if record.frame.misc & MISC_FILTERED == 0 => {
                    let event = self.normalizer.event_of(&record.frame).unwrap_or(self.side_band);
                    *self.lost.of_events.entry(event.0).or_default() += word(record.frame.body, 0);
                }
                _ => {}
            }
            if let (Some(programs), Some((symbol, address))) = (&self.programs, normalize::kernel_mapping(&record.frame)) {
                *programs.kernel.lock().unwrap_or_else(PoisonError::into_inner) = Some((symbol.into(), address));
            }
            self.record.clear();
            let at = record.at;
            match self.normalizer.append(&record.frame, &mut self.record) {
                Ok(None) => {}
                Ok(Some(normalized)) => self.take(normalized),
                Err(fault) => self.cannot_read(Damage::Record { at, fault }),
            }
            let round_max = if self.has_marks { ROUND_MAX } else { UNMARKED_ROUND_BYTES };
            if self.round.bytes() >= round_max {
                return Some(self.end_round());
            }
        }
        None
    }

    /// Adds the record that was rewritten to the round.
    fn take(&mut self, Normalized { time, cpu, time_at }: Normalized) {
        if time == Time(0) {
            // What perf found when it began, or writes at its end: it holds from here on.
            self.record[time_at..][..8].copy_from_slice(&self.before.0.to_le_bytes());
        }
        self.newest = self.newest.max(time);
        self.round.record(cpu, &self.record);
    }

    /// Ends a round. What comes after the end of the next one is not older than the newest record of this one: perf
    /// writes a mark when it has read all rings, and sorts the records by this rule itself.
    fn end_round(&mut self) -> Input {
        self.before = self.newest;
        Input::Round(self.round.finish(self.newest))
    }

    /// Adds the numbers of lost records. The counts of the events, if perf wrote them, are of the same records as those
    /// of the rings.
    fn add_losses(&mut self) {
        let of_events: u64 = self.lost.of_events.values().sum();
        let others = self.lost.in_rings.saturating_sub(of_events);
        *self.lost.of_events.entry(self.side_band.0).or_default() += others;
        let lost = std::mem::take(&mut self.lost.of_events).into_iter().filter(|(_, records)| *records > 0);
        let facts = lost.map(|(event, records)| (self.newest, Synthesized::Lost { event: EventIndex(event), records }));
        facts.for_each(|(time, lost)| self.round.synthesized(time, lost));
    }

    fn cannot_read(&mut self, damage: Damage) {
        match self.stream.damages().len() {
            0..DAMAGES_MAX => self.stream.damaged(damage),
            _ => self.unreadable += 1,
        }
    }
}

/// Returns the number in 8 bytes at this place of a record.
fn word(body: &[u8], at: usize) -> u64 {
    body.get(at..).and_then(|rest| rest.first_chunk().copied()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests;
