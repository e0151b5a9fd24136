//! A writer of records in memory, for `rtrace convert`, tests and benchmarks.
//!
//! [`RecordWriter`] writes the bytes that the kernel writes for the sample layouts of the session's events. It is the
//! inverse of [`super::frame`], so tests need no privileges to produce records. It neither sorts nor checks the
//! records.

use super::bytes_of_pair;
use super::chunk::{Chunk, Form, Round};
use super::frame::{HEADER_BYTES, MISC_COMM_EXEC, PROT_EXEC, field, kind};
use crate::event::{EventIndex, Synthesized, TaskId, Time};
use crate::session::{EventTable, Role};

/// A writer of the records of one ring.
///
/// ```
/// # use rtrace::{events::*, records::{RecordWriter, Round, Session}};
/// # fn example(session: &Session, enter: EventIndex, raw: &[u8]) -> Round {
/// let task = TaskId { pid: 10, tid: 10 };
/// let mut ring = RecordWriter::new(&session.events, 0);
/// ring.comm(task, Time(5), b"cat", true).sample(enter, task, Time(7), raw).exit(task, task, Time(9));
/// ring.round(Time(100))
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RecordWriter<'a> {
    table: &'a EventTable,
    cpu: u32,
    bytes: Vec<u8>,
}

impl<'a> RecordWriter<'a> {
    /// Returns a writer for the ring of this CPU. The table has the layouts of the records.
    pub fn new(table: &'a EventTable, cpu: u32) -> RecordWriter<'a> {
        RecordWriter { table, cpu, bytes: Vec::new() }
    }

    /// Writes a sample of a tracepoint. `raw` begins with `common_type` (see `raw_record`).
    pub fn sample(&mut self, event: EventIndex, task: TaskId, time: Time, raw: &[u8]) -> &mut Self {
        self.sample_from(self.identifier(event), task, time, raw)
    }

    /// Writes a sample of the opened event with the identifier `origin`.
    pub fn sample_from(&mut self, origin: u64, task: TaskId, time: Time, raw: &[u8]) -> &mut Self {
        self.any_sample(origin, task, time, [0, 0], raw)
    }

    /// Writes a sample of a software event, such as a page fault, with its instruction pointer and data address.
    pub fn fault(&mut self, event: EventIndex, task: TaskId, time: Time, ip: u64, address: u64) -> &mut Self {
        self.any_sample(self.identifier(event), task, time, [ip, address], &[])
    }

    /// Writes a PERF_RECORD_COMM.
    pub fn comm(&mut self, task: TaskId, time: Time, comm: &[u8], exec: bool) -> &mut Self {
        let mut body = bytes_of_pair(task.pid, task.tid).to_vec();
        push_text(&mut body, comm);
        self.side_band(kind::COMM, if exec { MISC_COMM_EXEC } else { 0 }, task, time, &body)
    }

    /// Writes a PERF_RECORD_FORK, which the kernel writes in the context of the parent.
    pub fn fork(&mut self, child: TaskId, parent: TaskId, time: Time) -> &mut Self {
        self.family(kind::FORK, child, parent, parent, time)
    }

    /// Writes a PERF_RECORD_EXIT, which the kernel writes in the context of the exiting task.
    pub fn exit(&mut self, task: TaskId, parent: TaskId, time: Time) -> &mut Self {
        self.family(kind::EXIT, task, parent, task, time)
    }

    /// Writes a PERF_RECORD_MMAP2.
    pub fn map(&mut self, task: TaskId, time: Time, (start, len, offset): (u64, u64, u64), executable: bool, path: &[u8]) -> &mut Self {
        let mut body = bytes_of_pair(task.pid, task.tid).to_vec();
        let protection = if executable { u64::from(PROT_EXEC) } else { 0 };
        for number in [start, len, offset, 0, 0, 0, protection] {
            body.extend(number.to_le_bytes());
        }
        push_text(&mut body, path);
        self.side_band(kind::MMAP2, 0, task, time, &body)
    }

    /// Writes a PERF_RECORD_LOST with this number of dropped records. The kernel writes it just before the next sample
    /// of that task.
    pub fn lost(&mut self, records: u64, task: TaskId, time: Time) -> &mut Self {
        let mut body = self.identifier(self.side_band_event()).to_le_bytes().to_vec();
        body.extend(records.to_le_bytes());
        self.side_band(kind::LOST, 0, task, time, &body)
    }

    /// Writes any record: a header and this body.
    ///
    /// # Panics
    /// The record is longer than 65,535 bytes, the largest size that a header can hold.
    pub fn record(&mut self, kind: u32, misc: u16, body: &[u8]) -> &mut Self {
        let size = u16::try_from(HEADER_BYTES + body.len()).expect("a record is at most 65535 bytes long");
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(misc.to_le_bytes());
        self.bytes.extend(size.to_le_bytes());
        self.bytes.extend(body);
        self
    }

    /// Returns the records written so far as a chunk, and clears the writer.
    pub fn chunk(&mut self) -> Chunk {
        Chunk { cpu: self.cpu, form: Form::Records, bytes: std::mem::take(&mut self.bytes) }
    }

    /// Returns the records written so far as the only chunk of a round, and clears the writer.
    pub fn round(&mut self, started: Time) -> Round {
        Round { started, chunks: vec![self.chunk()], synthesized: Vec::<(Time, Synthesized)>::new() }
    }

    fn any_sample(&mut self, origin: u64, task: TaskId, time: Time, [ip, address]: [u64; 2], raw: &[u8]) -> &mut Self {
        let layout = self.layout(origin);
        let mut body = Vec::with_capacity(96 + raw.len());
        let mut put = |bit: u64, bytes: [u8; 8]| {
            if layout & bit != 0 {
                body.extend(bytes);
            }
        };
        put(field::IDENTIFIER, origin.to_le_bytes());
        put(field::IP, ip.to_le_bytes());
        put(field::TID, bytes_of_pair(task.pid, task.tid));
        put(field::TIME, time.0.to_le_bytes());
        put(field::ADDR, address.to_le_bytes());
        put(field::ID, origin.to_le_bytes());
        put(field::STREAM_ID, origin.to_le_bytes());
        put(field::CPU, bytes_of_pair(self.cpu as i32, 0));
        put(field::PERIOD, 1u64.to_le_bytes());
        put(field::CALLCHAIN, 0u64.to_le_bytes());
        if layout & field::RAW != 0 {
            // As in the kernel, the size field and the bytes together fill complete words, and the size includes the
            // padding.
            let padded = (raw.len() + 4).next_multiple_of(8) - 4;
            body.extend((padded as u32).to_le_bytes());
            body.extend(raw);
            body.resize(body.len() + padded - raw.len(), 0);
        }
        self.record(kind::SAMPLE, 0, &body)
    }

    fn family(&mut self, kind: u32, task: TaskId, parent: TaskId, current: TaskId, time: Time) -> &mut Self {
        let body = [bytes_of_pair(task.pid, parent.pid), bytes_of_pair(task.tid, parent.tid), time.0.to_le_bytes()].concat();
        self.side_band(kind, 0, current, time, &body)
    }

    /// Writes a record with the trailer of `sample_id_all`.
    fn side_band(&mut self, kind: u32, misc: u16, current: TaskId, time: Time, body: &[u8]) -> &mut Self {
        let id = self.identifier(self.side_band_event());
        let layout = self.layout(id);
        let mut body = body.to_vec();
        let trailer = [
            (field::TID, bytes_of_pair(current.pid, current.tid)),
            (field::TIME, time.0.to_le_bytes()),
            (field::ID, id.to_le_bytes()),
            (field::STREAM_ID, id.to_le_bytes()),
            (field::CPU, bytes_of_pair(self.cpu as i32, 0)),
            (field::IDENTIFIER, id.to_le_bytes()),
        ];
        body.extend(trailer.iter().filter(|(bit, _)| layout & bit != 0).flat_map(|(_, bytes)| bytes));
        self.record(kind, misc, &body)
    }

    /// Returns the event that side-band records belong to: the one opened for them, or else the first.
    fn side_band_event(&self) -> EventIndex {
        self.table.find(Role::SideBand).unwrap_or(EventIndex(0))
    }

    /// Returns the smallest identifier of an event. For an event without one, returns zero, which the kernel never
    /// assigns.
    fn identifier(&self, event: EventIndex) -> u64 {
        self.table.ids.iter().filter(|(_, of)| **of == event).map(|(id, _)| *id).min().unwrap_or(0)
    }

    /// Returns the sample layout of the event with this identifier, or the fields that every event has if it is
    /// unknown.
    fn layout(&self, id: u64) -> u64 {
        self.table.ids.get(&id).and_then(|event| self.table.get(*event)).map_or(field::NEEDED, |spec| spec.sample_type)
    }
}

/// Returns a tracepoint's raw bytes with these values in the fields of these names, and zero in all others. Names that
/// the format does not have are ignored.
#[cfg(test)]
pub fn raw_record(format: &crate::kernel::format::Format, values: &[(&str, u64)]) -> Vec<u8> {
    let end = |field: &crate::kernel::format::FormatField| (field.offset + field.size) as usize;
    let mut raw = vec![0; format.fields.iter().map(end).max().unwrap_or(0)];
    let common_type = ("common_type", format.id);
    for (name, value) in std::iter::once(&common_type).chain(values) {
        if let Some(field) = format.fields.iter().find(|field| field.name == *name) {
            let width = (field.size as usize).min(8);
            raw[field.offset as usize..][..width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
    }
    raw
}

/// Appends text with a terminating NUL, padded to complete words, as the kernel does.
fn push_text(body: &mut Vec<u8>, text: &[u8]) {
    body.extend(text);
    body.resize(body.len() + (text.len() + 1).next_multiple_of(8) - text.len(), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::format::{FieldPlace, Format, FormatField};

    #[test]
    fn raw_bytes_have_the_values_at_their_fields_offsets() {
        let field = |name: &str, offset, size| FormatField {
            name: name.into(),
            type_name: "long".into(),
            offset,
            size,
            signed: false,
            array: None,
            place: FieldPlace::Here,
        };
        let fields = vec![field("common_type", 0, 2), field("common_pid", 4, 4), field("id", 8, 8), field("args", 16, 48)];
        let format = Format { name: "sys_enter".into(), id: 0x123, fields, print: String::new() };
        let raw = raw_record(&format, &[("id", u64::MAX), ("common_pid", 0x1_0000_0007), ("args", 5), ("nonsense", 1)]);
        let mut wanted = vec![0x23, 1, 0, 0, 7, 0, 0, 0];
        wanted.extend([0xff; 8]);
        wanted.push(5);
        wanted.resize(64, 0);
        assert_eq!(raw, wanted);
    }
}
