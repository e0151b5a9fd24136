//! BPF programs of the user's own (`-e FILE.bpf.c`, `-e FILE.bpf.o`): compiled, attached where their sections say, and their records shown as events.
//!
//! What they are told and give is the kernel's: maps and programs go in as libbpf relocated them, with a few instructions around each (`wrap.rs`) so that what a program returns concerns
//! its own event and nobody else's.

#[cfg(feature = "bpf")]
mod attach;
#[cfg(feature = "bpf")]
mod code;
#[cfg(feature = "bpf")]
mod compile;
#[cfg(feature = "bpf")]
mod context;
mod output;
#[cfg(feature = "bpf")]
mod own;
#[cfg(feature = "bpf")]
mod record;
#[cfg(feature = "bpf")]
mod section;
#[cfg(feature = "bpf")]
mod wrap;

#[cfg(feature = "bpf")]
mod objects;
#[cfg(not(feature = "bpf"))]
#[path = "absent.rs"]
mod objects;

pub use objects::Objects;
pub use output::Output;

#[cfg(feature = "bpf")]
pub use objects::NAME_PREFIX;
