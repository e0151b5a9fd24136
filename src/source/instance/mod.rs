//! tracefs instances: buffers of our own for events that perf accepts and delivers nothing of.

pub mod page;
