//! rtrace: what strace answers, at a cost below perf trace's, with the truth about what was missed.
//!
//! ```text
//! argv ──cli──▶ Request ──plan──▶ Plan ──source──▶ Rounds of Records ──engine──▶ Events ──sink──▶ text, summary, ...
//! ```
//! ARCHITECTURE.md has the map and the invariants.
#![deny(clippy::print_stderr)]

pub mod arm;
pub mod beauty;
pub mod bpf;
pub mod cli;
pub mod engine;
pub mod event;
pub mod gate;
pub mod interrupt;
pub mod kernel;
pub mod plan;
pub mod probe;
pub mod request;
pub mod run;
pub mod say;
pub mod session;
pub mod show;
pub mod sink;
pub mod source;
pub mod stack;
pub mod stream;
pub mod sys;
pub mod syscall;
pub mod task;
pub mod text;
