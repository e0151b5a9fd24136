//! Files of the kernel that do not change, mapped instead of read.

use rustix::mm::{MapFlags, ProtFlags};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;

/// All bytes of such a file.
#[derive(Debug)]
pub struct Mapped {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it is memory that nobody writes to, and belongs to this value.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

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
        // SAFETY: the kernel chooses the address, so that no other memory of ours is touched.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::Unsupported)?;
        Ok(Mapped { start, len })
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: as many bytes were mapped to be read and stay so until the drop; nobody writes to them (see `whole`).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it is our mapping, and nothing borrows from it any more. An error would mean that it is none; there is nothing to be done about it here.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
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
