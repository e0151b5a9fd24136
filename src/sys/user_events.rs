//! User events: trace events that programs declare and write (include/uapi/linux/user_events.h, Documentation/trace/user_events.rst).
//!
//! The kernel sets a bit in the program's own memory while somebody listens, so that a program that nobody traces pays for one load. That memory is a word of each
//! [`Registration`]'s own, which outlives the kernel's interest in it. What is written, and what errors mean, is for the callers to know.

use rustix::io::{Errno, write, writev};
use std::ffi::CStr;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number that the kernel wants before each record's bytes.
pub const INDEX_BYTES: usize = size_of::<u32>();

/// The longest declaration that can be registered, bytes (MAX_EVENT_DESC in kernel/trace/trace_events_user.c, with the final NUL).
pub const DECLARATION_BYTES_MAX: usize = 511;

/// How long an event lasts, and whom it shares its name with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// It stays when nobody holds it any more, until it is deleted (USER_EVENT_REG_PERSIST, Linux 6.7; needs CAP_PERFMON).
    pub persist: bool,
    /// Events with other fields may have the same name; its event is `user_events_multi:NAME.N` (USER_EVENT_REG_MULTI_FORMAT, Linux 6.10).
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

/// The requests' numbers are made of pointers' sizes, not of what they point to.
const REGISTER: libc::Ioctl = libc::_IOWR::<*mut Register>(b'*' as u32, 0);
const DELETE: libc::Ioctl = libc::_IOW::<*const libc::c_char>(b'*' as u32, 1);
const UNREGISTER: libc::Ioctl = libc::_IOW::<*const Unregister>(b'*' as u32, 2);

/// The bit of the word that is the kernel's.
const ENABLE_BIT: u8 = 0;

/// A program's hold on an event, by which it writes it.
///
/// A child made by fork has it too; a program that is executed has not: the kernel forgets the word, and the descriptor is closed.
#[derive(Debug)]
pub struct Registration {
    data: OwnedFd,
    /// Not zero while somebody listens. The kernel writes to it.
    enabled: Arc<AtomicU32>,
    index: u32,
}

impl Registration {
    /// Declares an event: `NAME TYPE FIELD; TYPE FIELD...`, or joins those who hold the same. `data` is tracefs's `user_events_data`, open for writing.
    ///
    /// # Errors
    /// The kernel's: EADDRINUSE for an event of this name with other fields, EINVAL for a declaration or flag that it does not know, EPERM to keep an event without CAP_PERFMON,
    /// EMFILE when there are too many.
    pub fn new(data: OwnedFd, declaration: &CStr, flags: Flags) -> io::Result<Registration> {
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
        // SAFETY: the request lives for the call and says its size, and the declaration is NUL-terminated. The word at `enable_address`, which the kernel writes to from now on, is an
        // atomic behind an Arc: it stays where it is until Drop has had the kernel forget it.
        check(unsafe { libc::ioctl(data.as_raw_fd(), REGISTER, &raw mut request) })?;
        Ok(Registration { data, enabled, index: request.write_index })
    }

    /// Whether somebody listens: one load.
    #[inline]
    pub fn is_listened_to(&self) -> bool {
        self.enabled.load(Ordering::Relaxed) != 0
    }

    /// Writes a record whose first [`INDEX_BYTES`] are left free for the kernel's number. `false`: nobody listens (any more).
    ///
    /// # Errors
    /// EINVAL when the fields' bytes are fewer than declared, EFAULT when one that is elsewhere in the record is not within it.
    pub fn write(&self, record: &mut [u8]) -> io::Result<bool> {
        let (index, _) = record.split_first_chunk_mut::<INDEX_BYTES>().ok_or(io::ErrorKind::InvalidInput)?;
        *index = self.index.to_ne_bytes();
        written(write(&self.data, record))
    }

    /// The same, of fields' bytes that are apart.
    ///
    /// # Errors
    /// As [`Registration::write`].
    pub fn write_parts(&self, fields: &[&[u8]]) -> io::Result<bool> {
        let index = self.index.to_ne_bytes();
        let parts: Vec<IoSlice> = std::iter::once(&index[..]).chain(fields.iter().copied()).map(IoSlice::new).collect();
        written(writev(&self.data, &parts))
    }
}

impl Drop for Registration {
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
pub fn delete(data: OwnedFd, name: &CStr) -> io::Result<()> {
    // SAFETY: the name is NUL-terminated and lives for the call, which only reads it.
    check(unsafe { libc::ioctl(data.as_raw_fd(), DELETE, name.as_ptr()) })
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The kernel says EBADF when the last listener has just gone.
fn written(result: Result<usize, Errno>) -> io::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(Errno::BADF) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
