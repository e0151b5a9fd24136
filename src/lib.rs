//! rtrace: a tracer of system calls with strace's information at less than perf trace's cost, which counts every lost
//! record.
//!
//! ```text
//! argv ──cli──▶ Request ──plan──▶ Plan ──source──▶ Rounds of Records ──engine──▶ Events ──sink──▶ text, summary, ...
//! ```
//! ARCHITECTURE.md describes the modules and the invariants.
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
