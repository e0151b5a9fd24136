//! Dynamic events: probes that rtrace makes itself, and those that are there.

pub mod grammar;
mod naming;
pub mod program;
pub mod resolve;
pub mod surroundings;
#[cfg(test)]
mod testing;
pub mod user_events;

pub use resolve::{Resolved, resolve};
