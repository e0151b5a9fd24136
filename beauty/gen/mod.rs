//! Generates Rust tables from the rows of `beauty/` and the UAPI headers.
//!
//! The input is the text of rows and headers, the output is Rust text or a list of faults. The generator opens no
//! files: build.rs reads the input and writes the output, and tests pass small examples.

pub mod argument;
pub mod attributes;
pub mod brief;
pub mod choice;
pub mod commands;
pub mod condition;
pub mod constant;
pub mod coverage;
pub mod ctype;
pub mod emit;
pub mod emit_commands;
pub mod emit_messages;
pub mod enums;
pub mod expression;
pub mod fault;
pub mod field_type;
pub mod forms;
pub mod generate;
pub mod glob;
pub mod header;
pub mod int;
pub mod kind;
pub mod layout;
pub mod lex;
pub mod library;
pub mod link;
pub mod macro_row;
pub mod macros;
pub mod messages;
pub mod numbers;
pub mod overlay;
pub mod plain;
pub mod preprocess;
pub mod requests;
pub mod resolve;
pub mod structs;
pub mod syscalls;
pub mod tables;
pub mod variants;
