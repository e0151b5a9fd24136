//! Probes on files' code: what their names mean, by the files' own symbols and debug information.
//!
//! Addresses are *svmas*, those that a file's headers and symbols state; *offsets* are bytes from the file's beginning, which is what the kernel wants.

mod file;
mod line;
mod operand;
mod place;
pub mod symbol;
pub mod usdt;
mod variable;

pub use place::resolve;
