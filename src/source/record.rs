//! One record of a ring, borrowed from its chunk.
//!
//! The layout is perf_event_open(2)'s, `PERF_RECORD_*` with the sample fields every event of rtrace asks for: the identifier first, so that
//! the event, and with it the rest of the layout, is known before anything else is read. Bytes may come from a file: nothing here panics.

use super::note::Note;
use crate::event::{EventIndex, TaskId, Time};

/// A record and where and when it was written.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    pub time: Time,
    pub cpu: u32,
    /// Whom the kernel was running.
    pub task: TaskId,
    pub body: Body<'a>,
}

/// What a record says.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    Sample(Sample<'a>),
    /// PERF_RECORD_COMM: a task has a new name; `exec` when an exec gave it.
    Comm {
        task: TaskId,
        comm: &'a [u8],
        exec: bool,
    },
    /// PERF_RECORD_FORK: a task was made.
    Fork {
        child: TaskId,
        parent: TaskId,
    },
    /// PERF_RECORD_EXIT: a task is gone.
    Exit {
        task: TaskId,
    },
    /// PERF_RECORD_MMAP2: a file was mapped.
    Map {
        task: TaskId,
        start: u64,
        len: u64,
        offset: u64,
        executable: bool,
        path: &'a [u8],
    },
    /// PERF_RECORD_LOST: this many records were dropped since the last record of this ring.
    Lost {
        records: u64,
    },
    /// What rtrace learnt outside the rings.
    Note(&'a Note),
}

/// PERF_RECORD_SAMPLE.
#[derive(Clone, Debug)]
pub struct Sample<'a> {
    pub event: EventIndex,
    /// Which opened event it came from: the same for all that inherited it. Two origins for one task and event mean that both report it.
    pub origin: u64,
    /// The tracepoint's own bytes, from `common_type` on.
    pub raw: &'a [u8],
    /// The instruction pointer and data address, for page faults.
    pub ip: u64,
    pub address: u64,
}
