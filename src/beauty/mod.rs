//! From registers and bytes to typed values, and from these to text, by the tables of `beauty/`.

pub mod row;
pub mod tables;
pub mod value;
