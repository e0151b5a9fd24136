//! Why there is no user event.

use crate::kernel::tracefs::TracefsError;

/// What is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum UserEventError {
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    #[error(transparent)]
    Event(#[from] rtrace_mark::Error),
}
