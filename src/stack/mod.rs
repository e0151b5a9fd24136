//! Call stacks: unwinding, and the symbols of their frames.
//!
//! This folder is pure code: its input is bytes, registers and closures, its output is frames. The callers read files
//! and memory.
//!
//! Two kinds of addresses occur here. An *avma* is an address in a process's memory. An *svma* is an address as an ELF
//! file's headers and symbols state it. The two differ by the bias at which the file was mapped.

mod frame_pointer;
mod full_row;
pub mod image;
mod index;
pub mod library;
pub mod name;
pub mod naming;
mod recover;
pub mod registers;
mod rule;
mod rule_cache;
mod signal_frame;
pub mod space;
pub mod symbols;
mod table;
#[cfg(test)]
mod test_elf;
pub mod unwind;
