//! The layout of perf.data files: the header, the attributes of the events, and the types of records that only files
//! have.
//!
//! perf documents it in tools/perf/Documentation/perf.data-file-format.txt of the kernel's source. Numbers are
//! little-endian.

use crate::sys::perf::AttrNumbers;

/// The first 8 bytes of a file.
pub const MAGIC: [u8; 8] = *b"PERFILE2";

/// The size of the header of a file (`struct perf_file_header`).
pub const HEADER_BYTES: u64 = 104;

/// The size of the attributes that rtrace writes for an event (PERF_ATTR_SIZE_VER5). perf refuses attributes that are
/// longer than those it knows, so these end with the last field that rtrace uses.
pub const ATTR_BYTES: usize = 112;

/// The smallest size of an event's attributes (PERF_ATTR_SIZE_VER0).
pub const ATTR_BYTES_MIN: usize = 64;

/// Types of records that only files have (`enum perf_user_event_type` in tools/lib/perf/include/perf/event.h).
pub mod kind {
    /// All earlier records may be sorted: later ones are not older than those before the last such mark.
    pub const FINISHED_ROUND: u32 = 68;
    /// Records, compressed by zstd. A record may begin in one of these and end in the next.
    pub const COMPRESSED: u32 = 81;
    /// Records, compressed by zstd, after the number of compressed bytes in 8 bytes (perf 6.16 and later).
    pub const COMPRESSED2: u32 = 83;
    /// The data of a hardware trace, which follows the record.
    pub const AUXTRACE: u32 = 71;
    /// The tasks that perf recorded.
    pub const THREAD_MAP: u32 = 73;
    /// The first type that only files have.
    pub const FIRST: u32 = 64;
}

/// The numbers of the feature sections, each a bit in the header (`enum` in tools/perf/util/header.h).
pub mod feature {
    /// The formats of tracepoints ([`super::super::tracing_data`]).
    pub const TRACING_DATA: u32 = 1;
    /// The build-ids of files.
    pub const BUILD_ID: u32 = 2;
    /// The machine's name.
    pub const HOSTNAME: u32 = 3;
    /// `uname -r`
    pub const OSRELEASE: u32 = 4;
    /// The version of the program that wrote the file.
    pub const VERSION: u32 = 5;
    /// `uname -m`
    pub const ARCH: u32 = 6;
    /// The numbers of CPUs that could be and were online.
    pub const NRCPUS: u32 = 7;
    /// The command line of the recorder.
    pub const CMDLINE: u32 = 11;
    /// The attributes, names and identifiers of the events.
    pub const EVENT_DESC: u32 = 12;
    /// The times of the first and of the last sample.
    pub const SAMPLE_TIME: u32 = 21;
    /// The resolution of the clock, in nanoseconds.
    pub const CLOCKID: u32 = 23;
    /// The largest size of what one record of compressed records holds.
    pub const COMPRESSED: u32 = 27;
    /// The clock of the records, and its value at a time of the clock on the wall.
    pub const CLOCK_DATA: u32 = 29;
    /// rtrace's own: where spans of records begin ([`super::super::index`]). perf passes over features that it does not
    /// know, and does not reach this number soon.
    pub const INDEX: u32 = 200;
    /// The number of features that the header has room for.
    pub const MAX: u32 = 256;
}

/// A part of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
}

impl Section {
    /// Returns its 16 bytes in the file.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..].copy_from_slice(&self.size.to_le_bytes());
        bytes
    }

    /// Reads its 16 bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Section {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        Section::of([word(0), word(8)])
    }

    fn of(words: [u64; 2]) -> Section {
        Section { offset: words[0], size: words[1] }
    }
}

/// The header of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The size in bytes of an entry of `attrs`.
    pub attr_bytes: u64,
    /// The attributes of the events, each with the section that has its identifiers.
    pub attrs: Section,
    /// The records. The size is zero while the file is being written.
    pub data: Section,
    /// One bit for each feature section. A table of these sections follows the records.
    pub features: [u64; 4],
}

impl Header {
    /// Returns the bytes of the header.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&HEADER_BYTES.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.attr_bytes.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.attrs.to_bytes());
        bytes[40..56].copy_from_slice(&self.data.to_bytes());
        // A section of the names of events is between them, which files of today do not have.
        for (at, word) in self.features.iter().enumerate() {
            bytes[72 + 8 * at..][..8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// A sentence about what the file is instead; it continues "FILE ".
    pub fn parse(bytes: &[u8; HEADER_BYTES as usize]) -> Result<Header, &'static str> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        if bytes[..8] == *b"2ELIFREP" {
            return Err("was written by a machine of the other byte order, which rtrace does not read");
        }
        if bytes[..8] != MAGIC {
            return Err("is no recording: it does not begin as perf.data files do");
        }
        match word(8) {
            HEADER_BYTES => {}
            16 => return Err("is a recording that was written to a pipe, which rtrace does not read; record to a file"),
            _ => return Err("has a header of another size than perf.data files have"),
        }
        Ok(Header {
            attr_bytes: word(16),
            attrs: Section::of([word(24), word(32)]),
            data: Section::of([word(40), word(48)]),
            features: [word(72), word(80), word(88), word(96)],
        })
    }

    /// Returns the numbers of the feature sections, in the order of their table.
    pub fn feature_numbers(&self) -> impl Iterator<Item = u32> {
        let features = self.features;
        (0..feature::MAX).filter(move |number| features[*number as usize / 64] >> (number % 64) & 1 == 1)
    }

    /// Adds a feature section.
    pub fn add_feature(&mut self, number: u32) {
        self.features[number as usize / 64] |= 1 << (number % 64);
    }
}

/// Returns the bytes of an event's attributes (`struct perf_event_attr` in include/uapi/linux/perf_event.h).
/// `sample_type` is the layout of its samples in the file.
pub fn attr_bytes(attr: &AttrNumbers, sample_type: u64) -> [u8; ATTR_BYTES] {
    let mut bytes = [0; ATTR_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &attr.kind.to_le_bytes());
    put(4, &(ATTR_BYTES as u32).to_le_bytes());
    put(8, &attr.config.to_le_bytes());
    put(16, &1u64.to_le_bytes());
    put(24, &sample_type.to_le_bytes());
    put(40, &attr.flags.to_le_bytes());
    put(80, &attr.registers.to_le_bytes());
    put(88, &attr.stack_bytes.to_le_bytes());
    put(92, &libc::CLOCK_MONOTONIC.to_le_bytes());
    bytes
}

/// Returns the layout of an event's samples from the bytes of its attributes; `None` if there are too few.
pub fn sample_type(attr: &[u8]) -> Option<u64> {
    attr.get(24..)?.first_chunk().copied().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let mut header = Header {
            attr_bytes: 128,
            attrs: Section { offset: 104, size: 256 },
            data: Section { offset: 400, size: 7 },
            ..Header::default()
        };
        header.add_feature(feature::HOSTNAME);
        header.add_feature(200);
        let bytes = header.to_bytes();
        assert_eq!(Header::parse(&bytes), Ok(header));
        assert_eq!(header.feature_numbers().collect::<Vec<_>>(), [feature::HOSTNAME, 200]);
    }

    #[test]
    fn other_files_are_refused() {
        let mut bytes = Header::default().to_bytes();
        bytes[8] = 16;
        assert!(Header::parse(&bytes).unwrap_err().contains("pipe"));
        bytes[8] = 3;
        assert!(Header::parse(&bytes).unwrap_err().contains("another size"));
        assert!(Header::parse(&[0; 104]).unwrap_err().contains("is no recording"));
        bytes[..8].reverse();
        assert!(Header::parse(&bytes).unwrap_err().contains("byte order"));
    }
}
