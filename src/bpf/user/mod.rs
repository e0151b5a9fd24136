//! The user's BPF programs (`-e FILE.bpf.c`, `-e FILE.bpf.o`): they are compiled, attached to the attach points that
//! their sections name, and their records are shown as events.
//!
//! The programs use the kernel's own interfaces: their maps and code are loaded as libbpf relocated them. rtrace adds a
//! few instructions around each program (`wrap.rs`), so that the program's return value decides only about the
//! program's own event.

mod attach;
mod code;
mod compile;
mod context;
mod credentials;
mod objects;
mod output;
mod program_event;
mod record;
mod section;
mod wrap;

pub use objects::{NAME_PREFIX, Objects};
pub use output::Output;
