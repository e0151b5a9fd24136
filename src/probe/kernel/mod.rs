//! Probes on the kernel: what names of arguments, members and lines mean, by its type information and, where somebody installed it, its debug information.
//!
//! Newer kernels take some names themselves. Here all are looked up, so that all kernels are told the same.

mod image;
mod place;
mod resolve;
mod signature;
pub mod symbol;

pub use resolve::resolve;
