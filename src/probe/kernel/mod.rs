//! Resolves names in probes of the kernel: arguments and members by the kernel's BTF; lines, local variables and static
//! data by its debug information, if that is installed.
//!
//! Newer kernels accept the names of arguments themselves. rtrace resolves them all the same, so that a probe means the
//! same on all kernels.

mod image;
mod place;
mod resolve;
mod signature;
pub mod symbol;

pub use resolve::resolve;
