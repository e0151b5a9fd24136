//! From names to what the kernel takes: a probe as it was written in, probes in the kernel's own grammar out.
//!
//! Pure over bytes: files come through [`Surroundings`]. What needs nothing is left as it is, and what the kernel would refuse all the same is left to the kernel, whose error says more.

use super::grammar::{Place, Probe};
use super::surroundings::Surroundings;
use super::{kernel, program};

/// What became of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// More than one where a line or a USDT tracepoint is in several places. All have the event's name that was asked for, so it is for the caller to tell them
    /// apart.
    pub probes: Vec<Probe>,
    /// What a user might wonder about, as sentences: that a probe is behind the function's beginning, that there are other functions of this name.
    pub notes: Vec<String>,
}

impl Resolved {
    /// A probe that is in the kernel's own grammar already.
    pub fn unchanged(probe: &Probe) -> Resolved {
        Resolved { probes: vec![probe.clone()], notes: Vec::new() }
    }
}

/// Looks up all that is a name: symbols, source lines, variables, USDT tracepoints.
///
/// # Errors
/// Something has no such name or several things have, or the kernel has no words for where it is; each a sentence with what is near.
pub fn resolve(probe: &Probe, surroundings: &mut dyn Surroundings) -> anyhow::Result<Resolved> {
    match &probe.place {
        Place::File { .. } => program::resolve(probe, surroundings),
        Place::Usdt { .. } => program::usdt::resolve(probe, surroundings),
        Place::Kernel { .. } | Place::Function { .. } | Place::Tracepoint { .. } => kernel::resolve(probe, surroundings),
        Place::Event { .. } | Place::Synthetic { .. } | Place::User { .. } => Ok(Resolved::unchanged(probe)),
    }
}
