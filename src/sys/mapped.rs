//! Memory mappings: files of sysfs, BPF maps and shared memory.

use rustix::mm::{MapFlags, ProtFlags};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// A mapping that is unmapped when it is dropped. Its owner knows how the bytes may be accessed.
#[derive(Debug)]
pub(super) struct Mapping {
    /// The first address, at the start of a page.
    pub start: NonNull<u8>,
    /// The requested length in bytes. The kernel maps whole pages, so that more may be mapped.
    pub len: usize,
}

// SAFETY: the memory belongs to this value, which never accesses it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a file.
    ///
    /// # Errors
    /// The errors of mmap(2).
    pub fn of(file: impl AsFd, len: usize, access: ProtFlags, flags: MapFlags) -> io::Result<Mapping> {
        // SAFETY: the kernel chooses the address, so no other memory of this process is affected.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, access, flags, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::Unsupported)?;
        Ok(Mapping { start, len })
    }

    /// Maps zeros that this process and the processes that it forks share. (A memfd would be subject to the limit for
    /// file sizes.)
    ///
    /// # Errors
    /// The errors of mmap(2).
    pub fn zeros(len: usize) -> io::Result<Mapping> {
        // SAFETY: as above.
        let start = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::Unsupported)?;
        Ok(Mapping { start, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and nothing borrows from it any more. An error would mean that it
        // is no mapping, and cannot be handled here.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// The bytes of a sysfs file.
#[derive(Debug)]
pub struct SysfsMapping(Mapping);

impl SysfsMapping {
    /// Maps a file of sysfs, whose bytes and length do not change while the kernel runs.
    ///
    /// # Errors
    /// The errors of mmap(2) if the kernel does not support mapping the file; `Unsupported` if the file is empty or not
    /// in sysfs.
    pub fn whole(file: &File) -> io::Result<SysfsMapping> {
        // A file on another file system could be changed or truncated.
        let is_sysfs = rustix::fs::fstatfs(file)?.f_type == libc::SYSFS_MAGIC;
        let len = usize::try_from(file.metadata()?.len()).unwrap_or_default();
        if !is_sysfs || len == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Mapping::of(file, len, ProtFlags::READ, MapFlags::PRIVATE).map(SysfsMapping)
    }
}

impl Deref for SysfsMapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: these bytes are mapped readable until the drop, and nobody writes to them (see `whole`).
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_sysfs_are_mapped() {
        let ordinary = File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(SysfsMapping::whole(&ordinary).unwrap_err().kind(), io::ErrorKind::Unsupported);
    }
}
