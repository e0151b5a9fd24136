//! One record of a ring, borrowed from its chunk.
//!
//! What is in it and how it may be wrong; how its bytes are laid out is [`super::frame`]'s business.

use super::frame::{Fault, Frame};
use crate::event::{EventIndex, FileId, Note, TaskId, Time};
use crate::session::EventTable;

/// A record and where and when it was written.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    pub time: Time,
    pub cpu: u32,
    /// Whom the kernel was running. Records of a tracefs instance say only the thread: its number stands for the process too.
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
        file: FileId,
        executable: bool,
        path: &'a [u8],
    },
    /// PERF_RECORD_LOST: this many records were dropped since the last record of this ring, which was written at `after` (known only to the merge).
    Lost {
        records: u64,
        after: Option<Time>,
    },
    /// This many records (if the kernel had room to say it) were overwritten in the buffer of a tracefs instance since the last one of this CPU, which was written at `after`.
    Missed {
        records: Option<u64>,
        after: Option<Time>,
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
    /// How much it counted for: 1, save for tracepoints that count something else than their own number.
    pub count: u64,
    /// The tracepoint's own bytes, from `common_type` on, with the kernel's padding at the end.
    pub raw: &'a [u8],
    /// The instruction pointer and data address, for page faults.
    pub ip: u64,
    pub address: u64,
    /// The call chain that the kernel walked ([`super::dump::chain`]); empty where none was asked for.
    pub chain: &'a [u8],
    /// Registers and stack of user space ([`super::dump::Dump`]); empty where they were not asked for.
    pub dump: &'a [u8],
}

/// A record that cannot be read, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record at byte {offset} of a chunk of CPU {cpu} {fault}")]
pub struct Malformed {
    pub cpu: u32,
    /// From the beginning of the chunk.
    pub offset: usize,
    pub fault: Fault,
}

/// The records of one ring's bytes, in the ring's order. After a [`Fault::Size`] there are no more; other faults are of one record.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    table: &'a EventTable,
    cpu: u32,
    bytes: &'a [u8],
    offset: usize,
    before: Option<Time>,
}

impl<'a> Records<'a> {
    pub fn new(table: &'a EventTable, cpu: u32, bytes: &'a [u8]) -> Records<'a> {
        Records { table, cpu, bytes, offset: 0, before: None }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.offset < self.bytes.len() {
            let offset = self.offset;
            let malformed = |fault| Malformed { cpu: self.cpu, offset, fault };
            let frame = match Frame::at(self.bytes, offset) {
                Ok(frame) => frame,
                Err(fault) => {
                    self.offset = self.bytes.len();
                    return Some(Err(malformed(fault)));
                }
            };
            self.offset += frame.size();
            let stamp = match frame.stamp(self.table) {
                Ok(None) => continue,
                Ok(Some(stamp)) => stamp,
                Err(fault) => return Some(Err(malformed(fault))),
            };
            let mut record = frame.read(self.table, stamp, self.cpu).map_err(malformed);
            match &mut record {
                Ok(Record { body: Body::Lost { after, .. }, .. }) => *after = self.before,
                _ => self.before = Some(stamp.time),
            }
            return Some(record);
        }
        None
    }
}

#[cfg(test)]
pub(crate) mod tests;
