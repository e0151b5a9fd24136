//! Compresses the records of a recording (`rtrace record -z`).

use super::compression::Packer;
use super::layout::kind;
use crate::source::frame::HEADER_BYTES;

/// The most bytes of records in one compressed record. A reader needs that much memory for each. Compressed, they must
/// fit into a record; perf compresses as much at once as its rings have, which is 512 KiB by default.
const PIECE_BYTES: usize = 256 << 10;

/// The most compressed bytes in a record.
const CONTENT_MAX: usize = u16::MAX as usize / 8 * 8 - HEADER_BYTES;

/// A compressor of records.
#[derive(Debug)]
pub struct PackedRecords {
    packer: Packer,
    /// The compressed records of the last call.
    out: Vec<u8>,
    /// How many bytes were compressed, and how many came out.
    from: u64,
    to: u64,
}

impl PackedRecords {
    /// Returns a compressor of this level of zstd.
    pub fn new(level: i32) -> PackedRecords {
        PackedRecords { packer: Packer::new(level), out: Vec::new(), from: 0, to: 0 }
    }

    /// Returns the compressed records that hold these bytes.
    pub fn pack(&mut self, bytes: &[u8]) -> &[u8] {
        self.out.clear();
        bytes.chunks(PIECE_BYTES).for_each(|piece| self.pack_piece(piece));
        self.from += bytes.len() as u64;
        self.to += self.out.len() as u64;
        &self.out
    }

    fn pack_piece(&mut self, piece: &[u8]) {
        match self.packer.pack(piece, CONTENT_MAX) {
            Some(packed) => {
                let size = HEADER_BYTES + packed.len();
                self.out.extend((u64::from(kind::COMPRESSED) | (size as u64) << 48).to_le_bytes());
                self.out.extend(packed);
            }
            // A piece of a few bytes always fits.
            None => {
                let (first, second) = piece.split_at(piece.len() / 2);
                self.pack_piece(first);
                self.pack_piece(second);
            }
        }
    }

    /// Returns the feature section about the compression: version, zstd, level, ratio, and the most bytes that one
    /// record holds.
    pub fn section(&self) -> Vec<u8> {
        let ratio = self.from.checked_div(self.to).unwrap_or(1);
        [1, 1, self.packer.level() as u32, ratio as u32, PIECE_BYTES as u32].iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::layout::Section;
    use crate::recording::record_stream::{RecordStream, Regular};
    use std::io::Write;

    #[test]
    fn packed_records_are_read_as_they_were() {
        // Numbers that do not compress, so that pieces must be cut, and zeros that do.
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 32
        };
        let record = |body: &[u8]| [&(9 | ((body.len() + 8) as u64) << 48).to_le_bytes(), body].concat();
        let bodies: Vec<Vec<u8>> =
            (0..400).map(|n| (0..500).flat_map(|_| if n < 200 { next() } else { 0 }.to_le_bytes()).collect()).collect();
        let bytes: Vec<u8> = bodies.iter().flat_map(|body| record(body)).collect();
        let mut packed = PackedRecords::new(1);
        let mut file = tempfile::tempfile().unwrap();
        let size = packed.pack(&bytes).len();
        file.write_all(&packed.out).unwrap();
        assert!(size < bytes.len() * 3 / 4, "{size} of {}", bytes.len());
        let mut stream = RecordStream::new(Box::new(Regular { file, size: size as u64 }), Section { offset: 0, size: size as u64 });
        for body in &bodies {
            assert_eq!(stream.next_record().map(|record| record.frame.body), Some(&body[..]));
        }
        assert!(stream.next_record().is_none() && stream.damages().is_empty(), "{:?}", stream.damages());
        assert_eq!(packed.section().len(), 20);
    }
}
