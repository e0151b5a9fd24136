//! `rtrace script`: prints the records of a recording, one a line, as they are in the file.

mod body;

use super::ExitCode;
use crate::event::{Synthesized, Time};
use crate::recording::{Damage, Reader};
use crate::request::TimeSpan;
use crate::session::EventTable;
use crate::source::{Body, Input, Merge, Record};
use crate::text::escape;
use anyhow::{Context, anyhow};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use std::path::Path;

/// How many bytes are collected for one write.
const WRITE_BYTES: usize = 1 << 16;

/// The most comms that are remembered, by thread.
const COMMS_MAX: usize = 1 << 20;

/// Prints the records in the order of their times: those in the span, or all.
///
/// # Errors
/// The recording cannot be read, the span means nothing in it, or stdout cannot be written.
pub fn print(path: &Path, span: Option<&TimeSpan>) -> anyhow::Result<ExitCode> {
    let mut reader = Reader::open(path)?;
    let table = reader.begin().session.events.clone();
    let part = span.map(|span| Part::of(span, &reader)).transpose()?.unwrap_or_default();
    if let Err(why) = part.from.map_or(Ok(()), |from| reader.pass_over(from)) {
        crate::say!("rtrace: {why}");
    }
    let mut script = Script { table: &table, part, has_printed: false, is_over: false, comms: FxHashMap::default(), out: Vec::new() };
    let mut merge = Merge::new();
    while let Some(input) = reader.next_input() {
        match input {
            Input::Round(round) => {
                merge.add(&table, round);
                merge.release(&table, usize::MAX, |record| script.record(&record));
                reader.recycle(merge.spent());
            }
            Input::Answers(answers) => answers.into_iter().for_each(|(time, record)| merge.synthesized(time, record)),
        }
        if script.out.len() >= WRITE_BYTES && !script.write()? {
            return Ok(ExitCode::Success);
        }
        if script.is_over {
            break;
        }
    }
    merge.release_all(&table, usize::MAX, |record| script.record(&record));
    script.write()?;
    if let Some(span) = span.filter(|_| !script.has_printed) {
        crate::say!("rtrace: {} has no records in --time {}", path.display(), span.text);
    }
    let damages = reader.damages();
    for damage in damages {
        crate::say!("rtrace: {} is incomplete: {damage}", path.display());
    }
    Ok(if damages.iter().any(Damage::is_failure) { ExitCode::Failed } else { ExitCode::Success })
}

/// The part of a recording whose records are printed; both ends belong to it.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    from: Option<Time>,
    to: Option<Time>,
}

impl Part {
    /// Returns what a span means in this recording.
    fn of(span: &TimeSpan, reader: &Reader) -> anyhow::Result<Part> {
        let session = &reader.begin().session;
        let bounds = span.bounds(session, reader.lasts()).map_err(|why| anyhow!(why))?;
        Ok(Part { from: bounds.from.map(|from| from.at(session.started)), to: bounds.to.map(|to| to.at(session.started)) })
    }
}

/// The records that were turned into lines.
struct Script<'t> {
    table: &'t EventTable,
    part: Part,
    /// A record was in the part.
    has_printed: bool,
    /// A record was behind the part, so all later ones are.
    is_over: bool,
    /// The comm of each thread.
    comms: FxHashMap<i32, Vec<u8>>,
    out: Vec<u8>,
}

impl Script<'_> {
    /// Writes the lines. Returns whether somebody still reads them.
    fn write(&mut self) -> anyhow::Result<bool> {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(&self.out).and_then(|()| stdout.flush());
        self.out.clear();
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            written => written.context("cannot write to stdout").map(|()| true),
        }
    }

    /// Adds the line of a record.
    fn record(&mut self, record: &Record) {
        self.name_tasks(&record.body);
        // A bound that is copied from a line means the record of that line, whose time has further digits.
        let shown = Time(record.time.0 - record.time.0 % 1000);
        let is_behind = self.part.to.is_some_and(|to| shown > to);
        self.is_over |= is_behind;
        if is_behind || self.part.from.is_some_and(|from| record.time < from) {
            return;
        }
        self.has_printed = true;
        let task = record.task;
        match self.comms.get(&task.tid) {
            Some(comm) => {
                let start = self.out.len();
                escape::plain(&mut self.out, comm);
                let width = self.out.len() - start;
                self.out.splice(start..start, std::iter::repeat_n(b' ', 16usize.saturating_sub(width)));
            }
            None => self.out.extend(format!("{:>16}", format!(":{}", task.tid)).bytes()),
        }
        let (seconds, micros) = (record.time.0 / 1_000_000_000, record.time.0 / 1000 % 1_000_000);
        let (pid, tid, cpu) = (task.pid, task.tid, record.cpu);
        self.out.extend(format!(" {pid:>7}/{tid:<7} [{cpu:03}] {seconds:>5}.{micros:06}: ").bytes());
        body::write(&mut self.out, &record.body, self.table);
        self.out.push(b'\n');
    }

    /// Remembers the comms that a record has.
    fn name_tasks(&mut self, body: &Body) {
        let (tid, comm) = match body {
            Body::Comm { task, comm, .. } => (task.tid, comm.to_vec()),
            Body::Fork { child, parent } => match self.comms.get(&parent.tid) {
                Some(comm) => (child.tid, comm.clone()),
                None => return,
            },
            Body::Synthesized(Synthesized::Task { task, comm, .. } | Synthesized::Executed { task, comm }) => (task.tid, comm.clone()),
            _ => return,
        };
        if self.comms.len() < COMMS_MAX || self.comms.contains_key(&tid) {
            self.comms.insert(tid, comm);
        }
    }
}
