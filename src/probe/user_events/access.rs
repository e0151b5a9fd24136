//! The kernel's file of user events, and what its refusals mean.

use super::UserEventError;
use crate::kernel::tracefs::{TracePath, Tracefs};
use crate::sys::user_events::{self, DECLARATION_BYTES_MAX, Flags, Registration};
use rustix::fs::OFlags;
use std::ffi::CString;
use std::io;

/// Where it usually is. The rest of tracefs may be closed to a program that may write events.
const USUAL_DATA: &str = "/sys/kernel/tracing/user_events_data";

/// The file that programs register and write with.
///
/// # Errors
/// There is no tracefs for us, or it has no such file.
pub fn data() -> Result<TracePath, UserEventError> {
    let data = match Tracefs::find() {
        Ok(tracefs) => tracefs.root().join("user_events_data"),
        Err(error) => match TracePath::mounted(USUAL_DATA) {
            usual if usual.exists() => usual,
            _ => return Err(error.into()),
        },
    };
    if data.exists() { Ok(data) } else { Err(UserEventError::NotBuilt) }
}

/// Declares an event, `fields` being `TYPE NAME; TYPE NAME...`, or joins those who hold the same.
///
/// # Errors
/// [`UserEventError`], by what the kernel says.
pub fn register(name: &str, fields: &str, flags: Flags) -> Result<Registration, UserEventError> {
    check_name(name)?;
    let declaration = format!("{name} {fields}");
    let declaration = declaration.trim_end();
    if declaration.len() > DECLARATION_BYTES_MAX {
        return Err(UserEventError::TooLong { name: name.to_owned(), bytes: declaration.len() });
    }
    let wrong = || UserEventError::Declaration { declaration: declaration.to_owned() };
    let text = CString::new(declaration).map_err(|_| wrong())?;
    let data = data()?;
    data.open(OFlags::WRONLY).and_then(|file| Registration::new(file.into(), &text, flags)).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => wrong(),
        Some(libc::EADDRINUSE) => UserEventError::OtherFields { name: name.to_owned() },
        _ => refused(name, data, error),
    })
}

/// Deletes the user events of this name, whatever their fields.
///
/// # Errors
/// [`UserEventError`], by what the kernel says.
pub fn delete(name: &str) -> Result<(), UserEventError> {
    check_name(name)?;
    let data = data()?;
    let text = CString::new(name).map_err(|_| UserEventError::Name { name: name.to_owned() })?;
    data.open(OFlags::WRONLY).and_then(|file| user_events::delete(file.into(), &text)).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT) => UserEventError::Unknown { name: name.to_owned() },
        Some(libc::EBUSY) => UserEventError::Busy { name: name.to_owned() },
        _ => refused(name, data, error),
    })
}

fn refused(name: &str, data: TracePath, error: io::Error) -> UserEventError {
    match error.raw_os_error() {
        Some(libc::EACCES) => UserEventError::NoPermission { path: data.shown() },
        Some(libc::EPERM) => UserEventError::NotCapable,
        Some(libc::EMFILE) => UserEventError::TooMany,
        _ => UserEventError::Refused { name: name.to_owned(), error },
    }
}

/// Whether an event or a field may have this name: the kernel makes a directory of any, and takes a colon or blank for its end.
///
/// # Errors
/// [`UserEventError::Name`].
pub fn check_name(name: &str) -> Result<(), UserEventError> {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.starts_with(|c: char| c.is_ascii_digit());
    if plain && !name.is_empty() { Ok(()) } else { Err(UserEventError::Name { name: name.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert!(check_name("frame_2").is_ok());
        for name in ["", "2frame", "a b", "a:b", "a/b", "é"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_declaration_that_is_too_long_is_not_tried() {
        let error = register("x", &"u32 a;".repeat(100), Flags::default()).unwrap_err();
        assert!(error.to_string().contains("602 bytes"), "{error}");
    }
}
