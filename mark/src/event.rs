//! User events whose fields are known only at run time: declared as text, written as [`Record`]s.
//!
//! All of it takes a file: `user_events_data` of tracefs, open for writing. [`Mark`](crate::Mark) finds and opens it by
//! itself.

use crate::error::Error;
use crate::record::Record;
use crate::sys;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};

pub use crate::sys::Flags;

/// The longest declaration that can be registered, in bytes (MAX_EVENT_DESC in kernel/trace/trace_events_user.c, without
/// its NUL).
pub const DECLARATION_BYTES_MAX: usize = 511;

/// A user event's name and fields.
#[derive(Clone, Debug)]
pub struct Declaration {
    name: String,
    text: CString,
}

impl Declaration {
    /// `fields` are `TYPE NAME; TYPE NAME...` in the kernel's types, or empty.
    ///
    /// # Errors
    /// The name is none, or the declaration is too long or has a NUL.
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

    /// Makes the event, or joins those who hold the same one.
    ///
    /// # Errors
    /// [`Error`] by what the kernel says: there is an event of this name with other fields, it does not know a type or a
    /// flag, or only programs with more rights may keep an event.
    pub fn register(&self, data: File, flags: Flags) -> Result<Registration, Error> {
        let held = sys::Held::new(data, &self.text, flags).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => Error::Declaration { declaration: self.text.to_string_lossy().into_owned() },
            Some(libc::EADDRINUSE) => Error::OtherFields { name: self.name.clone() },
            _ => refused(&self.name, error),
        })?;
        Ok(Registration { held })
    }
}

/// A program's hold on an event, by which it writes it. The event lasts as long as somebody holds it, if it was not made
/// to stay.
///
/// A child made by fork has the hold too. A program that is executed has not: the kernel forgets it, and the file is
/// closed.
#[derive(Debug)]
pub struct Registration {
    held: sys::Held,
}

impl Registration {
    /// Whether somebody listens: one load.
    #[inline]
    pub fn is_listened_to(&self) -> bool {
        self.held.is_listened_to()
    }

    /// Writes a record by one system call. `false` means that nobody listens any more.
    ///
    /// # Errors
    /// The record is too long ([`TooLong`](crate::record::TooLong)), or the kernel refuses it: EINVAL when its fields are
    /// shorter than declared, EFAULT when a word points out of it.
    pub fn write(&self, record: &mut Record) -> io::Result<bool> {
        let bytes = record.numbered(self.held.index()).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        match self.held.data().write(bytes) {
            Ok(_) => Ok(true),
            // The last listener has just gone.
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Deletes the user events of this name, whatever their fields are.
///
/// # Errors
/// [`Error`] by what the kernel says: there is none, a program or a tracer has it, or this takes more rights.
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

/// Whether an event or a field may have this name. The kernel makes a directory of any name, and takes a colon or a blank
/// for its end, so only letters, digits and underscores are taken here, without a digit at the beginning.
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
    fn names_are_of_letters_digits_and_underscores() {
        assert!(check_name("frame_2").is_ok());
        for name in ["", "2frame", "a b", "a:b", "a/b", "é"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_declared_is_not_tried() {
        let wrong = |name: &str, fields: &str| Declaration::new(name, fields).unwrap_err().to_string();
        assert!(wrong("x", &"u32 a;".repeat(100)).contains("602 bytes"));
        assert!(wrong("x", "u32 a\0b").contains("declares"));
        assert!(wrong("x:y", "u32 a").contains("`x:y` is no name"));
        assert_eq!(Declaration::new("x", "").unwrap().text.as_bytes(), b"x");
    }

    #[test]
    fn a_file_that_is_not_the_kernels_is_refused() {
        let null = || File::options().write(true).open("/dev/null").unwrap();
        let error = Declaration::new("x", "u32 a").unwrap().register(null(), Flags::default()).unwrap_err();
        assert!(error.to_string().starts_with("the kernel refuses the user event `x`: "), "{error}");
        assert!(matches!(delete(&null(), "x"), Err(Error::Refused { .. })));
    }
}
