//! What is at an address: symbols, source lines, inlined functions.
//!
//! Pure code, fed by bytes. What is a file is asked for through [`Files`] and read through [`ReadAt`]; `kernel/objects.rs` does both for the
//! machine it runs on. Unwinding is done elsewhere: here, an address is a number that a file gives to a place in itself (its *svma*, stated virtual
//! memory address: what `objdump` and `addr2line` show and take).
//!
//! A symbol names an address only within the symbol's size; otherwise the answer is that there is none, and the caller prints file and offset. Names
//! are bytes from foreign files: they are *not* escaped here, but where they are printed (`text/escape.rs`).

pub mod alias;
pub mod build_id;
pub mod code;
pub mod debug_file;
pub mod debuginfod;
pub mod demangle;
pub mod elf;
pub mod files;
pub mod jit;
pub mod jitdump;
pub mod kallsyms;
pub mod lines;
pub mod linkage;
pub mod listing;
pub mod notes;
pub mod object;
pub mod order;
pub mod packed;
pub mod perf_map;
pub mod read_at;
pub mod resolver;
#[cfg(test)]
mod sample;
pub mod separate;
pub mod table;

pub use build_id::BuildId;
pub use code::Code;
pub use elf::{ElfError, ElfFile};
pub use files::{Files, Identity, Origin, Want};
pub use jit::Jit;
pub use kallsyms::{KernelName, KernelNames};
pub use lines::InlinedFrame;
pub use read_at::ReadAt;
pub use resolver::{Name, ObjectId, Options, Resolver};
pub use table::SymbolTable;
