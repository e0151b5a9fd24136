//! The only unsafe code: the kernel's interfaces, wrapped so that all the rest is safe.
//!
//! Each block says why it is sound. What `rustix` and `std` already wrap is not wrapped again.
#![allow(unsafe_code)]

pub mod apart;
#[cfg(feature = "bpf")]
pub mod bpf;
pub mod caller;
pub mod clock;
pub mod closer;
pub mod exit_code;
pub mod lent;
pub mod map_memory;
pub mod mapped;
pub mod perf;
pub mod remote_memory;
pub mod rights;
pub mod ring;
pub mod signals;
pub mod spawn;
pub mod turn;
pub mod users;
