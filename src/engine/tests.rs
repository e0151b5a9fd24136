//! The engine, fed with real records from memory.

mod bed;
mod calls;
mod descriptors;
mod instance;
mod names_at_exit;
mod numbers;
mod path_names;
mod random;
mod tasks;
mod whole;
