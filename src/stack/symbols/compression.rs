//! Decompression of sections up to a greatest size: zlib and zstd (`SHF_COMPRESSED`), and the xz of `.gnu_debugdata`.

use std::io::{self, Read};

/// The greatest size of a decompressor's window.
const WINDOW_MAX: u64 = 64 << 20;

/// A compressed section's algorithm (`ch_type`, man 5 elf).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `ELFCOMPRESS_ZLIB`: zlib's format around deflate.
    Zlib,
    /// `ELFCOMPRESS_ZSTD`: Zstandard (RFC 8878).
    Zstd,
    /// The format of xz(1), which `.gnu_debugdata` has and no compression header names.
    Xz,
}

impl Compression {
    /// Returns the algorithm by its number in the section's compression header.
    pub fn of_header(kind: u32) -> Option<Compression> {
        match kind {
            1 => Some(Compression::Zlib),
            2 => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// Decompresses bytes.
    ///
    /// # Errors
    /// Fails if the bytes are damaged, or decompress to more than `most` bytes.
    pub fn decompress(self, compressed: &[u8], most: u64) -> io::Result<Vec<u8>> {
        match self {
            Compression::Zlib => bounded(flate2::bufread::ZlibDecoder::new(compressed), most),
            Compression::Zstd => {
                let reader = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(compressed, WINDOW_MAX);
                bounded(reader.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?, most)
            }
            Compression::Xz => bounded(lzma_rust2::XzReader::new_mem_limit(compressed, true, (WINDOW_MAX >> 10) as u32), most),
        }
    }
}

fn bounded(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// Compresses bytes with xz. `None` means that this machine has no xz.
    fn compressed_by_xz(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut xz = Command::new("xz").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        xz.stdin.take().unwrap().write_all(bytes).unwrap();
        Some(xz.wait_with_output().unwrap().stdout)
    }

    #[test]
    fn decompression_has_a_greatest_size() {
        let plain = vec![7; 100_000];
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&plain).unwrap();
        let xz = compressed_by_xz(&plain);
        if xz.is_none() {
            eprintln!("skipped xz: the program is not installed");
        }
        let by_xz = xz.map(|compressed| (Compression::Xz, compressed));
        for (algorithm, compressed) in [(Compression::Zlib, zlib.finish().unwrap())].into_iter().chain(by_xz) {
            assert_eq!(algorithm.decompress(&compressed, 100_000).unwrap(), plain, "{algorithm:?}");
            let error = algorithm.decompress(&compressed, 99_999).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{algorithm:?}");
            for end in 0..compressed.len() {
                assert!(algorithm.decompress(&compressed[..end], 100_000).is_err(), "{algorithm:?} cut at {end}");
            }
        }
    }

    proptest! {
        #[test]
        fn random_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for algorithm in [Compression::Zlib, Compression::Zstd, Compression::Xz] {
                let _ = algorithm.decompress(&bytes, 1 << 16);
            }
        }
    }
}
