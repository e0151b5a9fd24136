//! Dynamic events: probes that rtrace makes itself, and those that are there.
//!
//! * Their language is in `grammar/`. `resolve.rs` puts into the place of names what the kernel takes: `program/` and `kernel/` know whose names they are, `dwarf/` reads debug information, and `value/` goes
//!   from a variable to a fetch argument, whoever describes its type.
//! * `made.rs` makes a run's events, and takes them away with it; `change.rs` those that stay, which `kept.rs` writes down. Both write to `dynamic_events.rs`, and `error_log.rs` says why the kernel refuses.
//! * `owner.rs` is whose an event is by its name; [`crate::arm::left`] removes what killed runs left.
//! * `inventory.rs` is what there is, with `hits.rs`, `state.rs` and `holders.rs`.
//! * `user_events/` is the programs' side of user events.

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
