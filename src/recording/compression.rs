//! Records that are compressed by zstd.
//!
//! perf compresses a recording as one stream that it flushes after each round and never ends (`perf record -z`), so a
//! record of type COMPRESSED may hold the end of one block and the beginning of the next. The records inside may be cut
//! at its end, too, and go on in the next one. rtrace ends the stream with each record of its own, so that every one of
//! them can be read by itself.

use zstd_safe::{CCtx, DCtx, InBuffer, OutBuffer};

/// How many bytes there is room for at least when bytes are unpacked. zstd writes at most one block of 128 KiB.
const STEP_BYTES: usize = 128 << 10;

/// The most bytes of its own that a stream may ask to remember. perf's levels need 128 MiB at most.
const WINDOW_LOG_MAX: u32 = 27;

/// A reader of compressed bytes.
pub struct Unpacker {
    context: DCtx<'static>,
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unpacker")
    }
}

impl Unpacker {
    /// Returns a reader at the beginning of a stream.
    pub fn new() -> Unpacker {
        let mut context = DCtx::create();
        // It is below zstd's own limit, so it cannot be refused.
        let _ = context.set_parameter(zstd_safe::DParameter::WindowLogMax(WINDOW_LOG_MAX));
        Unpacker { context }
    }

    /// Appends what the next bytes of the stream hold to `out`, which grows to at most `out_max` bytes.
    ///
    /// # Errors
    /// The bytes are not what the stream goes on with, or hold more than there is room for: what is wrong, as a clause
    /// that follows the name of the record.
    pub fn unpack(&mut self, bytes: &[u8], out: &mut Vec<u8>, out_max: usize) -> Result<(), String> {
        let mut input = InBuffer::around(bytes);
        loop {
            let begin = out.len();
            out.reserve(STEP_BYTES);
            let mut output = OutBuffer::around_pos(out, begin);
            self.context
                .decompress_stream(&mut output, &mut input)
                .map_err(|code| format!("cannot be decompressed: {}", zstd_safe::get_error_name(code)))?;
            if out.len() > out_max {
                out.truncate(begin);
                return Err(format!("holds more than {out_max} bytes, which no recorder writes"));
            }
            // More may be waiting inside when the output was full.
            if input.pos == bytes.len() && out.len() < out.capacity() {
                return Ok(());
            }
        }
    }
}

/// A writer of compressed bytes.
pub struct Packer {
    context: CCtx<'static>,
    level: i32,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packer({})", self.level)
    }
}

impl Packer {
    /// Returns a writer that compresses by this level of zstd.
    pub fn new(level: i32) -> Packer {
        Packer { context: CCtx::create(), level }
    }

    /// Returns the level.
    pub fn level(&self) -> i32 {
        self.level
    }

    /// Returns a complete stream that holds these bytes; `None` if it would have more than `size_max` bytes.
    pub fn pack(&mut self, bytes: &[u8], size_max: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
        self.context.compress(&mut out, bytes, self.level).ok()?;
        (out.len() <= size_max).then_some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stream_is_read_in_pieces_of_any_size() {
        let bytes: Vec<u8> = (0..400_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let packed = Packer::new(1).pack(&bytes, usize::MAX).unwrap();
        assert!(packed.len() < bytes.len() / 4, "{}", packed.len());
        for size in [1, 7, 1000, 65_535] {
            let (mut unpacker, mut out) = (Unpacker::new(), Vec::new());
            packed.chunks(size).for_each(|piece| unpacker.unpack(piece, &mut out, usize::MAX).unwrap());
            assert!(out == bytes, "pieces of {size} bytes");
        }
        let (mut unpacker, mut out) = (Unpacker::new(), Vec::new());
        [&packed, &packed].iter().for_each(|stream| unpacker.unpack(stream, &mut out, usize::MAX).unwrap());
        assert_eq!(out.len(), 2 * bytes.len(), "one stream after the other");
    }

    #[test]
    fn what_grows_beyond_the_bound_is_refused() {
        let packed = Packer::new(3).pack(&vec![0; 10 << 20], 65_000).unwrap();
        let error = Unpacker::new().unpack(&packed, &mut Vec::new(), 1 << 20).unwrap_err();
        assert_eq!(error, "holds more than 1048576 bytes, which no recorder writes");
        assert_eq!(Packer::new(3).pack(&vec![0; 10 << 20], 10), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_unpacked_without_panic(pieces: Vec<Vec<u8>>) {
            let (mut unpacker, mut out) = (Unpacker::new(), Vec::new());
            for piece in pieces {
                _ = unpacker.unpack(&piece, &mut out, 1 << 20);
                _ = unpacker.unpack(&[&0xfd2f_b528u32.to_le_bytes()[..], &piece].concat(), &mut out, 1 << 20);
            }
            prop_assert!(out.len() <= 1 << 20);
        }
    }
}
