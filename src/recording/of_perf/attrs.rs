//! The events of a file of perf: their attributes and identifiers, and what they are called.

use crate::kernel::format::Format;
use crate::recording::attributes::{self, EventAttributes};
use crate::recording::layout::{Header, sample_type};
use crate::recording::tracing_data::TracingData;
use crate::stack::symbols::ReadAt;
use rustc_hash::FxHashMap;

/// PERF_TYPE_SOFTWARE
pub const SOFTWARE: u32 = 1;
/// PERF_TYPE_TRACEPOINT
pub const TRACEPOINT: u32 = 2;
/// PERF_COUNT_SW_PAGE_FAULTS_MIN
pub const FAULTS_MINOR: u64 = 5;
/// PERF_COUNT_SW_PAGE_FAULTS_MAJ
pub const FAULTS_MAJOR: u64 = 6;

/// An event that perf opened (`struct perf_event_attr` in include/uapi/linux/perf_event.h).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfEvent {
    /// PERF_TYPE_*
    pub kind: u32,
    /// The number of the tracepoint or of the software event.
    pub config: u64,
    /// The layout of its samples.
    pub sample_type: u64,
    /// PERF_FORMAT_*: what a sample has of the event's counter.
    pub read_format: u64,
    /// The registers that samples have (`sample_regs_user`), one bit each.
    pub registers: u64,
    /// The event began when the command executed its program.
    pub enable_on_exec: bool,
    /// Records that are no samples end with the fields of `sample_type`, too.
    pub sample_id_all: bool,
    /// The identifiers that its records have.
    pub ids: Vec<u64>,
}

impl PerfEvent {
    /// Reads attributes; `None` if there are too few bytes.
    fn parse(bytes: &[u8]) -> Option<PerfEvent> {
        let u32_at = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes);
        let u64_at = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
        let flags = u64_at(40)?;
        Some(PerfEvent {
            kind: u32_at(0)?,
            config: u64_at(8)?,
            sample_type: sample_type(bytes)?,
            read_format: u64_at(32)?,
            // The smallest attributes end before it.
            registers: u64_at(80).unwrap_or(0),
            enable_on_exec: flags >> 12 & 1 == 1,
            sample_id_all: flags >> 18 & 1 == 1,
            ids: Vec::new(),
        })
    }
}

/// Reads the events of a file.
///
/// # Errors
/// A clause that continues the name of the file.
pub fn events(file: &dyn ReadAt, header: &Header) -> Result<Vec<PerfEvent>, String> {
    let event = |of: EventAttributes| {
        let event = PerfEvent::parse(&of.bytes).ok_or("has events with incomplete attributes")?;
        Ok(PerfEvent { ids: of.ids, ..event })
    };
    attributes::events(file, header)?.into_iter().map(event).collect()
}

/// Returns the formats of the tracepoints, with their names as `subsystem:name`, by their numbers on the recorded
/// machine. Formats that cannot be parsed are left out.
pub fn formats(data: &TracingData) -> FxHashMap<u64, (String, Format)> {
    let parsed = |system: &str, text: &[u8]| {
        let format = Format::parse(&String::from_utf8_lossy(text)).ok()?;
        Some((format.id, (format!("{system}:{}", format.name), format)))
    };
    data.systems.iter().flat_map(|(system, texts)| texts.iter().filter_map(|text| parsed(system, text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::layout::attr_bytes;
    use crate::sys::perf::AttrNumbers;

    #[test]
    fn attributes_are_read_from_the_places_where_they_are_written() {
        let attr = AttrNumbers { kind: TRACEPOINT, config: 442, flags: 1 << 18 | 1 << 12, ..AttrNumbers::default() };
        let event = PerfEvent::parse(&attr_bytes(&attr, 0x1_0406)).unwrap();
        let expected =
            PerfEvent { kind: 2, config: 442, sample_type: 0x1_0406, enable_on_exec: true, sample_id_all: true, ..PerfEvent::default() };
        assert_eq!(event, expected);
        assert_eq!(PerfEvent::parse(&[0; 40]), None);
    }
}
