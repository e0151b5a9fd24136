//! What the BPF programs do with a call, as the bytes of `struct plan` in `plan.h`.

use super::capture::{Capture, OP_BYTES, Op};
use super::stacks::Kinds;

/// `OPS_MAX`: the number of operations of one plan.
pub(super) const OPS_MAX: usize = 6;
/// `sizeof(struct plan)`
pub(super) const PLAN_BYTES: usize = OPS_AT + OPS_MAX * OP_BYTES;
pub(super) const OPS_AT: usize = 20;

/// `PLAN_*`
pub(super) const WANTED: u16 = 1;
pub(super) const EXIT_MATTERS: u16 = 2;
pub(super) const CLONES: u16 = 4;
pub(super) const EXECUTES: u16 = 8;
pub(super) const NEVER_RETURNS: u16 = 16;
pub(super) const SIGRETURN: u16 = 32;
pub(super) const OPENS: u16 = 64;
pub(super) const WORKS_AT_EXIT: u16 = 128;
pub(super) const RETURNS_INT: u16 = 256;
pub(super) const RECORDS_ENTRY: u16 = 512;

/// `struct plan`
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CallPlan(pub(super) [u8; PLAN_BYTES]);

impl CallPlan {
    pub(super) fn of_flags(flags: u16) -> CallPlan {
        let mut plan = CallPlan([0; PLAN_BYTES]);
        plan.0[..2].copy_from_slice(&flags.to_ne_bytes());
        plan
    }

    pub(super) fn new(flags: u16, capture: &Capture) -> CallPlan {
        let opens = if capture.opens { OPENS | WORKS_AT_EXIT } else { 0 };
        let works_at_exit = if capture.ops.iter().copied().any(Op::is_at_exit) { WORKS_AT_EXIT } else { 0 };
        let mut plan = CallPlan::of_flags(flags | opens | works_at_exit);
        (plan.0[2], plan.0[3]) = (capture.ops.len() as u8, capture.descriptors);
        plan.0[7] = capture.indirect_fds as u8;
        plan.0[15..18].copy_from_slice(&[capture.pids, capture.uids, capture.gids]);
        for (place, op) in plan.0[OPS_AT..].chunks_exact_mut(OP_BYTES).zip(&capture.ops) {
            place.copy_from_slice(&op.bytes());
        }
        plan
    }

    /// Sets the kinds of stacks that the call's records have.
    pub(super) fn with(mut self, kinds: Kinds) -> CallPlan {
        (self.0[12], self.0[13], self.0[14]) = (kinds.first, kinds.last, kinds.usual);
        self
    }

    pub(super) fn choose(&mut self, chooser: u16, arg: u8, mask: u32) {
        self.0[4..6].copy_from_slice(&chooser.to_ne_bytes());
        self.0[6] = arg;
        self.0[8..12].copy_from_slice(&mask.to_ne_bytes());
    }
}
