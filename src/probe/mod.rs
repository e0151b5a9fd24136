//! Dynamic events: probes that rtrace makes itself, and those that are there.

pub mod grammar;
