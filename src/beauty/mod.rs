//! From registers and bytes to typed values, and from these to text, by the tables of `beauty/`.

pub mod custom;
pub mod decode;
pub mod errno;
pub mod escape;
pub mod lookup;
pub mod number;
pub mod perf;
pub mod row;
#[cfg(test)]
pub mod samples;
pub mod signal;
pub mod stamp;
pub mod table;
pub mod tables;
pub mod tracepoint;
pub mod used;
pub mod value;
