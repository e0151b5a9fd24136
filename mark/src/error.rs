//! Why the kernel does not do with a user event what is wanted.

use crate::event::DECLARATION_BYTES_MAX;
use std::path::PathBuf;
use std::{fmt, io};

/// What is wrong, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// tracefs is not mounted, and this program may not have a mount of its own.
    NotMounted {
        /// Why not.
        error: io::Error,
    },
    /// The kernel is older than 6.4 or was built without CONFIG_USER_EVENTS.
    NotBuilt,
    /// The program may not write the file that user events are registered with.
    NoPermission {
        /// The file.
        path: PathBuf,
    },
    /// That file cannot be opened for another reason.
    Open {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        error: io::Error,
    },
    /// A name of an event or field that the kernel would misunderstand.
    Name {
        /// The name.
        name: String,
    },
    /// There is an event of this name with other fields.
    OtherFields {
        /// The event's name.
        name: String,
    },
    /// The kernel does not know a type in the declaration.
    Declaration {
        /// The whole declaration.
        declaration: String,
    },
    /// The declaration is longer than the kernel takes.
    TooLong {
        /// The event's name.
        name: String,
        /// The bytes that the declaration has.
        bytes: usize,
    },
    /// It takes CAP_PERFMON to make an event that stays, and to delete one.
    NotCapable,
    /// There are as many user events as the kernel allows.
    TooMany,
    /// There is no event to delete.
    Unknown {
        /// The event's name.
        name: String,
    },
    /// The event that is to be deleted is held by a program or a tracer.
    Busy {
        /// The event's name.
        name: String,
    },
    /// The kernel refuses for another reason.
    Refused {
        /// The event's name.
        name: String,
        /// The kernel's answer.
        error: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotMounted { error } => write!(
                f,
                "tracefs is not mounted, and this program may not mount it for itself ({error}): `mount -t tracefs tracefs /sys/kernel/tracing` as root mounts it for all"
            ),
            Error::NotBuilt => f.write_str("this kernel has no user events (CONFIG_USER_EVENTS)"),
            Error::NoPermission { path } => {
                let path = path.display();
                write!(
                    f,
                    "no permission to write {path}: become root, or let programs in with `chmod o+w {path}` and `chmod o+x` on the directory"
                )
            }
            Error::Open { path, error } => write!(f, "cannot open {}: {error}", path.display()),
            Error::Name { name } => {
                write!(f, "`{name}` is no name for a user event or its field: letters, digits and _, with no digit first")
            }
            Error::OtherFields { name } => {
                write!(f, "a user event `{name}` with other fields is there already (`rtrace probe list user_events:{name}` shows them)")
            }
            Error::Declaration { declaration } => write!(
                f,
                "the kernel does not know what `{declaration}` declares: fields are `TYPE NAME` with semicolons between, of types like u32, s64, char[20] or __rel_loc char[] (not long), or `struct TYPE NAME SIZE`"
            ),
            Error::TooLong { name, bytes } => {
                write!(f, "the declaration of `{name}` has {bytes} bytes, and programs can register no more than {DECLARATION_BYTES_MAX}")
            }
            Error::NotCapable => f.write_str("to make or delete a user event that stays takes CAP_PERFMON"),
            Error::TooMany => f.write_str("there are as many user events as kernel.user_events_max allows"),
            Error::Unknown { name } => write!(f, "there is no user event `{name}`"),
            Error::Busy { name } => write!(f, "the user event `{name}` is in use"),
            Error::Refused { name, error } => write!(f, "the kernel refuses the user event `{name}`: {error}"),
        }
    }
}

/// The kernel's answers are part of the sentences, so there is no source besides.
impl std::error::Error for Error {}
