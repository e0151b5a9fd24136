//! Writes a recording.
//!
//! Records are collected in memory and written a MiB at a time. What describes the whole file is written at its end, so
//! a file whose writer was killed has its records, but neither their total size nor its feature sections. Its first
//! fact describes it all the same.

use super::fact::{self, Begin, Fact};
use super::files::SeenFile;
use super::for_perf;
use super::index::Indexer;
use super::layout::{ATTR_BYTES, HEADER_BYTES, Header, Section, attr_bytes, kind};
use super::packed_records::PackedRecords;
use super::sections::{About, Sections};
use crate::event::{Synthesized, Time};
use crate::session::EventTable;
use crate::source::frame::{self, field};
use crate::source::rewrite::{self, Rewritten, file_layout, restored_layout};
use crate::source::{Chunk, Form, Input, Round};
use crate::sys::perf::AttrNumbers;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// How many bytes are collected for one write.
const WRITE_BYTES: usize = 1 << 20;

/// The layout of the samples that have facts.
const FACT_LAYOUT: u64 = field::NEEDED | field::CPU | field::RAW;

/// What a recording has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The number of the kernel's samples.
    pub samples: u64,
    /// The number of records that the kernel could not write, by its own counts.
    pub lost: u64,
    /// The number of records that rtrace could not read, and did not write.
    pub unreadable: u64,
}

/// An event of a recording.
#[derive(Clone, Debug)]
pub struct FileEvent {
    /// `subsystem:name`, or the software event's name.
    pub name: String,
    /// How the event was opened.
    pub attr: AttrNumbers,
    /// The layout of its samples in the file.
    pub sample_type: u64,
    /// The identifiers that its records have, in order.
    pub ids: Vec<u64>,
}

/// A recording that is being written.
#[derive(Debug)]
pub struct Writer {
    file: File,
    header: Header,
    events: Vec<FileEvent>,
    about: About,
    /// How to read the records of the rings.
    table: EventTable,
    buffer: Vec<u8>,
    /// Compresses the records, if that was asked for.
    packed: Option<PackedRecords>,
    /// The number of bytes that were written behind the attributes.
    written: u64,
    totals: Totals,
    /// The times of the oldest and the newest sample.
    span: Option<(Time, Time)>,
    /// The time of the last round, or before it that of the beginning.
    now: Time,
    indexer: Indexer,
    /// The file has facts, and is read by rtrace.
    has_facts: bool,
    /// A write has failed. What follows would not be where a reader looks for it.
    has_failed: bool,
}

impl Writer {
    /// Begins a recording in an empty file. `begin` has the session as it is armed, and `attrs` the attributes of its
    /// events, in their order.
    ///
    /// # Errors
    /// The file cannot be written, or has no positions (a pipe).
    pub fn new(file: File, mut begin: Begin, attrs: &[AttrNumbers], about: About) -> io::Result<Writer> {
        let facts = FileEvent {
            name: fact::EVENT_NAME.to_owned(),
            attr: AttrNumbers::dummy(),
            sample_type: FACT_LAYOUT,
            ids: vec![fact::EVENT_ID],
        };
        let mut writer = Writer::begin(file, &begin.session.events, begin.session.started, (attrs, Some(facts)), about)?;
        begin.session.events.events.iter_mut().for_each(|spec| spec.sample_type = restored_layout(spec.sample_type));
        writer.fact(&Fact::Begin(Box::new(begin)));
        writer.flush()?;
        Ok(writer)
    }

    /// Begins a file for other tools, with records of these events and without facts. It is given its records by
    /// [`Writer::records`].
    ///
    /// # Errors
    /// The file cannot be written, or has no positions (a pipe).
    pub fn without_facts(file: File, table: &EventTable, started: Time, attrs: &[AttrNumbers], about: About) -> io::Result<Writer> {
        Writer::begin(file, table, started, (attrs, None), about)
    }

    fn begin(
        mut file: File,
        table: &EventTable,
        started: Time,
        (attrs, facts): (&[AttrNumbers], Option<FileEvent>),
        about: About,
    ) -> io::Result<Writer> {
        file.seek(SeekFrom::Start(0))?;
        let has_facts = facts.is_some();
        let mut events: Vec<FileEvent> = file_events(table, attrs).into_iter().chain(facts).collect();
        // Tools read records without an identifier ([`for_perf`]) by the layout of the first event, and these records
        // have a CPU.
        events.sort_by_key(|event| event.sample_type & field::CPU == 0);
        let mut writer = Writer {
            file,
            header: Header { attr_bytes: ATTR_BYTES as u64 + 16, ..Header::default() },
            events,
            table: table.clone(),
            buffer: Vec::with_capacity(WRITE_BYTES * 2),
            packed: about.compression.map(PackedRecords::new),
            written: 0,
            totals: Totals::default(),
            span: None,
            now: started,
            indexer: Indexer::default(),
            has_facts,
            has_failed: false,
            about,
        };
        writer.write_beginning()?;
        Ok(writer)
    }

    /// Writes the header, the attributes of the events and their identifiers.
    fn write_beginning(&mut self) -> io::Result<()> {
        let attrs = Section { offset: HEADER_BYTES, size: self.events.len() as u64 * self.header.attr_bytes };
        let mut ids_at = attrs.offset + attrs.size;
        let (mut entries, mut ids) = (Vec::new(), Vec::new());
        for event in &self.events {
            let section = Section { offset: ids_at, size: 8 * event.ids.len() as u64 };
            entries.extend(attr_bytes(&event.attr, event.sample_type));
            entries.extend(section.to_bytes());
            ids.extend(event.ids.iter().flat_map(|id| id.to_le_bytes()));
            ids_at += section.size;
        }
        self.header.attrs = attrs;
        self.header.data = Section { offset: ids_at, size: 0 };
        self.indexer.begin(ids_at);
        self.file.write_all(&[&self.header.to_bytes()[..], &entries, &ids].concat())
    }

    /// Writes one piece of the engine's input.
    ///
    /// # Errors
    /// A write failed. Nothing more is written then.
    pub fn input(&mut self, input: &Input) -> io::Result<()> {
        if self.has_failed {
            return Ok(());
        }
        match input {
            Input::Round(round) => {
                self.round(round);
                self.end_span()?;
            }
            Input::Answers(answers) => {
                for (time, record) in answers {
                    for_perf::append(*time, record, &mut self.buffer);
                    self.fact(&Fact::Answer(*time, record.clone()));
                }
            }
        }
        self.flush_if_full()
    }

    /// Returns how to read the records of the rings.
    pub fn table(&self) -> &EventTable {
        &self.table
    }

    /// Writes a file of the traced machine, before the round in which a process maps it.
    pub fn file(&mut self, file: SeenFile) {
        self.fact(&Fact::File(file));
    }

    /// Writes the symbols of the kernel (/proc/kallsyms).
    pub fn kernel_symbols(&mut self, text: Vec<u8>) {
        self.fact(&Fact::KernelSymbols(text));
    }

    fn round(&mut self, round: &Round) {
        self.now = self.now.max(round.started);
        self.indexer.round(round.started);
        for (time, record) in &round.synthesized {
            if let Synthesized::Count { lost, .. } | Synthesized::InstanceCount { lost, .. } = record {
                self.totals.lost += lost;
            }
            for_perf::append(*time, record, &mut self.buffer);
            self.fact(&Fact::Synthesized(*time, record.clone()));
        }
        for chunk in &round.chunks {
            match chunk.form {
                Form::Records => {
                    let unreadable = self.append(chunk);
                    if unreadable > 0 {
                        self.fact(&Fact::Unreadable(unreadable));
                    }
                }
                Form::Pages => self.fact(&Fact::Pages { cpu: chunk.cpu, bytes: chunk.bytes.clone() }),
            }
        }
        self.fact(&Fact::Round { started: round.started });
        // perf sorts all records up to this mark.
        self.buffer.extend(header(kind::FINISHED_ROUND, frame::HEADER_BYTES));
    }

    /// Ends a span of the index behind a round. In a compressed recording, a compressed record ends there, too.
    fn end_span(&mut self) -> io::Result<()> {
        let buffered = self.buffer.len() as u64;
        if self.packed.is_some() {
            if !Indexer::is_full(buffered) {
                return Ok(());
            }
            self.flush()?;
            self.indexer.end_span_at(self.header.data.offset + self.written);
            return Ok(());
        }
        self.indexer.end_span(self.header.data.offset + self.written + buffered);
        Ok(())
    }

    /// Writes the records of a chunk, without the mark of a round behind them: a reader sorts them with all others.
    ///
    /// # Errors
    /// A write failed.
    pub fn records(&mut self, chunk: &Chunk) -> io::Result<()> {
        self.append(chunk);
        self.flush_if_full()
    }

    /// Writes what a fact says about the names and the mappings of tasks.
    pub fn name_tasks(&mut self, time: Time, fact: &Synthesized) {
        for_perf::append(time, fact, &mut self.buffer);
    }

    /// Appends the records of a chunk, and returns how many of them cannot be read.
    fn append(&mut self, chunk: &Chunk) -> u64 {
        let Rewritten { samples, others, plain, gaps, unreadable, span, .. } = rewrite::append(&self.table, chunk, &mut self.buffer);
        self.indexer.add(plain, plain < samples + others, gaps > 0);
        span.into_iter().for_each(|(oldest, newest)| self.widen(oldest, newest));
        self.totals.samples += samples;
        self.totals.unreadable += unreadable;
        unreadable
    }

    /// Notes the times of samples.
    fn widen(&mut self, oldest: Time, newest: Time) {
        let (first, last) = self.span.unwrap_or((oldest, newest));
        self.span = Some((first.min(oldest), last.max(newest)));
    }

    /// Adds a fact, with the time of the round that it belongs to: for perf, time must not run backwards.
    fn fact(&mut self, fact: &Fact) {
        let is_mark = matches!(fact, Fact::Round { .. } | Fact::End);
        self.indexer.add(0, !is_mark, false);
        self.widen(self.now, self.now);
        for part in fact.parts() {
            let raw = (part.len() + 4).next_multiple_of(8) - 4;
            self.buffer.extend(header(frame::kind::SAMPLE, frame::HEADER_BYTES + 32 + 4 + raw));
            // Identifier, task, time, CPU: the fact is about no task and no CPU.
            [fact::EVENT_ID, 0, self.now.0, 0].iter().for_each(|word: &u64| self.buffer.extend(word.to_le_bytes()));
            self.buffer.extend((raw as u32).to_le_bytes());
            self.buffer.extend(&part);
            self.buffer.extend(std::iter::repeat_n(0, raw - part.len()));
        }
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    /// Whether there are records that are not written yet.
    pub fn has_collected(&self) -> bool {
        !self.has_failed && !self.buffer.is_empty()
    }

    /// Writes the records that are collected.
    ///
    /// # Errors
    /// A write failed. Nothing more is written then.
    pub fn flush(&mut self) -> io::Result<()> {
        let bytes = self.packed.as_mut().map_or(&self.buffer[..], |packed| packed.pack(&self.buffer));
        let done = self.file.write_all(bytes);
        self.has_failed = done.is_err();
        self.written += bytes.len() as u64;
        self.buffer.clear();
        done
    }

    /// Completes the file.
    ///
    /// # Errors
    /// A write failed. The file has the records that were written before.
    pub fn finish(mut self) -> io::Result<Totals> {
        if self.has_failed {
            return Ok(self.totals);
        }
        if self.has_facts {
            self.fact(&Fact::End);
        }
        self.flush()?;
        self.header.data.size = self.written;
        let span = self.span.unwrap_or_default();
        let compression = self.packed.as_ref().map(PackedRecords::section);
        let end = self.header.data.offset + self.header.data.size;
        let index = self.has_facts.then(|| std::mem::take(&mut self.indexer).finish(end));
        let sections = Sections { about: &self.about, events: &self.events, span, compression, index }.bytes();
        let table_at = self.header.data.offset + self.header.data.size;
        let mut at = table_at + 16 * sections.len() as u64;
        let (mut table, mut contents): (Vec<u8>, Vec<u8>) = Default::default();
        for (number, bytes) in &sections {
            self.header.add_feature(*number);
            table.extend(Section { offset: at, size: bytes.len() as u64 }.to_bytes());
            contents.extend(bytes);
            at += bytes.len() as u64;
        }
        table.extend(contents);
        self.file.write_all(&table)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&self.header.to_bytes())?;
        Ok(Totals { bytes: at, ..self.totals })
    }
}

/// Returns the bytes of a record's header.
fn header(kind: u32, size: usize) -> [u8; frame::HEADER_BYTES] {
    (u64::from(kind) | (size as u64) << 48).to_le_bytes()
}

/// Returns the events of the session that have records in the file.
fn file_events(table: &EventTable, attrs: &[AttrNumbers]) -> Vec<FileEvent> {
    let of = |at: usize, attr: &AttrNumbers| {
        let spec = table.events.get(at)?;
        let sample_type = file_layout(spec.sample_type);
        let mut ids: Vec<u64> = table.ids.iter().filter(|(_, event)| usize::from(event.0) == at).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        // perf takes an event without identifiers for one with other records.
        let is_recorded = sample_type != 0 && !ids.is_empty();
        is_recorded.then(|| FileEvent { name: spec.name.clone(), attr: *attr, sample_type, ids })
    };
    attrs.iter().enumerate().filter_map(|(at, attr)| of(at, attr)).collect()
}
