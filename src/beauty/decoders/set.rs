//! Sets that are bits or bytes in memory: signals, descriptors, CPUs, memory nodes, pages.

use super::super::memory::{ELEMENTS_MAX, Memory, Reader};
use super::super::value::{List, Value};

/// A kernel sigset_t: signal N is bit N-1. A set of nearly all is told by what it lacks.
pub fn sigset<'a>(_: &mut Reader<'a>, memory: Memory<'a>) -> Value<'a> {
    const BYTES: usize = 8;
    let mut word = [0; BYTES];
    let whole = memory.bytes.len() >= BYTES;
    for (byte, copied) in word.iter_mut().zip(memory.bytes) {
        *byte = *copied;
    }
    let set = u64::from_le_bytes(word);
    if whole && set.count_ones() > u64::BITS / 2 {
        return Value::AllBut(List { address: memory.address, items: signals(!set), more: false });
    }
    Value::Array(List { address: memory.address, items: signals(set), more: memory.is_cut() })
}

fn signals(mut set: u64) -> Vec<Value<'static>> {
    let mut items = Vec::with_capacity(set.count_ones() as usize);
    while set != 0 {
        items.push(Value::Signal(set.trailing_zeros() as i32 + 1));
        set &= set - 1;
    }
    items
}

/// An fd_set, whose length is counted in bits: descriptors.
pub fn fd_set<'a>(_: &mut Reader<'a>, memory: Memory<'a>) -> Value<'a> {
    numbers(memory, memory.count)
}

/// A cpumask: CPUs by number.
pub fn cpumask<'a>(_: &mut Reader<'a>, memory: Memory<'a>) -> Value<'a> {
    numbers(memory, None)
}

/// A node mask, whose length is counted in bits, one too many (man 2 set_mempolicy).
pub fn nodemask<'a>(_: &mut Reader<'a>, memory: Memory<'a>) -> Value<'a> {
    numbers(memory, memory.count.map(|bits| bits.saturating_sub(1)))
}

/// What mincore writes: a byte a page, of which the lowest bit says that the page is in memory.
pub fn page_bytes<'a>(_: &mut Reader<'a>, memory: Memory<'a>) -> Value<'a> {
    let items: Vec<Value> = memory.bytes.iter().take(ELEMENTS_MAX).map(|byte| Value::Uint(u64::from(*byte))).collect();
    Value::Array(List { address: memory.address, more: items.len() < memory.bytes.len() || memory.is_cut(), items })
}

/// The numbers of the bits that are set, below `end`.
fn numbers<'a>(memory: Memory<'a>, end: Option<u64>) -> Value<'a> {
    let bits = memory.bytes.len() * 8;
    let end = end.map_or(bits, |end| usize::try_from(end).map_or(bits, |end| end.min(bits)));
    let mut set = (0..end).filter(|bit| is_set(memory.bytes, *bit));
    let items: Vec<Value> = set.by_ref().take(ELEMENTS_MAX).map(|bit| Value::Uint(bit as u64)).collect();
    Value::Array(List { address: memory.address, items, more: set.next().is_some() || memory.is_cut() })
}

/// The words of a set have the machine's order, which is little-endian in all ABIs here: so have its bytes.
fn is_set(bytes: &[u8], bit: usize) -> bool {
    bytes.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
}
