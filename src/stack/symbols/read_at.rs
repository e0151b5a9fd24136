//! Reads at an offset, of a file of any size or of memory.

use std::io;

/// A file, or bytes in memory that are read like one.
///
/// Files are read, not mapped: if a file shrinks in the meantime, a read fails, where an access to a mapping would
/// raise SIGBUS.
pub trait ReadAt: Send {
    /// Returns the size in bytes.
    fn size(&self) -> u64;

    /// Fills all of `into` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Fails if the range goes beyond the end, or cannot be read.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

impl<T: AsRef<[u8]> + Send> ReadAt for T {
    fn size(&self) -> u64 {
        self.as_ref().len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).ok().and_then(|start| self.as_ref().get(start..)?.get(..into.len()));
        into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// Reads all bytes of a range.
///
/// # Errors
/// Fails if the range goes beyond the end (then nothing is allocated), is longer than `most`, or cannot be read.
pub fn range(source: &dyn ReadAt, offset: u64, size: u64, most: u64) -> io::Result<Vec<u8>> {
    if offset.checked_add(size).is_none_or(|end| end > source.size()) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if size > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge)?];
    source.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_beyond_the_end_is_refused() {
        let bytes = b"0123456789";
        assert_eq!(range(bytes, 3, 4, 100).unwrap(), b"3456");
        assert_eq!(range(bytes, 10, 0, 100).unwrap(), b"");
        assert!(range(bytes, 3, 8, 100).is_err() && range(bytes, u64::MAX, 2, 100).is_err());
        assert_eq!(range(bytes, 0, 9, 8).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
