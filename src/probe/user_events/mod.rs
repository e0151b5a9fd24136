//! User events: trace events that programs declare and write themselves (Documentation/trace/user_events.rst).

pub mod access;
pub mod error;
pub mod payload;
pub mod status;

pub use error::UserEventError;
