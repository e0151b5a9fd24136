//! Errors of user events.

use crate::kernel::tracefs::TracefsError;

/// Why a user event cannot be registered or deleted.
#[derive(Debug, thiserror::Error)]
pub enum UserEventError {
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    #[error(transparent)]
    Event(#[from] rtrace_mark::Error),
}
