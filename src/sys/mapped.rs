//! Files of the kernel that do not change, mapped instead of read.

use rustix::mm::{MapFlags, ProtFlags};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// Bytes of a file, mapped until the drop. What may be done with them its holder knows.
#[derive(Debug)]
pub(super) struct Mapping {
    pub start: NonNull<u8>,
    pub len: usize,
}

// SAFETY: the memory belongs to this value, which never touches it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// # Errors
    /// mmap(2)'s.
    pub fn of(file: impl AsFd, len: usize, access: ProtFlags, flags: MapFlags) -> io::Result<Mapping> {
        // SAFETY: the kernel chooses the address, so that no other memory of ours is touched.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, access, flags, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::Unsupported)?;
        Ok(Mapping { start, len })
    }

    /// Zeros that this process and those that it forks see change. (A file of memory would be subject to the limit for files.)
    ///
    /// # Errors
    /// mmap(2)'s.
    pub fn zeros(len: usize) -> io::Result<Mapping> {
        // SAFETY: as above.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::Unsupported)?;
        Ok(Mapping { start, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is our mapping, and nothing borrows from it any more. An error would mean that it is none; there is nothing to be done about it here.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// All bytes of such a file.
#[derive(Debug)]
pub struct Mapped(Mapping);

impl Mapped {
    /// Maps a file of sysfs, whose bytes and length stay as they are as long as the kernel runs.
    ///
    /// # Errors
    /// mmap(2)'s: the kernel does not let it be mapped; it is another file; it is empty.
    pub fn whole(file: &File) -> io::Result<Mapped> {
        // On other file systems somebody could write to it, or cut it off.
        let is_sysfs = rustix::fs::fstatfs(file)?.f_type == libc::SYSFS_MAGIC;
        let len = usize::try_from(file.metadata()?.len()).unwrap_or_default();
        if !is_sysfs || len == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Mapping::of(file, len, ProtFlags::READ, MapFlags::PRIVATE).map(Mapped)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: as many bytes were mapped to be read and stay so until the drop; nobody writes to them (see `whole`).
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_can_cut_off_is_mapped() {
        let ordinary = File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(Mapped::whole(&ordinary).unwrap_err().kind(), io::ErrorKind::Unsupported);
    }
}
