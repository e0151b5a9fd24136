//! Compressed sections, unpacked with a bound: zlib and zstd (`SHF_COMPRESSED`), and the xz of `.gnu_debugdata`.

use std::io::{self, Read};

/// More memory a decompressor's window does not get.
const WINDOW_MAX: u64 = 64 << 20;

/// A compressed section's algorithm (`ch_type`, man 5 elf).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Zlib,
    Zstd,
    Xz,
}

impl Packing {
    /// By the number in the section's compression header.
    pub fn of_header(kind: u32) -> Option<Packing> {
        match kind {
            1 => Some(Packing::Zlib),
            2 => Some(Packing::Zstd),
            _ => None,
        }
    }

    /// The unpacked bytes.
    ///
    /// # Errors
    /// The bytes are damaged, or unpack to more than `most`.
    pub fn unpack(self, packed: &[u8], most: u64) -> io::Result<Vec<u8>> {
        match self {
            Packing::Zlib => bounded(flate2::bufread::ZlibDecoder::new(packed), most),
            Packing::Zstd => {
                let reader = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(packed, WINDOW_MAX);
                bounded(reader.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?, most)
            }
            Packing::Xz => bounded(lzma_rust2::XzReader::new_mem_limit(packed, true, (WINDOW_MAX >> 10) as u32), most),
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

    /// `None` where there is no xz.
    fn packed_by_xz(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut xz = Command::new("xz").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        xz.stdin.take().unwrap().write_all(bytes).unwrap();
        Some(xz.wait_with_output().unwrap().stdout)
    }

    #[test]
    fn what_is_unpacked_has_a_bound() {
        let plain = vec![7; 100_000];
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&plain).unwrap();
        let xz = packed_by_xz(&plain);
        if xz.is_none() {
            eprintln!("skipped xz: there is no such program");
        }
        let of_xz = xz.map(|packed| (Packing::Xz, packed));
        for (packing, packed) in [(Packing::Zlib, zlib.finish().unwrap())].into_iter().chain(of_xz) {
            assert_eq!(packing.unpack(&packed, 100_000).unwrap(), plain, "{packing:?}");
            assert_eq!(packing.unpack(&packed, 99_999).unwrap_err().kind(), io::ErrorKind::FileTooLarge, "{packing:?}");
            for end in 0..packed.len() {
                assert!(packing.unpack(&packed[..end], 100_000).is_err(), "{packing:?} cut at {end}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for packing in [Packing::Zlib, Packing::Zstd, Packing::Xz] {
                let _ = packing.unpack(&bytes, 1 << 16);
            }
        }
    }
}
