//! The BPF engine's kernel side: the C programs, what they are told, and what they write.
//!
//! Built with the feature `bpf`; without it, or where the kernel refuses the programs, the tracepoint engine does all.

mod account;
#[cfg(feature = "bpf")]
mod capture;
#[cfg(feature = "bpf")]
mod choices;
#[cfg(feature = "bpf")]
mod conditions;
#[cfg(feature = "bpf")]
mod encode;
pub mod files;
pub mod filter;
#[cfg(feature = "bpf")]
mod filter_bytes;
pub mod in_flight;
#[cfg(feature = "bpf")]
mod kept;
#[cfg(feature = "bpf")]
mod links;
#[cfg(feature = "bpf")]
mod loaded;
pub mod parts;
pub mod record;
mod settings;
pub mod signals;
mod sockets;
mod stacks;
pub mod tally;
#[cfg(feature = "bpf")]
mod types;
#[cfg(feature = "bpf")]
pub mod user;
#[cfg(not(feature = "bpf"))]
#[path = "user/absent.rs"]
pub mod user;

#[cfg(feature = "bpf")]
mod programs;
#[cfg(not(feature = "bpf"))]
#[path = "absent.rs"]
mod programs;

pub use account::Account;
pub use programs::{Programs, is_of_rtrace, may_be_interrupted};
pub use settings::{Hooks, Mode, OwnEvents, Seed, Settings, Whose};
pub use stacks::Stacks;
