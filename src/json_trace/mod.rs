//! Reads the traces that `--json` writes: their objects become events again, for `rtrace diff`.
//!
//! A call gets back its registers, the files behind its descriptors and the strings of its arguments. Structs and
//! arrays in the caller's memory are values already, and stay so ([`Given`]). The file may be damaged, cut or made by
//! an enemy: every line that is whole is used, what is wrong with the others is a sentence with the number of the line,
//! and a line of more than 16 MiB is not read. Nothing here decides which events are compared.

mod call;
mod file;
mod object;
mod reader;
mod value;

pub use reader::JsonTrace;
pub use value::{Given, Moment};
