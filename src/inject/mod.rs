//! Fault injection: answers, delays and signals for calls of the command (`--inject`).
//!
//! A seccomp filter, which the command's process installs before its exec, makes the kernel ask a supervisor about the
//! calls of the rules ([`crate::sys::seccomp`]). The supervisor is a process of its own, and not a thread of rtrace:
//! without a supervisor, these calls would fail with ENOSYS, and a filter cannot be removed. It therefore lives as long
//! as any task with the filter, whatever happens to rtrace. Once rtrace has ended, it lets all calls pass. If it is
//! killed, rtrace has the filter's descriptor too, so that calls wait until rtrace has started a successor, which lets
//! all calls pass.

mod due_signals;
mod progress;
mod rules;
mod serve;
mod supervisor;

pub use rules::Rules;
pub use serve::serve_if_started_as_supervisor;
pub use supervisor::Supervisor;
