//! Reads a recording as the input of the engine.
//!
//! The file may be damaged, cut or made by an enemy: every record that is whole is used, what is wrong with the rest is
//! a [`Damage`] with the place, and memory is bounded by the largest round that rtrace writes.

use super::fact::{self, Assembler, Begin, Fact};
use super::features::{self, Features};
use super::files::RecordedFiles;
use super::index::Index;
use super::layout::{Header, feature, kind};
use super::record_stream::{FileRecord, RecordStream, Regular};
use super::round_builder::RoundBuilder;
use super::sections::sample_times;
use crate::bpf::record::packed::{CallLayout, Unpacker};
use crate::event::{Synthesized, Time};
use crate::source::frame::{self, Frame, field};
use crate::source::restore::PackedRecord;
use crate::source::rewrite::is_packed;
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
        /// The offset of the record up to which the file was read.
        at: u64,
    },
    /// The bytes of a packed record cannot be read.
    #[error("the packed record at byte {at} is unknown to this version of rtrace, or damaged")]
    Packed {
        /// The offset of the record in the file.
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

impl Damage {
    /// Returns whether something is wrong that makes a command fail. A recording whose recorder was killed is used as
    /// far as it goes.
    pub fn is_failure(&self) -> bool {
        *self != Damage::NotFinished
    }
}

/// The place of /proc/kallsyms of the traced machine, which is empty until the recording has it.
pub type KernelSymbols = Arc<Mutex<Option<Vec<u8>>>>;

/// Why a recording is read from its beginning although only later records are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoIndex {
    /// The recording was not completed.
    #[error("all of the recording before the span of --time is read, because it was not completed, so it has no index")]
    NotFinished,
    /// The section is not there, or is not that of these records.
    #[error("all of the recording before the span of --time is read, because its index is damaged or missing")]
    Damaged,
}

/// An open recording.
pub struct Reader {
    /// The records; `None` while one of them is being taken.
    stream: Option<RecordStream>,
    header: Header,
    begin: Begin,
    unpacker: Unpacker,
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
        let header = features::header(file.as_ref()).map_err(|why| anyhow!("it {why}"))?;
        let mut reader = Reader {
            stream: Some(RecordStream::new(file, header.data)),
            header,
            begin: Begin::default(),
            unpacker: Unpacker::new(&CallLayout::default()).map_err(|why| anyhow!("it {why}"))?,
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
        reader.unpacker = Unpacker::new(&reader.begin.calls).map_err(|why| anyhow!("it {why}"))?;
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

    /// Returns the times of the first and the last sample; `None` if the recording was not completed.
    pub fn lasts(&self) -> Option<(Time, Time)> {
        sample_times(&self.section(feature::SAMPLE_TIME)?)
    }

    /// Passes over the records from which nothing follows for records from this time on. It may be called between two
    /// pieces of input.
    ///
    /// # Errors
    /// There is no index, and all records are read.
    pub fn pass_over(&mut self, until: Time) -> Result<(), NoIndex> {
        if self.header.data.size == 0 {
            return Err(NoIndex::NotFinished);
        }
        let index = self.section(feature::INDEX).and_then(|bytes| Index::parse(&bytes, self.header.data)).ok_or(NoIndex::Damaged)?;
        if let Some(stream) = &mut self.stream {
            let gaps = index.gaps(stream.position(), until);
            stream.pass_over(gaps);
        }
        Ok(())
    }

    /// Returns the number of calls that were passed over so far.
    pub fn passed_calls(&self) -> u64 {
        self.stream.as_ref().map_or(0, RecordStream::passed_calls)
    }

    /// Returns the bytes of a feature section; `None` if it is not there, or cannot be read.
    fn section(&self, number: u32) -> Option<Vec<u8>> {
        Features::find(self.stream.as_ref()?.file(), &self.header).bytes(number).ok().flatten()
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
        let event = match self.recent_event.filter(|recent| recent.is_of(&record.frame)) {
            Some(recent) => recent,
            None => self.event(&record.frame)?,
        };
        match event.form {
            RecordForm::Plain { cpu_at } => self.round.record(self::cpu_at(&record.frame, cpu_at)?, record.bytes),
            RecordForm::Packed { layout } => {
                let unpacker = &self.unpacker;
                let is_whole = PackedRecord::parse(record.frame, layout)
                    .is_some_and(|packed| self.round.append(packed.cpu, |bytes| packed.append(unpacker, bytes).is_some()));
                self.damages.extend((!is_whole).then_some(Damage::Packed { at }));
            }
        }
        if self.round.bytes() > ROUND_MAX {
            self.damages.push(Damage::Endless { at });
            self.has_ended = true;
        }
        None
    }

    /// Returns the event of a record; `None` if the file has no such event, or if the record is too short.
    fn event(&mut self, frame: &Frame) -> Option<RecentEvent> {
        let table = &self.begin.session.events;
        let is_sample = frame.kind == frame::kind::SAMPLE;
        let id = if is_sample { frame.body.first_chunk() } else { frame.body.last_chunk() };
        let id = u64::from_le_bytes(*id?);
        let layout = table.get(*table.ids.get(&id)?)?.sample_type;
        let form = match is_sample {
            _ if is_packed(layout) => RecordForm::Packed { layout },
            // The CPU follows identifier, task and time, and what else the layout has before it.
            true => RecordForm::Plain { cpu_at: 24 + 8 * (layout & (field::IP | field::ADDR)).count_ones() as usize },
            false => RecordForm::Plain { cpu_at: frame.body.len().checked_sub(16)? },
        };
        let event = RecentEvent { id, form };
        if is_sample {
            self.recent_event = Some(event);
        }
        Some(event)
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

/// Returns the CPU that stands at this place of a record; `None` if the record is too short.
fn cpu_at(frame: &Frame, at: usize) -> Option<u32> {
    frame.body.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

/// The event of a record. That of the last sample is kept, because records come in bursts of one event.
#[derive(Clone, Copy, Debug)]
struct RecentEvent {
    /// Its identifier.
    id: u64,
    /// The form of the record.
    form: RecordForm,
}

/// The form in which a record of an event is in the file.
#[derive(Clone, Copy, Debug)]
enum RecordForm {
    /// As in the ring, with its CPU at this offset of the body.
    Plain { cpu_at: usize },
    /// Packed. The ring has this layout.
    Packed { layout: u64 },
}

impl RecentEvent {
    /// Returns whether a record is a sample of this event.
    #[inline]
    fn is_of(&self, frame: &Frame) -> bool {
        frame.kind == frame::kind::SAMPLE && frame.body.first_chunk().is_some_and(|id| u64::from_le_bytes(*id) == self.id)
    }
}
