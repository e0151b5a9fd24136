//! User events: trace events that programs register and write (Documentation/trace/user_events.rst).

pub mod access;
pub mod error;
pub mod payload;
pub mod status;

pub use error::UserEventError;
