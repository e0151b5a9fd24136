//! Records the input of the engine.

use crate::event::{FileId, Synthesized};
use crate::kernel::remote_files::Guarded;
use crate::recording::{Collector, Totals, Writer};
use crate::session::EventTable;
use crate::source::files::{LiveMappings, LiveNames};
use crate::source::frame::{Frame, kind};
use crate::source::record::{Body, Record};
use crate::source::{Form, Input, Round};
use crate::stack::library::MappedFile;
use std::io;
use std::sync::Arc;

/// The recording of a trace, until a write fails. This is the tap: all that the events follow from passes here, in
/// order.
pub struct Recorder {
    writer: Option<Writer>,
    /// Reads the files that stacks need, if there are stacks.
    files: Option<Collector<Guarded>>,
    failed: Option<io::Error>,
}

impl Recorder {
    /// Creates a recorder, which does nothing without a writer. `files` opens the files that stacks need, and
    /// `kernel_names` has the kernel's symbols, if stacks have functions of the kernel.
    pub fn new(mut writer: Option<Writer>, files: Option<Guarded>, kernel_names: Option<&mut LiveNames>) -> Recorder {
        if let (Some(writer), Some(names)) = (&mut writer, kernel_names)
            && let Ok(text) = names.kernel_for_recording()
        {
            writer.kernel_symbols(text);
        }
        let files = files.map(|files| Collector::new(Box::new(LiveMappings(files.clone())), files));
        Recorder { writer, files, failed: None }
    }

    /// Writes one piece of input.
    pub fn input(&mut self, input: &Input) {
        let Some(writer) = &mut self.writer else { return };
        if let (Some(files), Input::Round(round)) = (&mut self.files, input) {
            let mut found = Vec::new();
            mappings(writer.table(), round, |mapped| found.extend(files.read(&mapped)));
            found.into_iter().for_each(|file| writer.file(file));
        }
        if let Err(error) = writer.input(input) {
            self.failed.get_or_insert(error);
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

/// Passes the mappings of code in a round to `each`.
fn mappings(table: &EventTable, round: &Round, mut each: impl FnMut(MappedFile)) {
    for (_, record) in &round.synthesized {
        if let Synthesized::Maps { pid, maps } = record {
            maps.iter().for_each(|map| each(mapped(*pid, (map.start, map.end), map.file, &map.path)));
        }
    }
    for chunk in round.chunks.iter().filter(|chunk| chunk.form == Form::Records) {
        let mut at = 0;
        while let Ok(frame) = Frame::at(&chunk.bytes, at) {
            at += frame.size();
            if frame.kind == kind::MMAP2
                && let Ok(Some(stamp)) = frame.stamp(table)
                && let Ok(Record { body: Body::Map { task, start, len, file, executable: true, path, .. }, .. }) =
                    frame.read(table, stamp, chunk.cpu)
            {
                each(mapped(task.pid, (start, start.saturating_add(len)), file, path));
            }
        }
    }
}

fn mapped(pid: i32, addresses: (u64, u64), file: FileId, path: &[u8]) -> MappedFile {
    MappedFile { pid, addresses, file, path: Arc::from(path) }
}
