//! Restores the records of BPF programs from a file, where they are packed ([`super::rewrite`]), to what the ring had.

use super::frame::{Fields, Frame, HEADER_BYTES, field, kind};
use crate::bpf::record::packed::{self, Unpacker};
use crate::event::{TaskId, Time};

/// A record of a file whose event has packed records.
#[derive(Clone, Copy, Debug)]
pub struct PackedRecord<'a> {
    /// The CPU of the ring.
    pub cpu: u32,
    frame: Frame<'a>,
    body: Body<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Body<'a> {
    Sample {
        origin: u64,
        task: TaskId,
        time: Time,
        layout: u64,
        chain: &'a [u8],
        raw: &'a [u8],
        dump: &'a [u8],
    },
    /// Any other record: its own fields, and the identifier of its event.
    Other {
        own: &'a [u8],
        origin: &'a [u8; 8],
    },
}

impl<'a> PackedRecord<'a> {
    /// Finds the parts of a record. `layout` is that of the ring. Returns `None` if the record is too short.
    #[inline]
    pub fn parse(frame: Frame<'a>, layout: u64) -> Option<PackedRecord<'a>> {
        if frame.kind != kind::SAMPLE {
            // CPU, task, time and identifier end it.
            let (own, trailer) = frame.body.split_at_checked(frame.body.len().checked_sub(32)?)?;
            let cpu = u32::from_le_bytes(*trailer.first_chunk()?);
            return Some(PackedRecord { cpu, frame, body: Body::Other { own, origin: trailer.last_chunk()? } });
        }
        let mut fields = Fields { rest: frame.body, layout };
        let origin = fields.u64()?;
        fields.u64()?; // the address
        let (task, time) = (fields.task()?, Time(fields.u64()?));
        let (chain, raw) = (fields.chain()?, fields.sized()?);
        Some(PackedRecord {
            cpu: packed::cpu(raw)?,
            frame,
            body: Body::Sample { origin, task, time, layout, chain, raw, dump: fields.rest },
        })
    }

    /// Appends the record as the ring had it. Returns `None`, and appends nothing, if its packed bytes cannot be read.
    pub fn append(&self, unpacker: &Unpacker, out: &mut Vec<u8>) -> Option<()> {
        let begin = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        let size = self.append_body(unpacker, out).and_then(|()| u16::try_from(out.len() - begin).ok());
        let Some(size) = size else {
            out.truncate(begin);
            return None;
        };
        let header = u64::from(self.frame.kind) | u64::from(self.frame.misc) << 32 | u64::from(size) << 48;
        out[begin..begin + HEADER_BYTES].copy_from_slice(&header.to_le_bytes());
        Some(())
    }

    fn append_body(&self, unpacker: &Unpacker, out: &mut Vec<u8>) -> Option<()> {
        match self.body {
            Body::Other { own, origin } => {
                out.extend_from_slice(own);
                out.extend_from_slice(origin);
            }
            Body::Sample { origin, task, time, layout, chain, raw, dump } => {
                out.extend_from_slice(&origin.to_le_bytes());
                if layout & field::CALLCHAIN != 0 {
                    out.extend_from_slice(&(chain.len() as u64 / 8).to_le_bytes());
                    out.extend_from_slice(chain);
                }
                let begin = out.len();
                out.extend_from_slice(&[0; 4]);
                unpacker.unpack(raw, time, task, out)?;
                let size = (out.len() - begin - 4) as u32;
                out[begin..begin + 4].copy_from_slice(&size.to_le_bytes());
                out.extend_from_slice(dump);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::record::packed::CallLayout;
    use crate::bpf::record::tests::{piece_bytes, returned, written};
    use crate::event::EventIndex;
    use crate::source::record::tests::{TASK, table};
    use crate::source::record_writer::RecordWriter;
    use crate::source::rewrite;
    use proptest::prelude::*;

    fn restored(layout: u64, bytes: &[u8]) -> Option<(Vec<u32>, Vec<u8>)> {
        let unpacker = Unpacker::new(&CallLayout::default()).unwrap();
        let (mut cpus, mut out, mut at) = (Vec::new(), Vec::new(), 0);
        while let Ok(frame) = Frame::at(bytes, at) {
            at += frame.size();
            let record = PackedRecord::parse(frame, layout)?;
            cpus.push(record.cpu);
            record.append(&unpacker, &mut out)?;
        }
        Some((cpus, out))
    }

    #[test]
    fn restored_records_are_those_of_the_ring() {
        for stack in [0, field::CALLCHAIN, field::STACK] {
            let layout = field::PROGRAM_OUTPUT | stack;
            let table = table(&[layout]);
            let mut ring = RecordWriter::new(&table, 3);
            let call = written(&returned(TASK.tid, 1, 5, 8), &piece_bytes(0, 1, b"x", [1, 1, 0]));
            let raw = [call, vec![0; 4]].concat();
            ring.sample(EventIndex(0), TASK, Time(8), &raw).lost(4, TASK, Time(9)).sample(EventIndex(0), TASK, Time(8), &raw);
            let chunk = ring.chunk();
            let mut packed = Vec::new();
            rewrite::append(&table, &chunk, &mut packed);
            assert!(packed.len() < chunk.bytes.len() * 3 / 4, "{} of {}", packed.len(), chunk.bytes.len());
            assert_eq!(restored(layout, &packed), Some((vec![3; 3], chunk.bytes)));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_restored_without_panic(kind in 0u32..12, body: Vec<u8>, stack: bool) {
            let frame = Frame { kind, misc: 0, body: &body };
            let layout = if stack { field::PROGRAM_OUTPUT | field::STACK } else { field::PROGRAM_OUTPUT };
            let mut out = Vec::new();
            let unpacker = Unpacker::new(&CallLayout::default()).unwrap();
            if PackedRecord::parse(frame, layout).is_some_and(|record| record.append(&unpacker, &mut out).is_none()) {
                prop_assert!(out.is_empty());
            }
        }
    }
}
