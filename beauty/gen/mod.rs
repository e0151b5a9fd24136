//! Makes Rust tables of `beauty/` and the UAPI headers: rows and headers as text in, Rust text or faults out.
//!
//! Pure: nothing here opens a file. build.rs hands the text in and writes the result out, tests do the same with small examples.

pub mod condition;
pub mod constant;
pub mod ctype;
pub mod emit;
pub mod enums;
pub mod expression;
pub mod fault;
pub mod field_type;
pub mod generate;
pub mod glob;
pub mod header;
pub mod int;
pub mod kind;
pub mod layout;
pub mod lex;
pub mod library;
pub mod link;
pub mod numbers;
pub mod overlay;
pub mod plain;
pub mod preprocess;
pub mod resolve;
pub mod structs;
pub mod syscalls;
pub mod tables;
