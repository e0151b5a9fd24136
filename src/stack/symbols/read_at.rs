//! Bytes that are read where they are wanted: a file of any size, or memory.

use std::io;

/// A file, or what stands for one.
///
/// Files are read, not mapped: one that shrinks while it is looked at gives an error, where a mapping would give SIGBUS.
pub trait ReadAt: Send {
    /// In bytes.
    fn size(&self) -> u64;

    /// Fills all of `into` from `offset` on.
    ///
    /// # Errors
    /// The bytes are not there, or cannot be read.
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

/// The bytes of a range, whole.
///
/// # Errors
/// The range goes beyond the end (then nothing is allocated), is longer than `most`, or cannot be read.
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

/// As many bytes as are there of those that are wanted: what [`crate::stack::image::Image`] is read with. `None` if they cannot be read.
pub fn up_to(source: &dyn ReadAt, offset: u64, size: usize) -> Option<Vec<u8>> {
    let size = source.size().saturating_sub(offset).min(size as u64);
    range(source, offset, size, size).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_where_the_bytes_do() {
        let bytes = b"0123456789";
        assert_eq!(range(bytes, 3, 4, 100).unwrap(), b"3456");
        assert_eq!(range(bytes, 10, 0, 100).unwrap(), b"");
        assert!(range(bytes, 3, 8, 100).is_err() && range(bytes, u64::MAX, 2, 100).is_err());
        assert_eq!((up_to(bytes, 8, 8).unwrap(), up_to(bytes, 1, 2).unwrap()), (b"89".to_vec(), b"12".to_vec()));
        assert_eq!((up_to(bytes, 10, 8), up_to(bytes, u64::MAX, 8)), (Some(Vec::new()), None));
        assert_eq!(range(bytes, 0, 9, 8).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
