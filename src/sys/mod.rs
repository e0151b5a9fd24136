//! The only unsafe code of the crate: safe wrappers of kernel interfaces.
//!
//! Each block states why it is sound. Calls that `rustix` or `std` already wrap are not wrapped again.
#![allow(unsafe_code)]

pub mod barrier;
#[cfg(feature = "bpf")]
pub mod bpf;
pub mod brake;
pub mod caller;
pub mod clock;
pub mod closer;
pub mod exit_code;
pub mod file_capabilities;
pub mod helper;
pub mod map_memory;
pub mod mapped;
pub mod perf;
pub mod priority;
pub mod remote_memory;
pub mod rights;
pub mod ring;
pub mod ring_level;
pub mod seccomp;
pub mod signals;
pub mod spawn;
pub mod users;
