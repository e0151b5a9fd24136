//! Records of a ring, borrowed from their chunk.
//!
//! This module has their decoded form and their errors; [`super::frame`] decodes the bytes.

use super::frame::{Fault, Frame};
use crate::event::{EventIndex, FileId, Synthesized, TaskId, Time};
use crate::session::EventTable;

/// A record with its time stamp, CPU and task.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// When the kernel wrote the record.
    pub time: Time,
    /// The CPU of the ring.
    pub cpu: u32,
    /// The task that was running on the CPU. Records of a tracefs instance have only the thread's ID, which is then
    /// used as the process ID too.
    pub task: TaskId,
    /// What the record says.
    pub body: Body<'a>,
}

/// The type-specific content of a record.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// PERF_RECORD_SAMPLE: an event happened; also the records of a tracefs instance.
    Sample(Sample<'a>),
    /// PERF_RECORD_COMM: a task's comm has changed.
    Comm {
        /// The task that has the comm now.
        task: TaskId,
        /// The new comm, at most 15 bytes; not escaped.
        comm: &'a [u8],
        /// Whether an exec changed it.
        exec: bool,
    },
    /// PERF_RECORD_FORK: a task was created.
    Fork {
        /// The new task.
        child: TaskId,
        /// The task that created it.
        parent: TaskId,
    },
    /// PERF_RECORD_EXIT: a task has exited.
    Exit {
        /// The task, of which this is mostly the last record.
        task: TaskId,
    },
    /// PERF_RECORD_MMAP2: a file was mapped.
    Map {
        /// The task whose process mapped it.
        task: TaskId,
        /// The first address of the mapping.
        start: u64,
        /// The size of the mapping in bytes.
        len: u64,
        /// The position in the file of the first byte that is mapped.
        offset: u64,
        /// The file's identity.
        file: FileId,
        /// Whether the memory may be executed.
        executable: bool,
        /// The file's path, or the kernel's name for memory without a file (`[vdso]`, `//anon`); not escaped.
        path: &'a [u8],
    },
    /// PERF_RECORD_LOST: the kernel dropped records because the ring was full.
    Lost {
        /// The number of records that were dropped since the last record of this ring.
        records: u64,
        /// The time of that last record, which only the merge knows.
        after: Option<Time>,
    },
    /// Records were overwritten in a CPU's buffer of a tracefs instance.
    Missed {
        /// The number of records since the last one of this CPU, if the page had room for that number.
        records: Option<u64>,
        /// The time of that last record, which only the merge knows.
        after: Option<Time>,
    },
    /// A record that rtrace synthesized from /proc.
    Synthesized(&'a Synthesized),
}

/// PERF_RECORD_SAMPLE.
#[derive(Clone, Debug)]
pub struct Sample<'a> {
    /// The event that happened.
    pub event: EventIndex,
    /// The ID of the opened event, which all events inherited from it share. If a task has samples of one event with
    /// two origins, both opened events recorded it.
    pub origin: u64,
    /// The sample's period: 1, except for tracepoints that count something other than their occurrences.
    pub count: u64,
    /// The tracepoint's raw bytes, from `common_type` on, with the kernel's padding at the end.
    pub raw: &'a [u8],
    /// The instruction pointer, for page faults.
    pub ip: u64,
    /// The data address, for page faults.
    pub address: u64,
    /// The call chain that the kernel walked ([`super::dump::chain`]). Empty if none was requested.
    pub chain: &'a [u8],
    /// User-space registers and stack memory ([`super::dump::Dump`]). Empty if they were not requested.
    pub dump: &'a [u8],
}

/// The error for a record that cannot be read, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record at byte {offset} of a chunk of CPU {cpu} {fault}")]
pub struct Malformed {
    /// The CPU of the ring.
    pub cpu: u32,
    /// The record's offset in the chunk.
    pub offset: usize,
    /// What is wrong with the record.
    pub fault: Fault,
}

/// An iterator over the records of one chunk, in the ring's order.
///
/// A [`Fault::Size`] ends the iteration. All other faults concern one record only.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    table: &'a EventTable,
    cpu: u32,
    bytes: &'a [u8],
    offset: usize,
    before: Option<Time>,
}

impl<'a> Records<'a> {
    /// Returns the records in the bytes of one ring, which is that of this CPU. The table says how to read them.
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
