//! Bytes and characters, whatever they are about.

pub mod caret;
pub mod escape;
pub mod glob;
pub mod near;
pub mod number;
pub mod plain;
pub mod unit;
pub mod units;
