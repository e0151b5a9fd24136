//! The only unsafe code: the kernel's interfaces (include/uapi/linux/user_events.h,
//! Documentation/trace/user_events.rst), wrapped so that all the rest is safe.
//!
//! The kernel sets a bit in the program's own memory while somebody listens, so a program that nobody traces pays for one
//! load. That memory is a word of each [`Held`]'s own, which outlives the kernel's interest in it.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How long an event lasts, and whom it shares its name with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// It stays when nobody holds it any more, until it is deleted (USER_EVENT_REG_PERSIST, Linux 6.7; it takes
    /// CAP_PERFMON).
    pub persist: bool,
    /// Events with other fields may have the same name; its event is `user_events_multi:NAME.N`
    /// (USER_EVENT_REG_MULTI_FORMAT, Linux 6.10).
    pub multi_format: bool,
}

/// struct user_reg
#[repr(C, packed)]
struct Register {
    size: u32,
    enable_bit: u8,
    enable_size: u8,
    flags: u16,
    enable_address: u64,
    declaration: u64,
    write_index: u32,
}

/// struct user_unreg
#[repr(C, packed)]
struct Unregister {
    size: u32,
    bit: u8,
    reserved: [u8; 3],
    address: u64,
}

const _: () = assert!(size_of::<Register>() == 28 && size_of::<Unregister>() == 16);

/// The requests' numbers are made of pointers' sizes, not of the sizes of what they point to.
const REGISTER: libc::Ioctl = libc::_IOWR::<*mut Register>(b'*' as u32, 0);
const DELETE: libc::Ioctl = libc::_IOW::<*const libc::c_char>(b'*' as u32, 1);
const UNREGISTER: libc::Ioctl = libc::_IOW::<*const Unregister>(b'*' as u32, 2);

/// The bit of the word that is the kernel's.
const ENABLE_BIT: u8 = 0;

/// include/uapi/linux/mount.h
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// An event that is registered.
#[derive(Debug)]
pub struct Held {
    data: File,
    /// Not zero while somebody listens. The kernel writes to it.
    enabled: Arc<AtomicU32>,
    index: u32,
}

impl Held {
    /// Registers `NAME TYPE FIELD; TYPE FIELD...`.
    ///
    /// # Errors
    /// The kernel's: EADDRINUSE for an event of this name with other fields, EINVAL for a declaration or flag that it
    /// does not know, EPERM to keep an event without CAP_PERFMON, EMFILE when there are too many.
    pub fn new(data: File, declaration: &CStr, flags: Flags) -> io::Result<Held> {
        let enabled = Arc::new(AtomicU32::new(0));
        let mut request = Register {
            size: size_of::<Register>() as u32,
            enable_bit: ENABLE_BIT,
            enable_size: size_of::<AtomicU32>() as u8,
            flags: u16::from(flags.persist) | u16::from(flags.multi_format) << 1,
            enable_address: Arc::as_ptr(&enabled) as u64,
            declaration: declaration.as_ptr() as u64,
            write_index: 0,
        };
        // SAFETY: the request lives for the call and says its size, and the declaration is NUL-terminated. The word at
        // `enable_address`, which the kernel writes to from now on, is an atomic behind an Arc: it stays where it is until
        // Drop has had the kernel forget it.
        check(unsafe { libc::ioctl(data.as_raw_fd(), REGISTER, &raw mut request) })?;
        Ok(Held { data, enabled, index: request.write_index })
    }

    /// Whether somebody listens: one load.
    #[inline]
    pub fn is_listened_to(&self) -> bool {
        self.enabled.load(Ordering::Relaxed) != 0
    }

    /// The kernel's number of the event, which begins each record.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The file that records are written to.
    pub fn data(&self) -> &File {
        &self.data
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let request = Unregister {
            size: size_of::<Unregister>() as u32,
            bit: ENABLE_BIT,
            reserved: [0; 3],
            address: Arc::as_ptr(&self.enabled) as u64,
        };
        // SAFETY: the request lives for the call and says its size; the word that the kernel clears is alive.
        let forgotten = check(unsafe { libc::ioctl(self.data.as_raw_fd(), UNREGISTER, &raw const request) });
        if forgotten.is_err_and(|error| error.raw_os_error() != Some(libc::ENOENT)) {
            // The kernel may write to the word still: it must never be anything else's memory.
            std::mem::forget(Arc::clone(&self.enabled));
        }
    }
}

/// Deletes all events of this name that nobody uses.
///
/// # Errors
/// The kernel's: ENOENT, EBUSY while a program or a tracer has it, EPERM without CAP_PERFMON.
pub fn delete(data: &File, name: &CStr) -> io::Result<()> {
    // SAFETY: the name is NUL-terminated and lives for the call, which only reads it.
    check(unsafe { libc::ioctl(data.as_raw_fd(), DELETE, name.as_ptr()) }).map(drop)
}

/// Makes a mount of tracefs that is attached nowhere, so that nobody else sees it: its root (fsopen(2), fsmount(2)).
///
/// # Errors
/// The kernel's: EPERM without CAP_SYS_ADMIN in the initial user namespace, ENODEV where there is no tracefs.
pub fn detached_tracefs() -> io::Result<OwnedFd> {
    // SAFETY: the name is NUL-terminated and lives for the call, which makes a descriptor.
    let context = unsafe { owned(libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), FSOPEN_CLOEXEC)) }?;
    // SAFETY: this command takes neither key nor value.
    let made = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            ptr::null::<libc::c_char>(),
            ptr::null::<libc::c_void>(),
            0,
        )
    };
    check(made as i32)?;
    // SAFETY: no argument points to anything, and the call makes a descriptor.
    unsafe { owned(libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, 0)) }
}

/// Opens a file of a directory for writing.
///
/// # Errors
/// As openat(2).
pub fn open_for_writing(directory: &OwnedFd, name: &str) -> io::Result<File> {
    let name = CString::new(name)?;
    // SAFETY: the name is NUL-terminated and lives for the call, which makes a descriptor.
    let opened = unsafe { owned(libc::openat(directory.as_raw_fd(), name.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC).into()) };
    opened.map(File::from)
}

/// The descriptor that a system call returned.
///
/// # Safety
/// The call makes descriptors, and nobody else has taken this one.
unsafe fn owned(returned: libc::c_long) -> io::Result<OwnedFd> {
    let descriptor: RawFd = check(returned as i32)?;
    // SAFETY: it is open and nobody else's, as our caller says.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_directory_are_opened_and_the_kernels_refusals_are_given() {
        let devices = OwnedFd::from(File::open("/dev").unwrap());
        assert!(open_for_writing(&devices, "null").is_ok());
        assert_eq!(open_for_writing(&devices, "nonexistent").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
