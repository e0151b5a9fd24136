//! The feature sections of a recording: what describes the file and the machine, for perf and other tools.

use super::layout::{ATTR_BYTES, attr_bytes, feature};
use super::tracing_data::TracingData;
use super::writer::FileEvent;
use crate::event::Time;

/// What the sections say about the machine and the run.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The machine's name.
    pub hostname: String,
    /// `uname -r`
    pub release: String,
    /// `uname -m`
    pub machine: String,
    /// The number of CPUs that are online.
    pub online_cpus: u32,
    /// The words of the command line; not escaped.
    pub command_line: Vec<Vec<u8>>,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, in nanoseconds.
    pub realtime_offset: i64,
    /// The formats of tracepoints.
    pub formats: TracingData,
    /// The level of zstd by which records are compressed; `None` if they are not.
    pub compression: Option<i32>,
}

/// Returns the times of the first and the last sample from the section [`feature::SAMPLE_TIME`]; `None` if it is too
/// short.
pub fn sample_times(section: &[u8]) -> Option<(Time, Time)> {
    let time = |at: usize| section.get(at..)?.first_chunk().copied().map(u64::from_le_bytes).map(Time);
    Some((time(0)?, time(8)?))
}

/// The content of the feature sections.
pub struct Sections<'a> {
    /// What they say about the machine and the run.
    pub about: &'a About,
    /// The events of the file.
    pub events: &'a [FileEvent],
    /// The times of the first and the last record.
    pub span: (Time, Time),
    /// The section about the compression of records, if they are compressed.
    pub compression: Option<Vec<u8>>,
    /// The index of the records, if rtrace reads the file.
    pub index: Option<Vec<u8>>,
}

impl Sections<'_> {
    /// Returns the sections, each with its number, in the order of the numbers.
    pub fn bytes(&self) -> Vec<(u32, Vec<u8>)> {
        let about = self.about;
        let (first, last) = self.span;
        let wall = first.0.wrapping_add_signed(about.realtime_offset);
        let mut sections = vec![
            (feature::TRACING_DATA, about.formats.to_bytes()),
            (feature::HOSTNAME, string(about.hostname.as_bytes())),
            (feature::OSRELEASE, string(about.release.as_bytes())),
            (feature::VERSION, string(concat!("rtrace ", env!("CARGO_PKG_VERSION")).as_bytes())),
            (feature::ARCH, string(about.machine.as_bytes())),
            (feature::NRCPUS, [about.online_cpus.to_le_bytes(); 2].concat()),
            (feature::CMDLINE, strings(&about.command_line)),
            (feature::EVENT_DESC, self.event_descriptions()),
            (feature::SAMPLE_TIME, [first.0.to_le_bytes(), last.0.to_le_bytes()].concat()),
            // CLOCK_MONOTONIC counts nanoseconds.
            (feature::CLOCKID, 1u64.to_le_bytes().to_vec()),
        ];
        sections.extend(self.compression.iter().map(|section| (feature::COMPRESSED, section.clone())));
        sections.push((feature::CLOCK_DATA, clock_data(wall, first.0)));
        sections.extend(self.index.iter().map(|index| (feature::INDEX, index.clone())));
        sections
    }

    fn event_descriptions(&self) -> Vec<u8> {
        let mut bytes = (self.events.len() as u32).to_le_bytes().to_vec();
        bytes.extend((ATTR_BYTES as u32).to_le_bytes());
        for event in self.events {
            bytes.extend(attr_bytes(&event.attr, event.sample_type));
            bytes.extend((event.ids.len() as u32).to_le_bytes());
            bytes.extend(string(event.name.as_bytes()));
            bytes.extend(event.ids.iter().flat_map(|id| id.to_le_bytes()));
        }
        bytes
    }
}

/// Returns a version, the clock, and its value at a time of the clock on the wall.
fn clock_data(wall: u64, clock: u64) -> Vec<u8> {
    let mut bytes = 1u32.to_le_bytes().to_vec();
    bytes.extend(libc::CLOCK_MONOTONIC.to_le_bytes());
    bytes.extend(wall.to_le_bytes());
    bytes.extend(clock.to_le_bytes());
    bytes
}

/// Returns a string with its length and the NUL bytes that follow it.
fn string(text: &[u8]) -> Vec<u8> {
    let padded = (text.len() + 1).next_multiple_of(64);
    let mut bytes = (padded as u32).to_le_bytes().to_vec();
    bytes.extend(text);
    bytes.resize(4 + padded, 0);
    bytes
}

fn strings(all: &[Vec<u8>]) -> Vec<u8> {
    let count = (all.len() as u32).to_le_bytes().to_vec();
    all.iter().fold(count, |bytes, text| [bytes, string(text)].concat())
}
