//! Decodes the lists of calls in flight and of their stacks.

use super::{CALL_BYTES, PAYLOAD};
use crate::event::synthesized::StackMemory;
use crate::event::{TaskId, Time};

/// `sizeof(struct listed)`.
pub const LISTED_BYTES: usize = 16;

/// `sizeof(struct listed_stack)`, the number of registers that fit into it, and their offset.
pub const LISTED_STACK_BYTES: usize = 296;
const LISTED_REGISTERS_MAX: usize = 33;
const LISTED_REGISTERS: usize = 24;

/// An entry of a list of calls in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedCall<'a> {
    /// The time when the entry was written.
    pub time: Time,
    /// The task that is in the call.
    pub task: TaskId,
    /// The record, for [`super::CallRecord::parse`].
    pub call: &'a [u8],
}

/// Returns the calls of a list that did not end while they were copied.
pub fn listed(mut list: &[u8]) -> Vec<ListedCall<'_>> {
    let mut found = Vec::new();
    while let Some((one, unchanged, rest)) = next_listed(list) {
        found.extend(unchanged.then_some(one));
        list = rest;
    }
    found
}

/// The registers and stack of a call in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedStack {
    /// The time when the call was entered.
    pub start: Time,
    /// The thread that is in the call. Thread and start identify the [`ListedCall`] that the stack belongs to.
    pub tid: i32,
    /// The user-space registers, and the bytes above the stack pointer.
    pub memory: StackMemory,
}

/// Returns the stacks of a list, up to the first entry that cannot be decoded.
pub fn listed_stacks(mut list: &[u8]) -> Vec<ListedStack> {
    let mut found = Vec::new();
    while let Some((one, rest)) = next_stack(list) {
        found.push(one);
        list = rest;
    }
    found
}

fn next_stack(list: &[u8]) -> Option<(ListedStack, &[u8])> {
    let (head, rest) = list.split_first_chunk::<LISTED_STACK_BYTES>()?;
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
    let (start, ids, mask) = (word(0), word(8), word(16));
    let (stack, rest) = rest.split_at_checked(usize::try_from(word(LISTED_STACK_BYTES - 8)).ok()?)?;
    let registers = (mask.count_ones() as usize).min(LISTED_REGISTERS_MAX);
    let memory = StackMemory {
        is_wide: ids >> 32 == 2,
        mask,
        registers: head[LISTED_REGISTERS..LISTED_REGISTERS + 8 * registers].to_vec(),
        stack: stack.to_vec(),
    };
    Some((ListedStack { start: Time(start), tid: ids as i32, memory }, rest))
}

fn next_listed(list: &[u8]) -> Option<(ListedCall<'_>, bool, &[u8])> {
    let (head, rest) = list.split_first_chunk::<LISTED_BYTES>()?;
    let payload = usize::from(u16::from_le_bytes([*rest.get(PAYLOAD)?, *rest.get(PAYLOAD + 1)?]));
    let (call, rest) = rest.split_at_checked(CALL_BYTES + payload)?;
    let (unchanged, rest) = rest.split_first_chunk::<8>()?;
    let [time, ids] = [0, 8].map(|at| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default()));
    let task = TaskId { pid: ids as i32, tid: (ids >> 32) as i32 };
    Some((ListedCall { time: Time(time), task, call }, u64::from_le_bytes(*unchanged) == 1, rest))
}
