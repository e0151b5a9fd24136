//! Opens a recording, of rtrace or of perf.

use super::fact::{self, Begin};
use super::features;
use super::files::RecordedFiles;
use super::of_perf::{PerfReader, Programs, event_ids};
use super::reader::{Damage, KernelSymbols, NoIndex, Reader};
use crate::event::Time;
use crate::source::{Input, Round};
use anyhow::{Context, anyhow};
use std::path::Path;

/// An open recording.
pub enum AnyReader {
    /// A recording of rtrace.
    Own(Box<Reader>),
    /// A recording of perf.
    Perf(Box<PerfReader>),
}

impl AnyReader {
    /// Opens a recording, and reads how its stream is to be read.
    ///
    /// # Errors
    /// The file cannot be read, is no recording, or has nothing that rtrace can show.
    pub fn open(path: &Path) -> anyhow::Result<AnyReader> {
        let name = path.display();
        let (file, header) = features::open(path)?;
        // A file of rtrace has an event of rtrace. One with damaged attributes is read by its facts.
        let is_own = event_ids(&file, &header).is_none_or(|mut ids| ids.any(|id| id == fact::EVENT_ID));
        if is_own {
            let reader = Reader::new(Box::new(file)).with_context(|| format!("{name} cannot be shown"))?;
            return Ok(AnyReader::Own(Box::new(reader)));
        }
        let reader = PerfReader::open(file, &header).map_err(|why| anyhow!("{name} {why}"))?;
        Ok(AnyReader::Perf(Box::new(reader)))
    }

    /// Returns how the stream is to be read.
    pub fn begin(&self) -> &Begin {
        match self {
            AnyReader::Own(reader) => reader.begin(),
            AnyReader::Perf(reader) => reader.begin(),
        }
    }

    /// Returns the files of the traced machine, of which recordings of perf have none.
    pub fn files(&self) -> RecordedFiles {
        match self {
            AnyReader::Own(reader) => reader.files(),
            AnyReader::Perf(_) => RecordedFiles::default(),
        }
    }

    /// Returns the place of the kernel's symbols, which recordings of perf do not have.
    pub fn kernel_symbols(&self) -> KernelSymbols {
        match self {
            AnyReader::Own(reader) => reader.kernel_symbols(),
            AnyReader::Perf(_) => KernelSymbols::default(),
        }
    }

    /// Returns what a recording of perf says about the programs of which it has stacks. Recordings of rtrace have the
    /// programs themselves, as far as stacks need them.
    pub fn programs(&self) -> Option<&Programs> {
        match self {
            AnyReader::Own(_) => None,
            AnyReader::Perf(reader) => reader.programs(),
        }
    }

    /// Returns whether the file says which time of day its time stamps mean.
    pub fn has_wall_clock(&self) -> bool {
        match self {
            AnyReader::Own(_) => true,
            AnyReader::Perf(reader) => reader.has_wall_clock(),
        }
    }

    /// Returns what is wrong with the file, as far as it was read.
    pub fn damages(&self) -> &[Damage] {
        match self {
            AnyReader::Own(reader) => reader.damages(),
            AnyReader::Perf(reader) => reader.damages(),
        }
    }

    /// Returns the number of records that could not be read and are missing, as far as the file was read.
    pub fn unreadable(&self) -> u64 {
        match self {
            AnyReader::Own(reader) => reader.unreadable(),
            AnyReader::Perf(reader) => reader.unreadable(),
        }
    }

    /// Returns the times of the first and the last record; `None` if the file does not say them.
    pub fn lasts(&self) -> Option<(Time, Time)> {
        match self {
            AnyReader::Own(reader) => reader.lasts(),
            AnyReader::Perf(reader) => reader.lasts(),
        }
    }

    /// Passes over the records from which nothing follows for records from this time on. Recordings of perf have no
    /// index, and are read from their beginning.
    ///
    /// # Errors
    /// A recording of rtrace lacks its index, and is read from its beginning, too.
    pub fn pass_over(&mut self, until: Time) -> Result<(), NoIndex> {
        match self {
            AnyReader::Own(reader) => reader.pass_over(until),
            AnyReader::Perf(_) => Ok(()),
        }
    }

    /// Returns the number of calls that were passed over so far.
    pub fn passed_calls(&self) -> u64 {
        match self {
            AnyReader::Own(reader) => reader.passed_calls(),
            AnyReader::Perf(_) => 0,
        }
    }

    /// Returns the number of bytes of the records that were read, and that of all of them.
    pub fn progress(&self) -> (u64, u64) {
        match self {
            AnyReader::Own(reader) => reader.progress(),
            AnyReader::Perf(reader) => reader.progress(),
        }
    }

    /// Takes the emptied buffers of chunks for reuse.
    pub fn recycle(&mut self, spent: Round) {
        match self {
            AnyReader::Own(reader) => reader.recycle(spent),
            AnyReader::Perf(reader) => reader.recycle(spent),
        }
    }

    /// Returns the next piece of input; `None` at the end of the file, or where it cannot be read any further.
    pub fn next_input(&mut self) -> Option<Input> {
        match self {
            AnyReader::Own(reader) => reader.next_input(),
            AnyReader::Perf(reader) => reader.next_input(),
        }
    }
}
