//! Symbols, source lines and inlined functions by address.
//!
//! This folder is pure code. It requests files through [`Files`] and reads them through [`ReadAt`]; `kernel/objects.rs`
//! implements both for the live machine. An address here is an *svma* (stated virtual memory address): the number by
//! which a file's headers and symbols refer to a place in the file, and which `objdump` and `addr2line` print and
//! accept.
//!
//! A symbol names only the addresses within the symbol's size. For other addresses there is no name, and the caller
//! prints file and offset. Names are bytes from foreign files. They are *not* escaped here, but when they are printed
//! (`text/escape.rs`).

pub mod alias;
pub mod build_id;
pub mod code;
pub mod compression;
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
pub mod perf_map;
pub mod read_at;
pub mod resolver;
pub mod separate;
pub mod table;
#[cfg(test)]
mod test_files;

pub use build_id::BuildId;
pub use code::CodeSymbols;
pub use elf::ElfFile;
pub use files::{Files, Identity, Origin, Want};
pub use jit::Jit;
pub use kallsyms::KernelNames;
pub use read_at::ReadAt;
pub use resolver::{Name, ObjectId, Options, Resolver};
pub use table::SymbolTable;
