//! User events whose fields are known only at run time. They are declared as text and written as [`Record`]s.
//!
//! The functions require the file `user_events_data` of tracefs, open for writing. [`Mark`](crate::Mark) finds and
//! opens it itself.

use crate::error::Error;
use crate::record::Record;
use crate::sys;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};

pub use crate::sys::Flags;

/// The maximum length of a declaration in bytes (MAX_EVENT_DESC in kernel/trace/trace_events_user.c, without its NUL).
pub const DECLARATION_BYTES_MAX: usize = 511;

/// The name and the fields of a user event.
#[derive(Clone, Debug)]
pub struct Declaration {
    name: String,
    text: CString,
}

impl Declaration {
    /// Creates a declaration. `fields` are `TYPE NAME; TYPE NAME...` with the kernel's types, or empty.
    ///
    /// # Errors
    /// The name is not valid, or the declaration is too long or contains a NUL.
    pub fn new(name: &str, fields: &str) -> Result<Declaration, Error> {
        check_name(name)?;
        let text = format!("{name} {fields}").trim_end().to_owned();
        if text.len() > DECLARATION_BYTES_MAX {
            return Err(Error::TooLong { name: name.to_owned(), bytes: text.len() });
        }
        match CString::new(text.as_str()) {
            Ok(text) => Ok(Declaration { name: name.to_owned(), text }),
            Err(_) => Err(Error::Declaration { declaration: text }),
        }
    }

    /// Registers the event. The kernel creates it unless it exists with the same fields.
    ///
    /// # Errors
    /// An event of this name has other fields, the kernel does not know a type or a flag, or a persistent event
    /// requires more privileges.
    pub fn register(&self, data: File, flags: Flags) -> Result<Registration, Error> {
        let event = sys::RegisteredEvent::new(data, &self.text, flags).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => Error::Declaration { declaration: self.text.to_string_lossy().into_owned() },
            Some(libc::EADDRINUSE) => Error::OtherFields { name: self.name.clone() },
            _ => refused(&self.name, error),
        })?;
        Ok(Registration { event })
    }
}

/// A program's registration of an event, which allows it to write records. Unless the event is persistent, the kernel
/// deletes it after the last registration is closed.
///
/// A child created by fork inherits the registration. execve closes it.
#[derive(Debug)]
pub struct Registration {
    event: sys::RegisteredEvent,
}

impl Registration {
    /// Returns whether a tracer records the event. This takes one load.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.event.is_enabled()
    }

    /// Writes a record by one system call. Returns `false` if no tracer records the event any more.
    ///
    /// # Errors
    /// The record is too long ([`TooLong`](crate::record::TooLong)), or the kernel rejects it: EINVAL if its fields are
    /// shorter than declared, EFAULT if the contents of a field are outside the record.
    pub fn write(&self, record: &mut Record) -> io::Result<bool> {
        let bytes = record.numbered(self.event.index()).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        match self.event.data().write(bytes) {
            Ok(_) => Ok(true),
            // The last tracer has just detached.
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Deletes the user events of this name, with any fields.
///
/// # Errors
/// There is none, a program or a tracer uses it, or the deletion requires more privileges.
pub fn delete(data: &File, name: &str) -> Result<(), Error> {
    check_name(name)?;
    let text = CString::new(name).map_err(|_| Error::Name { name: name.to_owned() })?;
    sys::delete(data, &text).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT) => Error::Unknown { name: name.to_owned() },
        Some(libc::EBUSY) => Error::Busy { name: name.to_owned() },
        _ => refused(name, error),
    })
}

fn refused(name: &str, error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EPERM) => Error::NotCapable,
        Some(libc::EMFILE) => Error::TooMany,
        _ => Error::Refused { name: name.to_owned(), error },
    }
}

/// Checks the name of an event or a field. It must consist of letters, digits and underscores and not begin with a
/// digit. The kernel itself accepts any name, creates a directory for it, and reads a colon or a blank as its end.
///
/// # Errors
/// [`Error::Name`].
pub fn check_name(name: &str) -> Result<(), Error> {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.starts_with(|c: char| c.is_ascii_digit());
    if plain && !name.is_empty() { Ok(()) } else { Err(Error::Name { name: name.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_consist_of_letters_digits_and_underscores() {
        assert!(check_name("frame_2").is_ok());
        for name in ["", "2frame", "a b", "a:b", "a/b", "é"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn invalid_declarations_are_errors_before_registration() {
        let wrong = |name: &str, fields: &str| Declaration::new(name, fields).unwrap_err().to_string();
        assert!(wrong("x", &"u32 a;".repeat(100)).contains("602 bytes"));
        assert!(wrong("x", "u32 a\0b").contains("the declaration `x u32 a\0b`"));
        assert!(wrong("x:y", "u32 a").contains("`x:y` is not a valid name"));
        assert_eq!(Declaration::new("x", "").unwrap().text.as_bytes(), b"x");
    }

    #[test]
    fn another_file_is_an_error() {
        let null = || File::options().write(true).open("/dev/null").unwrap();
        let error = Declaration::new("x", "u32 a").unwrap().register(null(), Flags::default()).unwrap_err();
        assert!(error.to_string().starts_with("the kernel rejects the user event `x`: "), "{error}");
        assert!(matches!(delete(&null(), "x"), Err(Error::Refused { .. })));
    }
}
