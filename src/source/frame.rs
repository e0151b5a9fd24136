//! Finds the extent of perf records and decodes their fields.
//!
//! The layout is that of perf_event_open(2): `PERF_RECORD_*` with the sample fields that every event of rtrace
//! requests. The identifier comes first, so the event, and by it the layout of the other fields, is known before
//! anything else is read. The bytes may come from a file: nothing here panics, and a record that cannot be read is a
//! [`Fault`], never a guess.
//!
//! A record is decoded in two steps. [`Frame::stamp`] reads only the time and the event, for the merge. [`Frame::read`]
//! reads the complete record. Numbers are little-endian, as on every machine whose records rtrace reads.

use super::record::{Body, Record, Sample};
use crate::bpf;
use crate::event::{EventIndex, FileId, TaskId, Time};
use crate::session::EventTable;

/// `enum perf_event_type` (include/uapi/linux/perf_event.h): the records that are decoded. All others are skipped.
pub mod kind {
    /// The kernel dropped records because the ring was full.
    pub const LOST: u32 = 2;
    /// A task changed its comm.
    pub const COMM: u32 = 3;
    /// A task ended.
    pub const EXIT: u32 = 4;
    /// A task was created.
    pub const FORK: u32 = 7;
    /// An event happened.
    pub const SAMPLE: u32 = 9;
    /// A file was mapped, with its device and inode number.
    pub const MMAP2: u32 = 10;
    /// The number of samples that were dropped, from events of hardware.
    pub const LOST_SAMPLES: u32 = 13;
}

/// `PERF_SAMPLE_*` (include/uapi/linux/perf_event.h): the sample fields that are decoded.
pub mod field {
    /// The instruction pointer.
    pub const IP: u64 = 1 << 0;
    /// The process and the thread, 4 bytes each.
    pub const TID: u64 = 1 << 1;
    /// The time stamp in nanoseconds of the event's clock.
    pub const TIME: u64 = 1 << 2;
    /// The data address; that of the access for a page fault.
    pub const ADDR: u64 = 1 << 3;
    /// The counter of the event, as read(2) returns it.
    pub const READ: u64 = 1 << 4;
    /// The call chain that the kernel walked: a number of entries, and 8 bytes for each.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// The identifier of the event that was opened, also for the events that inherited from it.
    pub const ID: u64 = 1 << 6;
    /// The CPU, and 4 reserved bytes.
    pub const CPU: u64 = 1 << 7;
    /// How much the event's counter rose since its last sample.
    pub const PERIOD: u64 = 1 << 8;
    /// The identifier of the event itself, which is another one for each event that inherited.
    pub const STREAM_ID: u64 = 1 << 9;
    /// The raw bytes of a tracepoint or of a BPF program, after their size in 4 bytes.
    pub const RAW: u64 = 1 << 10;
    /// The ABI and the values of the user-space registers that `sample_regs_user` selects.
    pub const REGS_USER: u64 = 1 << 12;
    /// A copy of the user-space stack from the stack pointer upwards, between its requested and its real size.
    pub const STACK_USER: u64 = 1 << 13;
    /// The same as [`ID`], at the beginning of samples and at the end of all other records.
    pub const IDENTIFIER: u64 = 1 << 16;
    /// The fields of events whose raw bytes contain the time and the task: the output of the BPF programs
    /// ([`crate::bpf::record`]).
    pub const PROGRAM_OUTPUT: u64 = IDENTIFIER | RAW;
    /// The fields that every other event requests, so that each record has its time, task and event.
    pub const NEEDED: u64 = IDENTIFIER | TID | TIME;
    /// The fields with stack data ([`crate::source::dump`]).
    pub const STACK: u64 = CALLCHAIN | REGS_USER | STACK_USER;
    /// The fields that `sample_id_all` appends to records that are not samples.
    pub const TRAILER: u64 = TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER;
}

/// PERF_RECORD_MISC_COMM_EXEC.
pub const MISC_COMM_EXEC: u16 = 1 << 13;
/// PROT_EXEC of mmap(2), in PERF_RECORD_MMAP2's `prot`.
pub(super) const PROT_EXEC: u32 = 4;
/// `struct perf_event_header`: type, misc, size.
pub const HEADER_BYTES: usize = 8;

/// The bytes of the identifier and the raw size, which precede the raw bytes in a sample of [`field::PROGRAM_OUTPUT`].
const SIZED_BYTES: usize = 12;

/// Why a record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("has a size of {size} bytes, but only {left} are left")]
    Size { size: usize, left: usize },
    #[error("of type {kind} is too short for its fields ({size} bytes)")]
    Short { kind: u32, size: usize },
    #[error("is of an event that is not in the session (identifier {0})")]
    UnknownEvent(u64),
    #[error("is of an event whose sample layout {0:#x} is not supported")]
    Layout(u64),
    #[error("is too large for a file ({size} bytes with its time, task and CPU)")]
    Large { size: usize },
}

/// The fields of a record that the merge needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When the kernel wrote the record.
    pub time: Time,
    /// The event that the record belongs to.
    pub event: EventIndex,
}

/// The extent of a record: its header and its undecoded body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The type of the record, one of [`kind`].
    pub kind: u32,
    /// PERF_RECORD_MISC_* bits; what some of them mean depends on the type.
    pub misc: u16,
    /// The bytes after the header.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Returns the record that begins at `offset`.
    ///
    /// # Errors
    /// [`Fault::Size`]: the records that follow cannot be found either.
    #[inline]
    pub fn at(bytes: &'a [u8], offset: usize) -> Result<Frame<'a>, Fault> {
        let rest = bytes.get(offset..).unwrap_or_default();
        let header = rest.first_chunk().copied().map(u64::from_le_bytes).ok_or(Fault::Size { size: HEADER_BYTES, left: rest.len() })?;
        let size = (header >> 48) as usize;
        let body = rest.get(HEADER_BYTES..size).ok_or(Fault::Size { size, left: rest.len() })?;
        Ok(Frame { kind: header as u32, misc: (header >> 32) as u16, body })
    }

    /// Returns the size in bytes, including the header.
    #[inline]
    pub fn size(&self) -> usize {
        HEADER_BYTES + self.body.len()
    }

    /// Returns the time and the event of the record, or `None` for kinds that are skipped.
    ///
    /// # Errors
    /// The event is unknown, or the record is too short.
    #[inline]
    pub fn stamp(&self, table: &EventTable) -> Result<Option<Stamp>, Fault> {
        let (id, sample) = match self.kind {
            kind::SAMPLE => (self.body.first_chunk(), true),
            kind::LOST | kind::COMM | kind::EXIT | kind::FORK | kind::MMAP2 | kind::LOST_SAMPLES => (self.body.last_chunk(), false),
            _ => return Ok(None),
        };
        let id = id.copied().map(u64::from_le_bytes).ok_or_else(|| self.short())?;
        let event = *table.ids.get(&id).ok_or(Fault::UnknownEvent(id))?;
        let layout = table.get(event).ok_or(Fault::UnknownEvent(id))?.sample_type;
        if layout & !field::STACK == field::PROGRAM_OUTPUT {
            return self.stamp_of_bytes(layout, sample, event).map(Some);
        }
        if layout & (field::NEEDED | field::READ) != field::NEEDED {
            return Err(Fault::Layout(layout));
        }
        let before = if sample { Some(time_in_sample(layout)) } else { self.body.len().checked_sub(time_from_end(layout)) };
        let time = before.and_then(|at| self.body.get(at..)?.first_chunk().copied()).map(u64::from_le_bytes).ok_or_else(|| self.short())?;
        Ok(Some(Stamp { time: Time(time), event }))
    }

    /// Returns the stamp of a record of [`field::PROGRAM_OUTPUT`], whose time is in its raw bytes. A LOST record has
    /// none: it gets the latest time, which the merge replaces by that of the sample that follows it.
    #[inline]
    fn stamp_of_bytes(&self, layout: u64, sample: bool, event: EventIndex) -> Result<Stamp, Fault> {
        let time = match (sample, layout & field::CALLCHAIN) {
            (false, _) => Some(Time(u64::MAX)),
            (true, 0) => self.body.get(SIZED_BYTES..).and_then(bpf::record::time),
            (true, _) => self.program_sample(layout).and_then(|sample| bpf::record::time(sample.raw)),
        };
        Ok(Stamp { time: time.ok_or_else(|| self.short())?, event })
    }

    #[inline]
    fn program_sample(&self, layout: u64) -> Option<ProgramSample<'a>> {
        let mut fields = Fields { rest: self.body, layout };
        Some(ProgramSample { origin: fields.u64()?, chain: fields.chain()?, raw: fields.sized()?, dump: fields.rest })
    }

    /// Decodes the complete record. `ring` is the CPU of the record's ring, for events without a CPU field. `stamp` is
    /// the result of [`Frame::stamp`].
    ///
    /// # Errors
    /// The record is too short for its fields.
    #[inline(always)] // as `sample`: otherwise the record is copied three times, which is half of the total cost
    pub fn read(&self, table: &EventTable, stamp: Stamp, ring: u32) -> Result<Record<'a>, Fault> {
        let layout = table.get(stamp.event).map_or(0, |spec| spec.sample_type);
        let read = if self.kind == kind::SAMPLE { self.sample(layout, stamp, ring) } else { self.side_band(layout, stamp, ring) };
        read.ok_or_else(|| self.short())
    }

    #[inline(always)]
    fn sample(&self, layout: u64, stamp: Stamp, ring: u32) -> Option<Record<'a>> {
        if layout & !field::STACK == field::PROGRAM_OUTPUT {
            let ProgramSample { origin, chain, raw, dump } = self.program_sample(layout)?;
            let sample = Sample { event: stamp.event, origin, count: 1, raw, ip: 0, address: 0, chain, dump };
            return Some(Record { time: stamp.time, cpu: ring, task: bpf::record::task(raw)?, body: Body::Sample(sample) });
        }
        let mut fields = Fields { rest: self.body, layout };
        let origin = fields.u64()?;
        let ip = fields.optional(field::IP)?.unwrap_or(0);
        let task = fields.task()?;
        fields.u64()?; // the time, which the stamp has
        let address = fields.optional(field::ADDR)?.unwrap_or(0);
        fields.optional(field::ID)?;
        fields.optional(field::STREAM_ID)?;
        let cpu = fields.optional(field::CPU)?.map_or(ring, |cpu| cpu as u32);
        let count = fields.optional(field::PERIOD)?.unwrap_or(1);
        let chain = fields.chain()?;
        let raw = if layout & field::RAW != 0 { fields.sized()? } else { &[] };
        let sample = Sample { event: stamp.event, origin, count, raw, ip, address, chain, dump: fields.rest };
        Some(Record { time: stamp.time, cpu, task, body: Body::Sample(sample) })
    }

    /// Returns the size of the fields that `sample_id_all` appends to a record with this layout that is no sample.
    pub(super) fn trailer_bytes(&self, layout: u64) -> usize {
        8 * (layout & field::TRAILER).count_ones() as usize
    }

    #[cold]
    fn side_band(&self, layout: u64, stamp: Stamp, ring: u32) -> Option<Record<'a>> {
        let (own, trailer) = self.body.split_at_checked(self.body.len().checked_sub(self.trailer_bytes(layout))?)?;
        let mut trailer = Fields { rest: trailer, layout };
        let task = if layout & field::TID == 0 { TaskId::default() } else { trailer.task()? };
        trailer.optional(field::TIME)?; // which the stamp has
        trailer.optional(field::ID)?;
        trailer.optional(field::STREAM_ID)?;
        let cpu = trailer.optional(field::CPU)?.map_or(ring, |cpu| cpu as u32);
        let body = self.side_band_body(Fields { rest: own, layout })?;
        Some(Record { time: stamp.time, cpu, task, body })
    }

    fn side_band_body(&self, mut own: Fields<'a>) -> Option<Body<'a>> {
        Some(match self.kind {
            kind::COMM => Body::Comm { task: own.task()?, comm: own.text(), exec: self.misc & MISC_COMM_EXEC != 0 },
            kind::FORK => {
                let (child, parent) = own.family()?;
                Body::Fork { child, parent }
            }
            kind::EXIT => Body::Exit { task: own.family()?.0 },
            kind::MMAP2 => {
                let task = own.task()?;
                let (start, len, offset) = (own.u64()?, own.u64()?, own.u64()?);
                let (device, inode) = (own.u64()?, own.u64()?);
                let file = FileId { device: (device as u32, (device >> 32) as u32), inode, generation: own.u64()? };
                let executable = own.u64()? as u32 & PROT_EXEC != 0;
                Body::Map { task, start, len, offset, file, executable, path: own.text() }
            }
            kind::LOST => {
                own.u64()?; // the ID of the event that was next written, not of those that were dropped
                Body::Lost { records: own.u64()?, after: None }
            }
            kind::LOST_SAMPLES => Body::Lost { records: own.u64()?, after: None },
            _ => return None,
        })
    }

    #[cold]
    fn short(&self) -> Fault {
        Fault::Short { kind: self.kind, size: self.size() }
    }
}

/// Returns the offset of the time in a sample's body: after the identifier, the instruction pointer and the task.
fn time_in_sample(layout: u64) -> usize {
    8 * (2 + usize::from(layout & field::IP != 0))
}

/// Returns the distance of the time from the end of a trailer: `TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER`.
fn time_from_end(layout: u64) -> usize {
    8 * (2 + usize::from(layout & field::ID != 0) + usize::from(layout & field::STREAM_ID != 0) + usize::from(layout & field::CPU != 0))
}

/// A sample of [`field::PROGRAM_OUTPUT`]. Its time and task are in `raw`.
struct ProgramSample<'a> {
    origin: u64,
    chain: &'a [u8],
    raw: &'a [u8],
    dump: &'a [u8],
}

/// A reader of consecutive fields. Its methods return `None` where the bytes end.
pub(super) struct Fields<'a> {
    /// The bytes that were not read yet.
    pub(super) rest: &'a [u8],
    /// PERF_SAMPLE_* bits: which of the optional fields are there.
    pub(super) layout: u64,
}

impl<'a> Fields<'a> {
    #[inline]
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Option<u64> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*taken))
    }

    /// Reads a field that is present only if the layout has `bit`.
    #[inline]
    fn optional(&mut self, bit: u64) -> Option<Option<u64>> {
        if self.layout & bit == 0 { Some(None) } else { self.u64().map(Some) }
    }

    /// Reads `u32 pid, tid`.
    #[inline]
    pub(super) fn task(&mut self) -> Option<TaskId> {
        self.u64().map(|both| TaskId { pid: both as i32, tid: (both >> 32) as i32 })
    }

    /// Reads `u32 pid, ppid, tid, ptid`: a task and its parent.
    fn family(&mut self) -> Option<(TaskId, TaskId)> {
        let (pids, tids) = (self.u64()?, self.u64()?);
        let task = TaskId { pid: pids as i32, tid: tids as i32 };
        Some((task, TaskId { pid: (pids >> 32) as i32, tid: (tids >> 32) as i32 }))
    }

    /// Reads `u64 nr` and that many addresses, if the layout has a call chain.
    #[inline]
    pub(super) fn chain(&mut self) -> Option<&'a [u8]> {
        match self.optional(field::CALLCHAIN)? {
            Some(addresses) => self.take(usize::try_from(addresses).ok()?.checked_mul(8)?),
            None => Some(&[]),
        }
    }

    /// Reads `u32 size` and that many bytes.
    #[inline]
    pub(super) fn sized(&mut self) -> Option<&'a [u8]> {
        let (size, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        self.take(u32::from_le_bytes(*size) as usize)
    }

    /// Returns the rest up to the first NUL.
    fn text(&self) -> &'a [u8] {
        &self.rest[..memchr::memchr(0, self.rest).unwrap_or(self.rest.len())]
    }
}
