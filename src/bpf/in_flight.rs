//! Calls that are in flight, as a look at all tasks lists them.

use super::record::{self, Listed};
use crate::event::note::StackMemory;

/// Two lists, as the programs wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// The calls ([`record::listed`]); at the end, also the tallies of living tasks.
    pub calls: Vec<u8>,
    /// Their stacks ([`record::listed_stacks`]), where stacks are wanted.
    pub stacks: Vec<u8>,
}

impl InFlight {
    /// The calls that stood still while they were copied, each with its stack if its task did not leave it meanwhile.
    pub fn calls(&self) -> impl Iterator<Item = (Listed<'_>, Option<StackMemory>)> {
        let mut stacks = record::listed_stacks(&self.stacks);
        record::listed(&self.calls).into_iter().map(move |call| {
            let start = record::Seen::parse(call.call).map(|seen| seen.start);
            let of_call = stacks.iter().position(|stack| stack.tid == call.task.tid && Some(stack.start) == start);
            (call, of_call.map(|at| stacks.swap_remove(at).memory))
        })
    }
}
