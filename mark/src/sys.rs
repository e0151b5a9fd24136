//! Safe wrappers of the kernel's interfaces (include/uapi/linux/user_events.h, Documentation/trace/user_events.rst).
//! All unsafe code of the crate is here.
//!
//! The kernel sets a bit in the program's memory while a tracer records an event, so that a program needs only one load
//! to know whether to write a record. Each [`RegisteredEvent`] has its own word for this bit. The word must live until
//! the kernel has unregistered it.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The lifetime of an event, and whether others may have its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The event exists until it is deleted, even without registrations (USER_EVENT_REG_PERSIST, Linux 6.7; requires
    /// CAP_PERFMON).
    pub persist: bool,
    /// Events with other fields may have the same name. The tracepoint is `user_events_multi:NAME.N`
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

/// The kernel encodes the size of a pointer in these commands, and not that of the struct.
const REGISTER: libc::Ioctl = libc::_IOWR::<*mut Register>(b'*' as u32, 0);
const DELETE: libc::Ioctl = libc::_IOW::<*const libc::c_char>(b'*' as u32, 1);
const UNREGISTER: libc::Ioctl = libc::_IOW::<*const Unregister>(b'*' as u32, 2);

/// The bit of the word that the kernel sets.
const ENABLE_BIT: u8 = 0;

/// include/uapi/linux/mount.h
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// A registered event.
#[derive(Debug)]
pub struct RegisteredEvent {
    data: File,
    /// Not zero while a tracer records the event. The kernel writes to it.
    enabled: Arc<AtomicU32>,
    index: u32,
}

impl RegisteredEvent {
    /// Registers the event `NAME TYPE FIELD; TYPE FIELD...`.
    ///
    /// # Errors
    /// Those of the kernel: EADDRINUSE if an event of this name has other fields, EINVAL if the declaration or a flag
    /// is unknown, EPERM for a persistent event without CAP_PERFMON, EMFILE if there are too many events.
    pub fn new(data: File, declaration: &CStr, flags: Flags) -> io::Result<RegisteredEvent> {
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
        // SAFETY: the request lives during the call and contains its size, and the declaration is NUL-terminated. The
        // word at `enable_address`, to which the kernel writes from now on, is an atomic in an Arc. It does not move
        // and lives until Drop has unregistered it.
        check(unsafe { libc::ioctl(data.as_raw_fd(), REGISTER, &raw mut request) })?;
        Ok(RegisteredEvent { data, enabled, index: request.write_index })
    }

    /// Returns whether a tracer records the event. This takes one load.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed) != 0
    }

    /// Returns the kernel's number of the event, with which each record begins.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the file to which records are written.
    pub fn data(&self) -> &File {
        &self.data
    }
}

impl Drop for RegisteredEvent {
    fn drop(&mut self) {
        let request = Unregister {
            size: size_of::<Unregister>() as u32,
            bit: ENABLE_BIT,
            reserved: [0; 3],
            address: Arc::as_ptr(&self.enabled) as u64,
        };
        // SAFETY: the request lives during the call and contains its size; the word that the kernel clears is alive.
        let unregistered = check(unsafe { libc::ioctl(self.data.as_raw_fd(), UNREGISTER, &raw const request) });
        if unregistered.is_err_and(|error| error.raw_os_error() != Some(libc::ENOENT)) {
            // The kernel may still write to the word, so its memory must never be reused.
            std::mem::forget(Arc::clone(&self.enabled));
        }
    }
}

/// Deletes all unused events of this name.
///
/// # Errors
/// Those of the kernel: ENOENT, EBUSY while a program or a tracer uses an event, EPERM without CAP_PERFMON.
pub fn delete(data: &File, name: &CStr) -> io::Result<()> {
    // SAFETY: the name is NUL-terminated and lives during the call, which only reads it.
    check(unsafe { libc::ioctl(data.as_raw_fd(), DELETE, name.as_ptr()) }).map(drop)
}

/// Creates a detached mount of tracefs, which other processes do not see, and returns its root (fsopen(2), fsmount(2)).
///
/// # Errors
/// Those of the kernel: EPERM without CAP_SYS_ADMIN in the initial user namespace, ENODEV if it has no tracefs.
pub fn detached_tracefs() -> io::Result<OwnedFd> {
    // SAFETY: the name is NUL-terminated and lives during the call, which creates a file descriptor.
    let context = unsafe { owned(libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), FSOPEN_CLOEXEC)) }?;
    // SAFETY: this command has neither key nor value.
    let created = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            ptr::null::<libc::c_char>(),
            ptr::null::<libc::c_void>(),
            0,
        )
    };
    check(created as i32)?;
    // SAFETY: no argument is a pointer, and the call creates a file descriptor.
    unsafe { owned(libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, 0)) }
}

/// Opens a file in a directory for writing.
///
/// # Errors
/// Those of openat(2).
pub fn open_for_writing(directory: &OwnedFd, name: &str) -> io::Result<File> {
    let name = CString::new(name)?;
    // SAFETY: the name is NUL-terminated and lives during the call, which creates a file descriptor.
    let opened = unsafe { owned(libc::openat(directory.as_raw_fd(), name.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC).into()) };
    opened.map(File::from)
}

/// Returns the file descriptor that a system call returned, or its error.
///
/// # Safety
/// The system call returns a new file descriptor, which has no other owner.
unsafe fn owned(returned: libc::c_long) -> io::Result<OwnedFd> {
    let descriptor: RawFd = check(returned as i32)?;
    // SAFETY: it is open and has no other owner, as the caller guarantees.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_opened_and_errors_of_the_kernel_are_returned() {
        let devices = OwnedFd::from(File::open("/dev").unwrap());
        assert!(open_for_writing(&devices, "null").is_ok());
        assert_eq!(open_for_writing(&devices, "nonexistent").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
