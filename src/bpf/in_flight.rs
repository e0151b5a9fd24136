//! Calls in flight, as an iterator over all tasks lists them.

use super::record::{self, ListedCall};
use crate::event::synthesized::StackMemory;

/// Two lists in the format in which the programs write them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// The calls ([`record::listed`]). At the end of the trace also the aggregates of living tasks.
    pub calls: Vec<u8>,
    /// The stacks of the calls ([`record::listed_stacks`]), where stacks are recorded.
    pub stacks: Vec<u8>,
}

impl InFlight {
    /// Returns the calls that did not end while they were copied, each with its stack if the task was still in the call
    /// when the stack was copied.
    pub fn calls(&self) -> impl Iterator<Item = (ListedCall<'_>, Option<StackMemory>)> {
        let mut stacks = record::listed_stacks(&self.stacks);
        record::listed(&self.calls).into_iter().map(move |call| {
            let start = record::CallRecord::parse(call.call).map(|seen| seen.start);
            let of_call = stacks.iter().position(|stack| stack.tid == call.task.tid && Some(stack.start) == start);
            (call, of_call.map(|at| stacks.swap_remove(at).memory))
        })
    }
}
