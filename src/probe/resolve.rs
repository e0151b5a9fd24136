//! Resolves the names in a probe: takes the probe as the user wrote it and returns probes in the kernel's own grammar.
//!
//! All files are read through [`Surroundings`]. A probe without names is left unchanged. So is one that the kernel
//! would refuse anyway: the kernel's own error message says more.

use super::grammar::{Probe, ProbePoint};
use super::surroundings::Surroundings;
use super::{kernel, program};

/// The result of resolving a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Several probes if a line or a USDT tracepoint is at several addresses. All have the event name that the user
    /// chose, so the caller has to make the names unique.
    pub probes: Vec<Probe>,
    /// Remarks for the user, as sentences: for example, that the probe was moved behind the function's prologue, or
    /// that other functions have the same name.
    pub notes: Vec<String>,
}

impl Resolved {
    /// Returns the result for a probe that is in the kernel's own grammar already.
    pub fn unchanged(probe: &Probe) -> Resolved {
        Resolved { probes: vec![probe.clone()], notes: Vec::new() }
    }
}

/// Looks up all names in a probe: symbols, source lines, variables, USDT tracepoints.
///
/// # Errors
/// A name does not exist or is ambiguous, or the kernel's grammar cannot express where the value is. Each error is a
/// sentence that lists similar names.
pub fn resolve(probe: &Probe, surroundings: &mut dyn Surroundings) -> anyhow::Result<Resolved> {
    match &probe.place {
        ProbePoint::File { .. } => program::resolve(probe, surroundings),
        ProbePoint::Usdt { .. } => program::usdt::resolve(probe, surroundings),
        ProbePoint::Kernel { .. } | ProbePoint::Function { .. } | ProbePoint::Tracepoint { .. } => kernel::resolve(probe, surroundings),
        ProbePoint::Event { .. } | ProbePoint::Synthetic { .. } | ProbePoint::User { .. } => Ok(Resolved::unchanged(probe)),
    }
}
