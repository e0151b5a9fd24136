//! Call stacks: unwinding, and what the addresses are called.
//!
//! Pure code: bytes, registers and closures come in, frames go out. Who reads files and memory is outside.
//!
//! Two addresses have names here. An *avma* is an address in a process's memory. An *svma* is an address as an ELF file's headers and symbols state it;
//! the two differ by the bias at which the file was mapped.

mod frame_pointer;
mod full_row;
pub mod image;
mod index;
pub mod library;
#[cfg(test)]
mod made;
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
pub mod unwind;
