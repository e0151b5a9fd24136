//! Probes on files' code: what their names mean, by the files' own symbols and debug information. Of the kernel's file too, which is one like others.
//!
//! Addresses are *svmas*, those that a file's headers and symbols state; *offsets* are bytes from the file's beginning, which is what the kernel wants.

pub(super) mod file;
pub(super) mod line;
mod operand;
pub(super) mod place;
pub mod symbol;
pub mod usdt;
pub(super) mod variable;

pub use place::resolve;
