//! Resolves names in probes of programs and libraries by the symbols and debug information of their files. The kernel's
//! `vmlinux` is read in the same way.
//!
//! Addresses are *svmas* (stated virtual memory addresses), which a file's headers and symbols state. *Offsets* are
//! bytes from the file's beginning, which the kernel expects.

pub(super) mod file;
pub(super) mod line;
mod operand;
pub(super) mod place;
pub mod symbol;
pub mod usdt;
pub(super) mod variable;

pub use place::resolve;
