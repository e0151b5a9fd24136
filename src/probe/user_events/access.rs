//! Finds the kernel's `user_events_data` and registers and deletes user events. The system calls are made by the crate
//! rtrace-mark, which programs use to write marks into their traces.

use super::UserEventError;
use crate::kernel::tracefs::{TracePath, Tracefs};
use rtrace_mark::Error;
use rtrace_mark::event::{self, Declaration, Flags, Registration};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;

/// The usual path of the file. A program that may write user events need not have access to the rest of tracefs.
const USUAL_DATA: &str = "/sys/kernel/tracing/user_events_data";

/// Returns the file with which programs register and write user events.
///
/// # Errors
/// tracefs is not mounted or not accessible, or it does not have the file.
pub fn data() -> Result<TracePath, UserEventError> {
    let data = match Tracefs::find() {
        Ok(tracefs) => tracefs.root().join("user_events_data"),
        Err(error) => match TracePath::mounted(USUAL_DATA) {
            usual if usual.exists() => usual,
            _ => return Err(error.into()),
        },
    };
    if data.exists() { Ok(data) } else { Err(Error::NotBuilt.into()) }
}

/// Registers a user event, or joins an existing one with the same fields. `fields` has the form `TYPE NAME; TYPE
/// NAME...`.
///
/// # Errors
/// [`UserEventError`], by the kernel's errno.
pub fn register(name: &str, fields: &str, flags: Flags) -> Result<Registration, UserEventError> {
    let declaration = Declaration::new(name, fields)?;
    Ok(declaration.register(open()?, flags)?)
}

/// Deletes the user events of this name, with any fields.
///
/// # Errors
/// [`UserEventError`], by the kernel's errno.
pub fn delete(name: &str) -> Result<(), UserEventError> {
    event::check_name(name)?;
    Ok(event::delete(&open()?, name)?)
}

fn open() -> Result<File, UserEventError> {
    let data = data()?;
    data.open(OFlags::WRONLY).map_err(|error| {
        let path = data.shown();
        let refused =
            if error.kind() == io::ErrorKind::PermissionDenied { Error::NoPermission { path } } else { Error::Open { path, error } };
        refused.into()
    })
}
