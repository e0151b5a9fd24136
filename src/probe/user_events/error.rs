//! Why the kernel does not do with a user event what is wanted.

use crate::kernel::tracefs::TracefsError;
use std::io;
use std::path::PathBuf;

/// What is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum UserEventError {
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    #[error("this kernel has no user events (CONFIG_USER_EVENTS)")]
    NotBuilt,
    #[error("no permission to write {}: become root, or let programs in with `chmod o+w {}` and `chmod o+x` on the directory", path.display(), path.display())]
    NoPermission { path: PathBuf },
    #[error("`{name}` is no name for a user event or its field: letters, digits and _, with no digit first")]
    Name { name: String },
    #[error("a user event `{name}` with other fields is there already (`rtrace probe list user_events:{name}` shows them)")]
    OtherFields { name: String },
    #[error(
        "the kernel does not know what `{declaration}` declares: fields are `TYPE NAME` with semicolons between, of types like u32, s64, char[20] or __rel_loc char[] (not long), or `struct TYPE NAME SIZE`"
    )]
    Declaration { declaration: String },
    #[error(
        "the declaration of `{name}` has {bytes} bytes, and programs can register no more than {}",
        crate::sys::user_events::DECLARATION_BYTES_MAX
    )]
    TooLong { name: String, bytes: usize },
    #[error("to make or delete a user event that stays takes CAP_PERFMON")]
    NotCapable,
    #[error("there are as many user events as kernel.user_events_max allows")]
    TooMany,
    #[error("there is no user event `{name}`")]
    Unknown { name: String },
    #[error("the user event `{name}` is in use")]
    Busy { name: String },
    #[error("the kernel refuses the user event `{name}`: {error}")]
    Refused { name: String, error: io::Error },
}
