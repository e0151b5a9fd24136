//! Tests of the engine with real records from memory.

mod call_events;
mod calls;
mod descriptors;
mod fixture;
mod injected;
mod instance;
mod kernel_pids;
mod names_at_exit;
mod notices;
mod paired;
mod path_names;
mod random;
mod replay;
mod requests;
mod tallies;
mod tasks;
