//! Decodes registers and memory of calls to typed values by the tables of `beauty/`, and prints these values.

pub mod access;
pub mod attribute;
pub mod attributes;
pub mod command;
pub mod condition;
pub mod constant;
mod contents;
pub mod custom;
pub mod custom_constants;
pub mod decode;
pub mod decoders;
mod default;
pub mod errno;
pub mod file;
pub mod json;
pub mod lookup;
pub mod memory;
pub mod netlink;
pub mod perf;
pub mod pointed;
pub mod resolve;
pub mod row;
#[cfg(test)]
pub mod samples;
pub mod scalar;
pub mod shape;
pub mod signal;
pub mod sized_records;
pub mod special;
pub mod stamp;
pub mod structure;
pub mod style;
pub mod table;
pub mod tables;
pub mod tracepoint;
pub mod value;
