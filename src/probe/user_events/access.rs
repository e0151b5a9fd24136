//! The kernel's file of user events, as rtrace finds it. What is done with it is the crate rtrace-mark's, which programs
//! that mark their traces have too.

use super::UserEventError;
use crate::kernel::tracefs::{TracePath, Tracefs};
use rtrace_mark::Error;
use rtrace_mark::event::{self, Declaration, Flags, Registration};
use rustix::fs::OFlags;
use std::fs::File;
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
    if data.exists() { Ok(data) } else { Err(Error::NotBuilt.into()) }
}

/// Declares an event, `fields` being `TYPE NAME; TYPE NAME...`, or joins those who hold the same.
///
/// # Errors
/// [`UserEventError`], by what the kernel says.
pub fn register(name: &str, fields: &str, flags: Flags) -> Result<Registration, UserEventError> {
    let declaration = Declaration::new(name, fields)?;
    Ok(declaration.register(open()?, flags)?)
}

/// Deletes the user events of this name, whatever their fields.
///
/// # Errors
/// [`UserEventError`], by what the kernel says.
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
