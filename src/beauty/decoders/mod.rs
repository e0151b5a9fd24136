//! What rows of `beauty/structs/` cannot say: each function makes the value of one struct, whose row names it.
//!
//! The build takes every `pub fn` in these files for such a function.

mod set;
mod siginfo;
mod socket;

pub use set::{cpumask, fd_set, nodemask, sigset};
pub use siginfo::siginfo;
pub use socket::{in6_addr, sockaddr, sun_path};
