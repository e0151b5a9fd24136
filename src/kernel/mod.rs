//! What this kernel offers.

pub mod format;
