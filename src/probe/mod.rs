//! Dynamic events: kprobes, uprobes, fprobes, event probes, USDT tracepoints, synthetic events and user events, both
//! those that rtrace creates and those that exist already.
//!
//! * `grammar/` parses the language in which probes are written. `resolve.rs` replaces names by what the kernel
//!   accepts: `program/` and `kernel/` look up the names of programs and of the kernel, `dwarf/` reads debug
//!   information, and `value/` turns a variable into a fetch argument, whether DWARF or BTF describes its type.
//! * `run_events.rs` creates the events of a run and removes them at its end. `change.rs` creates and removes the
//!   events of `rtrace probe`, which persist; `ownership_list.rs` records them. Both write to tracefs's
//!   `dynamic_events` (`dynamic_events.rs`); `error_log.rs` reads why the kernel refused a line. `by_device.rs`
//!   describes the probes that the kernel creates without tracefs.
//! * `owner.rs` finds the process that owns an event by the event's name; [`crate::arm::stale`] removes the events of
//!   killed runs.
//! * `inventory.rs` lists all dynamic events, with `hits.rs`, `state.rs` and `holders.rs`.
//! * `user_events/` registers, deletes and writes user events as programs do.

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
pub mod kernel;
pub mod names;
pub mod owner;
pub mod ownership_list;
pub mod program;
pub mod resolve;
pub mod run_events;
pub mod state;
pub mod surroundings;
#[cfg(test)]
mod testing;
pub mod user_events;
mod value;

pub use resolve::resolve;
