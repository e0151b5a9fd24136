//! Errors of user events.

use crate::event::DECLARATION_BYTES_MAX;
use std::path::PathBuf;
use std::{fmt, io};

/// An error of a user event. The message says what to do where that is known.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// tracefs is not mounted, and this program has no permission to mount it for itself.
    NotMounted {
        /// The error of the mount.
        error: io::Error,
    },
    /// The kernel is older than 6.4 or was built without CONFIG_USER_EVENTS.
    NotBuilt,
    /// The program has no permission to write the file with which user events are registered.
    NoPermission {
        /// The file.
        path: PathBuf,
    },
    /// That file cannot be opened for another reason.
    Open {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The name of an event or field is not valid.
    Name {
        /// The name.
        name: String,
    },
    /// An event of this name with other fields exists.
    OtherFields {
        /// The event's name.
        name: String,
    },
    /// The kernel does not know a type in the declaration.
    Declaration {
        /// The complete declaration.
        declaration: String,
    },
    /// The declaration is longer than the kernel accepts.
    TooLong {
        /// The event's name.
        name: String,
        /// The length of the declaration.
        bytes: usize,
    },
    /// The creation or deletion of a persistent event requires CAP_PERFMON.
    NotCapable,
    /// The kernel's limit of user events is reached.
    TooMany,
    /// The event that is to be deleted does not exist.
    Unknown {
        /// The event's name.
        name: String,
    },
    /// A program or a tracer uses the event that is to be deleted.
    Busy {
        /// The event's name.
        name: String,
    },
    /// The kernel rejects the event for another reason.
    Refused {
        /// The event's name.
        name: String,
        /// The kernel's error.
        error: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotMounted { error } => write!(
                f,
                "tracefs is not mounted, and this program may not mount it for itself ({error}): as root, run `mount -t tracefs tracefs /sys/kernel/tracing`"
            ),
            Error::NotBuilt => f.write_str("this kernel has no user events (CONFIG_USER_EVENTS)"),
            Error::NoPermission { path } => {
                let path = path.display();
                write!(
                    f,
                    "no permission to write {path}: run as root, or permit it to all users with `chmod o+w {path}` and `chmod o+x` on its directory"
                )
            }
            Error::Open { path, error } => write!(f, "cannot open {}: {error}", path.display()),
            Error::Name { name } => {
                write!(f, "`{name}` is not a valid name of a user event or field: use letters, digits and _, and no digit at the beginning")
            }
            Error::OtherFields { name } => {
                write!(f, "a user event `{name}` with other fields already exists (`rtrace probe list user_events:{name}` shows them)")
            }
            Error::Declaration { declaration } => write!(
                f,
                "the kernel does not accept the declaration `{declaration}`: separate the fields by semicolons, and write them as `TYPE NAME` with types like u32, s64, char[20] or __rel_loc char[] (not long), or as `struct TYPE NAME SIZE`"
            ),
            Error::TooLong { name, bytes } => {
                write!(f, "the declaration of `{name}` has {bytes} bytes, but the kernel accepts at most {DECLARATION_BYTES_MAX}")
            }
            Error::NotCapable => f.write_str("creating or deleting a persistent user event requires CAP_PERFMON"),
            Error::TooMany => f.write_str("the limit of user events is reached: raise kernel.user_events_max, or delete unused events"),
            Error::Unknown { name } => write!(f, "there is no user event `{name}`"),
            Error::Busy { name } => write!(f, "the user event `{name}` is in use"),
            Error::Refused { name, error } => write!(f, "the kernel rejects the user event `{name}`: {error}"),
        }
    }
}

/// The messages contain the kernel's errors, so there is no separate source.
impl std::error::Error for Error {}
