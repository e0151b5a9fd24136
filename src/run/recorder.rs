//! Records the input of the engine.

use crate::event::{FileId, Synthesized};
use crate::kernel::remote_files::Guarded;
use crate::recording::{Collector, JitReader, SeenFile, Totals, Writer};
use crate::session::EventTable;
use crate::source::files::{LiveMappings, LiveNames};
use crate::source::frame::{Frame, kind};
use crate::source::record::Body;
use crate::source::{Form, Input, Round};
use crate::stack::library::MappedFile;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The recording of a trace, until a write fails. This is the tap: all that the events follow from passes here, in
/// order.
pub struct Recorder {
    writer: Option<Writer>,
    /// Reads the files that stacks need, if there are stacks.
    files: Option<FilesOfStacks>,
    failed: Option<io::Error>,
    /// When to write what is collected, if anything is.
    due: Option<Instant>,
}

/// How long records are collected before they are written: a recorder that is killed loses those of this time.
const COLLECT_TIME: Duration = Duration::from_secs(1);

/// The readers of the files that stacks need.
struct FilesOfStacks {
    mapped: Collector<Guarded>,
    jit: JitReader,
}

impl Recorder {
    /// Creates a recorder, which does nothing without a writer. `files` opens the files that stacks need, with their
    /// source lines if the flag beside it is set. `kernel_names` has the kernel's symbols, if stacks have functions of
    /// the kernel.
    pub fn new(mut writer: Option<Writer>, files: Option<(Guarded, bool)>, kernel_names: Option<&mut LiveNames>) -> Recorder {
        if let (Some(writer), Some(names)) = (&mut writer, kernel_names)
            && let Ok(text) = names.kernel_for_recording()
        {
            writer.kernel_symbols(text);
        }
        let files = files.map(|(files, has_lines)| FilesOfStacks {
            jit: JitReader::new(Box::new(LiveNames::new(files.clone()))),
            mapped: Collector::new(Box::new(LiveMappings(files.clone())), files, has_lines),
        });
        Recorder { writer, files, failed: None, due: None }
    }

    /// Writes one piece of input.
    pub fn input(&mut self, input: &Input) {
        let Some(writer) = &mut self.writer else { return };
        if let (Some(files), Input::Round(round)) = (&mut self.files, input) {
            files.of_round(writer.table(), round).into_iter().for_each(|file| writer.file(file));
        }
        if let Err(error) = writer.input(input) {
            self.failed.get_or_insert(error);
        }
        self.write_if_due();
    }

    /// When [`Recorder::write_if_due`] has something to do, if no input comes before.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Writes what has been collected for long enough.
    pub fn write_if_due(&mut self) {
        let Some(writer) = self.writer.as_mut().filter(|writer| writer.has_collected()) else {
            self.due = None;
            return;
        };
        let now = Instant::now();
        if now >= *self.due.get_or_insert(now + COLLECT_TIME) {
            self.due = None;
            if let Err(error) = writer.flush() {
                self.failed.get_or_insert(error);
            }
        }
    }

    /// Whether a write has failed.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Completes the recording. Returns what it has, and why it could not be written.
    pub fn finish(self) -> (Option<Totals>, Option<anyhow::Error>) {
        let finished = self.writer.map(Writer::finish).transpose();
        let (recorded, error) = match (finished, self.failed) {
            (Ok(totals), failed) => (totals.filter(|_| failed.is_none()), failed),
            (Err(error), failed) => (None, Some(failed.unwrap_or(error))),
        };
        let named = |error| anyhow::Error::new(error).context("the recording could not be written to its end");
        (recorded, error.map(named))
    }
}

impl FilesOfStacks {
    /// Returns what the stacks of a round need and was not returned before.
    fn of_round(&mut self, table: &EventTable, round: &Round) -> Vec<SeenFile> {
        let (mut mapped, mut ended) = (Vec::new(), Vec::new());
        changes(table, round, |change| match change {
            Change::Mapped(file) => mapped.push(file),
            Change::Ended(pid) => ended.push(pid),
        });
        // Programs may remove these files when they end, and large libraries take long to read.
        mapped.iter().for_each(|file| self.jit.mapped(file));
        let now = Instant::now();
        let mut found = self.jit.read(now);
        ended.into_iter().for_each(|pid| found.extend(self.jit.ended(pid, now)));
        mapped.iter().for_each(|file| found.extend(self.mapped.read(file)));
        found
    }
}

/// What a round says about the code of processes.
enum Change {
    /// A process has mapped code.
    Mapped(MappedFile),
    /// A process has ended, or executes another program.
    Ended(i32),
}

/// Passes to `each` what a round says about the code of processes.
fn changes(table: &EventTable, round: &Round, mut each: impl FnMut(Change)) {
    for (_, record) in &round.synthesized {
        if let Synthesized::Maps { pid, maps } = record {
            maps.iter().for_each(|map| each(Change::Mapped(mapped(*pid, (map.start, map.end), map.file, &map.path))));
        }
    }
    for chunk in round.chunks.iter().filter(|chunk| chunk.form == Form::Records) {
        let mut at = 0;
        while let Ok(frame) = Frame::at(&chunk.bytes, at) {
            at += frame.size();
            if !matches!(frame.kind, kind::MMAP2 | kind::EXIT | kind::COMM) {
                continue;
            }
            let Ok(Some(stamp)) = frame.stamp(table) else { continue };
            match frame.read(table, stamp, chunk.cpu).map(|record| record.body) {
                Ok(Body::Map { task, start, len, file, executable: true, path, .. }) => {
                    each(Change::Mapped(mapped(task.pid, (start, start.saturating_add(len)), file, path)));
                }
                Ok(Body::Exit { task, .. }) if task.tid == task.pid => each(Change::Ended(task.pid)),
                Ok(Body::Comm { task, exec: true, .. }) => each(Change::Ended(task.pid)),
                _ => {}
            }
        }
    }
}

fn mapped(pid: i32, addresses: (u64, u64), file: FileId, path: &[u8]) -> MappedFile {
    MappedFile { pid, addresses, file, path: Arc::from(path) }
}
