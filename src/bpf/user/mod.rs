//! BPF programs of the user's own (`-e FILE.bpf.c`, `-e FILE.bpf.o`): compiled, attached where their sections say, and their records shown as events.
//!
//! What they are told and give is the kernel's: maps and programs go in as libbpf relocated them, with a few instructions around each (`wrap.rs`) so that what a program returns concerns
//! its own event and nobody else's.

mod attach;
mod code;
mod compile;
mod context;
mod objects;
mod output;
mod own;
mod record;
mod section;
mod wrap;

pub use objects::{NAME_PREFIX, Objects};
pub use output::Output;
