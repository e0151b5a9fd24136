//! The kernel side of the BPF engine: the C programs, their settings, and the records that they write.
//!
//! It is built with the feature `bpf`. Without the feature, or where the kernel refuses the programs, calls are traced
//! by the tracepoint engine alone.

mod account;
pub mod aggregate;
#[cfg(feature = "bpf")]
mod call_plan;
#[cfg(feature = "bpf")]
mod capture;
#[cfg(feature = "bpf")]
mod choices;
#[cfg(feature = "bpf")]
mod conditions;
mod effects;
#[cfg(feature = "bpf")]
mod encode;
#[cfg(feature = "bpf")]
mod ended_tasks;
pub mod files;
pub mod filter;
#[cfg(feature = "bpf")]
mod filter_bytes;
pub mod in_flight;
#[cfg(all(test, feature = "bpf"))]
mod layout;
#[cfg(feature = "bpf")]
mod links;
#[cfg(feature = "bpf")]
mod loaded;
pub mod parts;
pub mod record;
#[cfg(feature = "bpf")]
mod request_plan;
mod settings;
pub mod signals;
mod sockets;
mod stacks;
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

pub use effects::Effects;
pub use programs::{Programs, is_of_rtrace, may_be_interrupted, may_override};
pub use settings::{Entries, Hooks, Mode, OwnEvents, Requests, Seed, Settings, TaskScope};
pub use stacks::Stacks;
