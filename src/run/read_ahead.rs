//! The reader of a recording, in this thread or in one of its own that is ahead by a few rounds.
//!
//! What is wrong with the file is known as far as its input was taken, and not as far as it was read ahead: a replay
//! that ends early says the same in both cases.

use crate::event::Time;
use crate::recording::{AnyReader, Damage, NoIndex};
use crate::source::{Input, Round};
use std::io;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;

/// How many pieces of input are read ahead at most. They take as much memory as the rings of the traced machine held
/// each.
const AHEAD_MAX: usize = 2;

/// A source of input.
pub enum Source {
    /// The reader is asked for each piece of input.
    Here(AnyReader),
    /// The reader is a thread.
    Ahead {
        inputs: Receiver<Read>,
        spent: Sender<Round>,
        thread: JoinHandle<AnyReader>,
        /// What was taken last.
        last: Known,
    },
}

/// A piece of input, or the end.
pub struct Read {
    input: Option<Input>,
    known: Known,
}

/// What is known of the file when its input was read up to some place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    damages: usize,
    unreadable: u64,
    progress: (u64, u64),
}

impl Known {
    fn of(reader: &AnyReader) -> Known {
        Known { damages: reader.damages().len(), unreadable: reader.unreadable(), progress: reader.progress() }
    }
}

impl Source {
    /// Starts a thread that reads, if there are several CPUs to run on.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub fn new(reader: AnyReader, has_cpus: bool) -> io::Result<Source> {
        if !has_cpus {
            return Ok(Source::Here(reader));
        }
        let (sender, inputs) = mpsc::sync_channel(AHEAD_MAX);
        let (spent, spent_rounds) = mpsc::channel();
        let last = Known::of(&reader);
        let thread = std::thread::Builder::new().name("rtrace-reader".to_owned()).spawn(move || read(reader, &sender, &spent_rounds))?;
        Ok(Source::Ahead { inputs, spent, thread, last })
    }

    /// Returns the next piece of input; `None` at the end of the file, or where it cannot be read any further.
    pub fn next_input(&mut self) -> Option<Input> {
        match self {
            Source::Here(reader) => reader.next_input(),
            Source::Ahead { inputs, last, .. } => {
                // A thread that panicked has sent no end. `finish` passes the panic on.
                let Read { input, known } = inputs.recv().ok()?;
                *last = known;
                input
            }
        }
    }

    /// Passes over the records from which nothing follows for records from this time on ([`AnyReader::pass_over`]). A
    /// thread that reads ahead passes over nothing.
    ///
    /// # Errors
    /// The recording has no index, and all of it is read.
    pub fn pass_over(&mut self, until: Time) -> Result<(), NoIndex> {
        match self {
            Source::Here(reader) => reader.pass_over(until),
            Source::Ahead { .. } => Ok(()),
        }
    }

    /// Returns the number of calls that were passed over so far.
    pub fn passed_calls(&self) -> u64 {
        match self {
            Source::Here(reader) => reader.passed_calls(),
            Source::Ahead { .. } => 0,
        }
    }

    /// Takes the emptied buffers of chunks for reuse.
    pub fn recycle(&mut self, round: Round) {
        match self {
            Source::Here(reader) => reader.recycle(round),
            Source::Ahead { spent, .. } => _ = spent.send(round),
        }
    }

    /// Returns the number of bytes of the records that were read, and that of all of them.
    pub fn progress(&self) -> (u64, u64) {
        match self {
            Source::Here(reader) => reader.progress(),
            Source::Ahead { last, .. } => last.progress,
        }
    }

    /// Ends the reader. Returns what is wrong with the file, and the number of records that cannot be read beside that,
    /// as far as input was taken.
    pub fn finish(self) -> (Vec<Damage>, u64) {
        match self {
            Source::Here(reader) => (reader.damages().to_vec(), reader.unreadable()),
            Source::Ahead { inputs, thread, last, .. } => {
                drop(inputs);
                let reader = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                (reader.damages().iter().take(last.damages).cloned().collect(), last.unreadable)
            }
        }
    }
}

/// Reads until the end, or until nobody takes the input any more.
fn read(mut reader: AnyReader, inputs: &SyncSender<Read>, spent: &Receiver<Round>) -> AnyReader {
    loop {
        spent.try_iter().for_each(|round| reader.recycle(round));
        let input = reader.next_input();
        let is_end = input.is_none();
        let read = Read { input, known: Known::of(&reader) };
        if inputs.send(read).is_err() || is_end {
            return reader;
        }
    }
}
