//! Dynamic events: probes that rtrace makes itself, and those that are there.

pub mod by_device;
pub mod change;
mod dwarf;
pub mod dynamic_events;
pub mod error_log;
pub mod grammar;
pub mod groups;
pub mod hits;
pub mod holders;
pub mod inventory;
pub mod kept;
pub mod kernel;
pub mod left;
pub mod made;
pub mod names;
pub mod owner;
pub mod program;
pub mod resolve;
pub mod state;
pub mod surroundings;
#[cfg(test)]
mod testing;
pub mod user_events;
mod value;

pub use resolve::{Resolved, resolve};
