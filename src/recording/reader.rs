//! Reads a recording as the input of the engine.
//!
//! The file may be damaged, cut or made by an enemy: every record that is whole is used, what is wrong with the rest is
//! a [`Damage`] with the place, and memory is bounded by the largest round that rtrace writes.

use super::fact::{self, Assembler, Begin, Fact};
use super::files::RecordedFiles;
use super::layout::{HEADER_BYTES, Header, kind};
use super::record_stream::{FileRecord, RecordStream, Regular};
use super::round_builder::RoundBuilder;
use crate::event::{Synthesized, Time};
use crate::source::frame::{self, Frame, field};
use crate::source::{Input, Round};
use crate::stack::symbols::ReadAt;
use anyhow::{Context, anyhow, bail};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest round. The rings together are smaller.
const ROUND_MAX: usize = 1 << 30;

/// What is wrong with a recording, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The recorder did not complete the file.
    #[error("it was not completed: the recorder was killed, or could not write")]
    NotFinished,
    /// The file ends inside a record, or a record has an impossible size.
    #[error("the record at byte {at} {fault}")]
    Record {
        /// The offset of the record in the file.
        at: u64,
        /// What is wrong with it.
        fault: frame::Fault,
    },
    /// A fact cannot be read.
    #[error("the fact at byte {at} {fault}")]
    Fact {
        /// The offset of the record that completes the fact.
        at: u64,
        /// What is wrong with it.
        fault: fact::Unreadable,
    },
    /// The file says that it has more records than it has bytes.
    #[error("it ends at byte {size}, {missing} bytes before the end of its records")]
    Cut {
        /// The size of the file.
        size: u64,
        /// The number of bytes that are missing.
        missing: u64,
    },
    /// A round is larger than any that rtrace writes.
    #[error("no round ends in the {ROUND_MAX} bytes before byte {at}")]
    Endless {
        /// The offset of the record that was not used.
        at: u64,
    },
    /// A compressed record cannot be read, nor what follows it.
    #[error("the compressed record at byte {at} {why}")]
    Compressed {
        /// The offset of the record in the file.
        at: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A read failed.
    #[error("byte {at} cannot be read: {why}")]
    Io {
        /// The offset of the first byte that was not read.
        at: u64,
        /// The error of the system call.
        why: String,
    },
}

/// The place of /proc/kallsyms of the traced machine, which is empty until the recording has it.
pub type KernelSymbols = Arc<Mutex<Option<Vec<u8>>>>;

/// An open recording.
pub struct Reader {
    /// The records; `None` while one of them is being taken.
    stream: Option<RecordStream>,
    begin: Begin,
    assembler: Assembler,
    /// The input that is being read.
    round: RoundBuilder,
    /// The event of the last sample.
    recent_event: Option<RecentEvent>,
    answers: Vec<(Time, Synthesized)>,
    /// Input that follows the one that was returned.
    waiting: Option<Input>,
    /// What is wrong with the file, in the order in which it was found.
    damages: Vec<Damage>,
    /// The records that the recorder could not read.
    unreadable: u64,
    files: RecordedFiles,
    kernel_symbols: KernelSymbols,
    has_ended: bool,
}

impl Reader {
    /// Opens a recording, and reads how its stream is to be read.
    ///
    /// # Errors
    /// The file cannot be read, or is no recording of rtrace.
    pub fn open(path: &Path) -> anyhow::Result<Reader> {
        Reader::new(Box::new(Regular::open(path)?)).with_context(|| format!("{} cannot be shown", path.display()))
    }

    /// Reads the beginning of a recording.
    ///
    /// # Errors
    /// It is no recording of rtrace, or its beginning is damaged.
    pub fn new(file: Box<dyn ReadAt>) -> anyhow::Result<Reader> {
        let mut bytes = [0; HEADER_BYTES as usize];
        let size = file.size();
        file.read_at(0, &mut bytes).map_err(|_| anyhow!("it is no recording: it has only {size} bytes"))?;
        let header = Header::parse(&bytes).map_err(|why| anyhow!("it {why}"))?;
        let mut reader = Reader {
            stream: Some(RecordStream::new(file, header.data)),
            begin: Begin::default(),
            assembler: Assembler::default(),
            round: RoundBuilder::default(),
            recent_event: None,
            answers: Vec::new(),
            waiting: None,
            damages: Vec::new(),
            unreadable: 0,
            files: RecordedFiles::default(),
            kernel_symbols: Arc::default(),
            has_ended: false,
        };
        reader.begin = reader.read_begin()?;
        Ok(reader)
    }

    /// Returns how the stream is to be read.
    pub fn begin(&self) -> &Begin {
        &self.begin
    }

    /// Returns what is wrong with the file, as far as it was read.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Returns the number of records that the recorder could not read, as far as the file was read.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Returns the number of bytes of the records that were read, and that of all of them.
    pub fn progress(&self) -> (u64, u64) {
        self.stream.as_ref().map_or((0, 0), RecordStream::progress)
    }

    /// Returns the files of the traced machine. A file is there before the records that need it.
    pub fn files(&self) -> RecordedFiles {
        self.files.clone()
    }

    /// Returns the place of the kernel's symbols, which are there before the first round.
    pub fn kernel_symbols(&self) -> KernelSymbols {
        Arc::clone(&self.kernel_symbols)
    }

    /// Takes the emptied buffers of chunks for reuse.
    pub fn recycle(&mut self, spent: Round) {
        self.round.recycle(spent);
    }

    /// Reads the first fact.
    fn read_begin(&mut self) -> anyhow::Result<Begin> {
        const NOT_OURS: &str = "it is not a recording of rtrace (only `rtrace -i` and `rtrace convert` read those of perf)";
        while let Some(record) = self.stream.as_mut().and_then(RecordStream::next_record) {
            let at = record.at;
            match is_fact(record).then(|| self.assembler.part(raw_of_fact(record))) {
                Some(Ok(None)) => {}
                Some(Ok(Some(Fact::Begin(begin)))) => return Ok(*begin),
                Some(Err(fault)) => bail!("the fact at byte {at} {fault}"),
                Some(Ok(Some(_))) | None => bail!(NOT_OURS),
            }
        }
        self.damages.extend(self.stream.as_mut().map(RecordStream::take_damages).unwrap_or_default());
        match self.damages.last() {
            Some(Damage::NotFinished) | None => bail!("it has no records"),
            Some(damage) => bail!("{damage}"),
        }
    }

    /// Returns the next piece of input; `None` at the end of the file, or where it cannot be read any further.
    pub fn next_input(&mut self) -> Option<Input> {
        if let Some(waiting) = self.waiting.take() {
            return Some(waiting);
        }
        if let Some(input) = self.next_completed() {
            return Some(input);
        }
        if !self.answers.is_empty() {
            return Some(Input::Answers(std::mem::take(&mut self.answers)));
        }
        // What is left of a round that was not completed.
        (!self.round.is_empty()).then(|| Input::Round(self.round.finish(Time(0))))
    }

    /// Reads records up to one that completes a piece of input.
    fn next_completed(&mut self) -> Option<Input> {
        // The records are lent by the stream while the reader takes them.
        let mut stream = self.stream.take()?;
        let mut completed = None;
        while completed.is_none() && !self.has_ended {
            let Some(record) = stream.next_record() else { break };
            completed = self.take(record);
        }
        self.damages.extend(stream.take_damages());
        self.stream = Some(stream);
        completed
    }

    /// Takes one record. Returns the input that it completes.
    fn take(&mut self, record: FileRecord) -> Option<Input> {
        let at = record.at;
        if is_fact(record) {
            return match self.assembler.part(raw_of_fact(record)) {
                Ok(fact) => fact.and_then(|fact| self.fact(fact)),
                Err(fault) => {
                    self.damages.push(Damage::Fact { at, fault });
                    None
                }
            };
        }
        if record.frame.kind >= kind::FIRST {
            return None;
        }
        let cpu = match self.recent_event.filter(|recent| recent.is_of(&record.frame)) {
            Some(recent) => record.frame.body.get(recent.cpu_at..)?.first_chunk().copied().map(u32::from_le_bytes)?,
            None => self.cpu(&record.frame)?,
        };
        if self.round.bytes() + record.bytes.len() > ROUND_MAX {
            self.damages.push(Damage::Endless { at });
            self.has_ended = true;
            return None;
        }
        self.round.record(cpu, record.bytes);
        None
    }

    /// Returns the CPU of a record, whose event has the layout of files; `None` if it is of no event of the file, or
    /// too short.
    fn cpu(&mut self, frame: &Frame) -> Option<u32> {
        let table = &self.begin.session.events;
        let is_sample = frame.kind == frame::kind::SAMPLE;
        let id = if is_sample { frame.body.first_chunk() } else { frame.body.last_chunk() };
        let id = u64::from_le_bytes(*id?);
        let layout = table.get(*table.ids.get(&id)?)?.sample_type;
        let at = match is_sample {
            // The CPU follows identifier, task and time, and what else the layout has before it.
            true => 24 + 8 * (layout & (field::IP | field::ADDR)).count_ones() as usize,
            false => frame.body.len().checked_sub(16)?,
        };
        if is_sample {
            self.recent_event = Some(RecentEvent { id, cpu_at: at });
        }
        frame.body.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    fn fact(&mut self, fact: Fact) -> Option<Input> {
        let answers = std::mem::take(&mut self.answers);
        match fact {
            Fact::Answer(time, record) => {
                self.answers = answers;
                self.answers.push((time, record));
                return None;
            }
            Fact::Synthesized(time, record) => self.round.synthesized(time, record),
            Fact::Unreadable(records) => self.unreadable += records,
            Fact::End => self.has_ended = true,
            Fact::File(file) => self.files.add(file),
            Fact::KernelSymbols(text) => *self.kernel_symbols.lock().unwrap_or_else(PoisonError::into_inner) = Some(text),
            // A second beginning would contradict the first one.
            Fact::Begin(_) => {}
            Fact::Round { started } => {
                let round = Input::Round(self.round.finish(started));
                if answers.is_empty() {
                    return Some(round);
                }
                self.waiting = Some(round);
            }
            Fact::Pages { cpu, bytes } => self.round.pages(cpu, bytes),
        }
        (!answers.is_empty()).then_some(Input::Answers(answers))
    }
}

fn is_fact(record: FileRecord) -> bool {
    let id = record.frame.body.first_chunk().copied().map(u64::from_le_bytes);
    record.frame.kind == frame::kind::SAMPLE && id == Some(fact::EVENT_ID)
}

/// Returns the raw bytes of a sample with a fact: they follow identifier, task, time, CPU and the size in 4 bytes.
fn raw_of_fact(record: FileRecord<'_>) -> &[u8] {
    record.frame.body.get(36..).unwrap_or_default()
}

/// The event of the last sample: records come in bursts of one event.
#[derive(Clone, Copy)]
struct RecentEvent {
    /// Its identifier.
    id: u64,
    /// Where its samples have their CPU.
    cpu_at: usize,
}

impl RecentEvent {
    /// Returns whether a record is a sample of this event.
    #[inline]
    fn is_of(&self, frame: &Frame) -> bool {
        frame.kind == frame::kind::SAMPLE && frame.body.first_chunk().is_some_and(|id| u64::from_le_bytes(*id) == self.id)
    }
}
