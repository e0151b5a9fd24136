//! Rewrites the records of perf's files: each gets the layout that rtrace's own files have
//! ([`crate::source::rewrite::file_layout`]), and identifiers that are indices of the session's events.
//!
//! perf chooses the fields of samples by its options, and leaves out the identifier of a single event and the CPU where
//! it thinks that nobody needs them. Fields that rtrace does not use are left out here.

use super::attrs::PerfEvent;
use super::dump;
use super::fields::Fields;
use super::identity;
use crate::event::{EventIndex, Time};
use crate::source::frame::{Fault, Frame, HEADER_BYTES, field, kind};
use rustc_hash::FxHashMap;

/// PERF_RECORD_MMAP: a file was mapped, without the file's identity.
const MMAP: u32 = 1;
/// PERF_RECORD_MISC_MMAP_DATA: the mapping is not executable.
const MISC_MMAP_DATA: u16 = 1 << 13;
/// PERF_RECORD_MISC_MMAP_BUILD_ID: the record has a build-id in place of the file's identity.
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
/// The process of mappings of the kernel and its modules (-1).
const OF_KERNEL: [u8; 4] = [0xff; 4];
/// PROT_EXEC, and no flags of mmap(2).
const EXECUTABLE: [u8; 8] = [4, 0, 0, 0, 0, 0, 0, 0];

/// The fields of samples that are kept.
const KEPT: u64 = field::IP | field::ADDR | field::PERIOD | field::CALLCHAIN | field::RAW;

/// Returns the layout into which samples of an event are rewritten. `registers` are those that unwinding uses.
pub fn layout(event: &PerfEvent, registers: u64) -> u64 {
    event.sample_type & KEPT | dump::layout(event, registers) | field::NEEDED | field::CPU
}

/// Returns the identifier that the records of an event get.
pub fn id(event: EventIndex) -> u64 {
    u64::from(event.0) + 1
}

/// Returns the symbol at the beginning of the kernel's code and its address, if the record is that of the kernel's code
/// (perf writes one when it begins). The record of a file's mapping is none.
pub fn kernel_mapping<'a>(frame: &Frame<'a>) -> Option<(&'a [u8], u64)> {
    let name_at = match frame.kind {
        _ if !frame.body.starts_with(&OF_KERNEL) => return None,
        MMAP => 32,
        kind::MMAP2 => 64,
        _ => return None,
    };
    let address = frame.body.get(24..)?.first_chunk().copied().map(u64::from_le_bytes)?;
    let name = frame.body.get(name_at..)?.split(|byte| *byte == 0).next()?;
    Some((name.strip_prefix(b"[kernel.kallsyms]")?, address))
}

/// How records are rewritten.
#[derive(Debug)]
pub struct Normalizer {
    /// The events of the file with their indices in the session; `None` for those that rtrace does not decode.
    events: Vec<(PerfEvent, Option<EventIndex>)>,
    by_id: FxHashMap<u64, usize>,
    /// The event that records get which are no samples.
    side_band: EventIndex,
    /// The registers that unwinding uses.
    registers: u64,
}

/// A record that was rewritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Normalized {
    /// When the kernel wrote it; zero for what perf found when it began.
    pub time: Time,
    /// The CPU of its ring, as far as the file has it.
    pub cpu: u32,
    /// The place of the time in the bytes that it was appended to.
    pub time_at: usize,
}

impl Normalizer {
    /// Returns how records of these events are rewritten. `registers` are those that unwinding uses.
    pub fn new(events: Vec<(PerfEvent, Option<EventIndex>)>, side_band: EventIndex, registers: u64) -> Normalizer {
        let ids = |(at, (event, _)): (usize, &(PerfEvent, _))| event.ids.iter().map(|id| (*id, at)).collect::<Vec<_>>();
        Normalizer { by_id: events.iter().enumerate().flat_map(ids).collect(), events, side_band, registers }
    }

    /// Returns the index of the event that a record belongs to: the only one, or the one with its identifier.
    fn event(&self, frame: &Frame) -> Result<usize, Fault> {
        // perf sees to it that the identifier has the same place in all layouts of a file.
        let layout = self.events.first().map_or(0, |(event, _)| event.sample_type);
        let is_sample = frame.kind == kind::SAMPLE;
        let fields = |bits: u64| 8 * (layout & bits).count_ones() as usize;
        let at = match (is_sample, layout & field::IDENTIFIER != 0) {
            (true, true) => Some(0),
            (true, false) => Some(fields(field::IP | field::TID | field::TIME | field::ADDR)),
            (false, true) => frame.body.len().checked_sub(8),
            (false, false) => frame.body.len().checked_sub(8 + fields(field::STREAM_ID | field::CPU)),
        };
        if layout & (field::ID | field::IDENTIFIER) == 0 {
            return if self.events.len() == 1 { Ok(0) } else { Err(Fault::Layout(layout)) };
        }
        let id = at.and_then(|at| frame.body.get(at..)?.first_chunk().copied()).map(u64::from_le_bytes);
        match id.ok_or(Fault::Short { kind: frame.kind, size: frame.size() })? {
            // What perf itself wrote about tasks belongs to no event.
            0 if !is_sample => Ok(0),
            id => self.by_id.get(&id).copied().ok_or(Fault::UnknownEvent(id)),
        }
    }

    /// Returns the index in the session of the event that a record belongs to; `None` if rtrace does not decode it.
    pub fn event_of(&self, frame: &Frame) -> Option<EventIndex> {
        self.events[self.event(frame).ok()?].1
    }

    /// Appends a record. Returns `None` if it is one that rtrace does not use.
    ///
    /// # Errors
    /// The record cannot be read. Nothing is appended then.
    pub fn append(&self, frame: &Frame, out: &mut Vec<u8>) -> Result<Option<Normalized>, Fault> {
        let is_used = matches!(frame.kind, kind::SAMPLE | kind::COMM | kind::FORK | kind::EXIT | kind::LOST | kind::MMAP2 | MMAP);
        if !is_used || self.events.is_empty() {
            return Ok(None);
        }
        let (event, index) = &self.events[self.event(frame)?];
        let begin = out.len();
        out.extend([0; HEADER_BYTES]);
        let done = match (frame.kind, index) {
            (kind::SAMPLE, None) => Ok(None),
            (kind::SAMPLE, Some(index)) => self.sample(frame, event, *index, out).map(Some),
            _ => self.side_band(frame, event, out),
        };
        let size = out.len() - begin;
        let done = done.and_then(|done| match u16::try_from(size) {
            Ok(_) => Ok(done),
            Err(_) => Err(Fault::Large { size }),
        });
        if !matches!(done, Ok(Some(_))) {
            out.truncate(begin);
            return done;
        }
        let kind = if frame.kind == MMAP { kind::MMAP2 } else { frame.kind };
        let header = u64::from(kind) | u64::from(frame.misc) << 32 | (size as u64) << 48;
        out[begin..][..HEADER_BYTES].copy_from_slice(&header.to_le_bytes());
        done
    }

    /// Appends the fields of a sample.
    fn sample(&self, frame: &Frame, event: &PerfEvent, index: EventIndex, out: &mut Vec<u8>) -> Result<Normalized, Fault> {
        let read = read_sample(frame, event, index, self.registers, out);
        read.ok_or(Fault::Short { kind: frame.kind, size: frame.size() })
    }

    /// Appends a record that is no sample: its own fields, and behind them task, time, CPU and identifier.
    fn side_band(&self, frame: &Frame, event: &PerfEvent, out: &mut Vec<u8>) -> Result<Option<Normalized>, Fault> {
        let short = Fault::Short { kind: frame.kind, size: frame.size() };
        let layout = if event.sample_id_all { event.sample_type & field::TRAILER } else { 0 };
        let own = frame.body.len().checked_sub(8 * layout.count_ones() as usize).ok_or(short)?;
        let (own, trailer) = frame.body.split_at(own);
        let mut trailer = Fields { rest: trailer, layout };
        let task = trailer.optional(field::TID);
        let time = trailer.optional(field::TIME);
        trailer.optional(field::ID);
        trailer.optional(field::STREAM_ID);
        let cpu = trailer.optional(field::CPU);
        match frame.kind {
            // perf writes forks of the tasks that it found. They say nothing that their names do not.
            kind::FORK if time == 0 => return Ok(None),
            // The code of the kernel and its modules belongs to no process.
            kind::MMAP2 | MMAP if own.starts_with(&OF_KERNEL) => return Ok(None),
            kind::MMAP2 => {
                out.extend(own.get(..32).ok_or(short)?);
                let file = own.get(32..56).and_then(<[u8]>::first_chunk).copied().ok_or(short)?;
                out.extend(if frame.misc & MISC_MMAP_BUILD_ID == 0 { file } else { identity::of_build_id(file) });
                out.extend(&own[56..]);
            }
            MMAP => {
                out.extend(own.get(..32).ok_or(short)?);
                out.extend([0; 24]);
                out.extend(if frame.misc & MISC_MMAP_DATA == 0 { EXECUTABLE } else { [0; 8] });
                out.extend(&own[32..]);
            }
            _ => out.extend(own),
        }
        out.extend(task.to_le_bytes());
        [time, cpu, id(self.side_band)].iter().for_each(|word| out.extend(word.to_le_bytes()));
        Ok(Some(Normalized { time: Time(time), cpu: cpu as u32, time_at: out.len() - 24 }))
    }
}

/// Appends the fields of a sample. Returns `None` where the bytes end.
fn read_sample(frame: &Frame, event: &PerfEvent, index: EventIndex, registers: u64, out: &mut Vec<u8>) -> Option<Normalized> {
    let mut fields = Fields { rest: frame.body, layout: event.sample_type };
    let mut read = |bit: u64| fields.sample_field(bit);
    read(field::IDENTIFIER)?;
    let (ip, task, time, address) = (read(field::IP)?, read(field::TID)?, read(field::TIME)?, read(field::ADDR)?);
    read(field::ID)?;
    read(field::STREAM_ID)?;
    let (cpu, period) = (read(field::CPU)?, read(field::PERIOD)?);
    if event.sample_type & field::READ != 0 {
        fields.skip_counter(event.read_format)?;
    }
    let (time, cpu) = (time.unwrap_or(0), cpu.unwrap_or(0) & 0xffff_ffff);
    let words = [Some(id(index)), ip, Some(task.unwrap_or(0)), Some(time), address, Some(cpu), period];
    let time_at = out.len() + if ip.is_some() { 24 } else { 16 };
    words.into_iter().flatten().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    if let Some(addresses) = fields.sample_field(field::CALLCHAIN)? {
        out.extend_from_slice(&addresses.to_le_bytes());
        out.extend_from_slice(fields.take(usize::try_from(addresses).ok()?.checked_mul(8)?)?);
    }
    if event.sample_type & field::RAW != 0 {
        let size = fields.take(4)?;
        out.extend_from_slice(size);
        out.extend_from_slice(fields.take(size.first_chunk().copied().map_or(0, u32::from_le_bytes) as usize)?);
    }
    dump::copy(&mut fields, event, registers, out)?;
    Some(Normalized { time: Time(time), cpu: cpu as u32, time_at })
}

#[cfg(test)]
mod tests;
