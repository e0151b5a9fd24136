//! `rtrace script`: prints the records of a recording, one a line, as they are in the file.

mod body;

use super::ExitCode;
use crate::event::Synthesized;
use crate::recording::Reader;
use crate::session::EventTable;
use crate::source::{Body, Input, Merge, Record};
use crate::text::escape;
use anyhow::Context;
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use std::path::Path;

/// How many bytes are collected for one write.
const WRITE_BYTES: usize = 1 << 16;

/// The most comms that are remembered, by thread.
const COMMS_MAX: usize = 1 << 20;

/// Prints the records in the order of their times.
///
/// # Errors
/// The recording cannot be read, or stdout cannot be written.
pub fn print(path: &Path) -> anyhow::Result<ExitCode> {
    let mut reader = Reader::open(path)?;
    let table = reader.begin().session.events.clone();
    let mut script = Script { table: &table, comms: FxHashMap::default(), out: Vec::new() };
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
    }
    merge.release_all(&table, usize::MAX, |record| script.record(&record));
    script.write()?;
    let damages = reader.damages();
    for damage in damages {
        crate::say!("rtrace: {} is incomplete: {damage}", path.display());
    }
    Ok(if damages.is_empty() { ExitCode::Success } else { ExitCode::Failed })
}

/// The records that were turned into lines.
struct Script<'t> {
    table: &'t EventTable,
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
