//! Decodes sets that are bits or bytes in memory: signals, descriptors, CPUs, memory nodes, pages.

use super::super::memory::{Memory, MemoryReader};
use super::super::row::ConstantTable;
use super::super::tables::constants;
use super::super::value::{ArrayValue, Value};

/// Decodes a sigset_t of the kernel, in which bit N-1 is signal N. If more than half of the bits are set, the value is
/// the complement.
pub fn sigset<'a>(_: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    const BYTES: usize = 8;
    let mut word = [0; BYTES];
    let whole = memory.bytes.len() >= BYTES;
    for (byte, copied) in word.iter_mut().zip(memory.bytes) {
        *byte = *copied;
    }
    let set = u64::from_le_bytes(word);
    if whole && set.count_ones() > u64::BITS / 2 {
        return Value::AllBut(ArrayValue { address: memory.address, items: signals(!set), more: false });
    }
    Value::Array(ArrayValue { address: memory.address, items: signals(set), more: memory.is_cut() })
}

fn signals(mut set: u64) -> Vec<Value<'static>> {
    let mut items = Vec::with_capacity(set.count_ones() as usize);
    while set != 0 {
        items.push(Value::Signal(set.trailing_zeros() as i32 + 1));
        set &= set - 1;
    }
    items
}

/// Decodes an fd_set to the numbers of its descriptors. Its length is in bits.
pub fn fd_set<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    numbers(reader, memory, memory.count)
}

/// Decodes a cpumask to the numbers of its CPUs.
pub fn cpumask<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    numbers(reader, memory, None)
}

/// Decodes a mask of memory nodes to their numbers. Its length is the number of bits plus one (man 2 set_mempolicy).
pub fn nodemask<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    numbers(reader, memory, memory.count.map(|bits| bits.saturating_sub(1)))
}

/// Decodes the result of mincore: one byte for each page, whose lowest bit is set if the page is in memory.
pub fn page_bytes<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let items: Vec<Value> = memory.bytes.iter().take(reader.elements_max()).map(|byte| Value::Uint(u64::from(*byte))).collect();
    Value::Array(ArrayValue { address: memory.address, more: items.len() < memory.bytes.len() || memory.is_cut(), items })
}

/// Returns the numbers of the set bits below `end`, at most as many as the context permits.
fn numbers<'a>(reader: &MemoryReader<'a>, memory: Memory<'a>, end: Option<u64>) -> Value<'a> {
    let bits = memory.bytes.len() * 8;
    let end = end.map_or(bits, |end| usize::try_from(end).map_or(bits, |end| end.min(bits)));
    set_bits(reader, memory, end, Value::Uint)
}

/// Returns the values of the set bits below `end`, at most as many as the context permits.
fn set_bits<'a>(reader: &MemoryReader<'a>, memory: Memory<'a>, end: usize, value: impl Fn(u64) -> Value<'a>) -> Value<'a> {
    let mut set = (0..end).filter(|bit| is_set(memory.bytes, *bit));
    let items: Vec<Value> = set.by_ref().take(reader.elements_max()).map(|bit| value(bit as u64)).collect();
    Value::Array(ArrayValue { address: memory.address, items, more: set.next().is_some() || memory.is_cut() })
}

/// Returns whether a bit is set. All supported ABIs are little-endian, so bit N of a set of words is bit N % 8 of byte
/// N / 8.
fn is_set(bytes: &[u8], bit: usize) -> bool {
    bytes.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
}

/// Decodes the bits of an input device to the names of their numbers (struct input_dev in linux/input.h).
fn named<'a>(reader: &MemoryReader<'a>, memory: Memory<'a>, table: &'static ConstantTable) -> Value<'a> {
    set_bits(reader, memory, memory.bytes.len() * 8, |value| Value::Symbol { table, value })
}

/// Decodes the types of events that an input device has.
pub fn input_event_types<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    named(reader, memory, &constants::INPUT_EVENT_TYPE)
}

/// Decodes keys and buttons.
pub fn input_keys<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    named(reader, memory, &constants::INPUT_KEY)
}

/// Decodes relative axes.
pub fn input_relative_axes<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    named(reader, memory, &constants::INPUT_RELATIVE_AXIS)
}

/// Decodes absolute axes.
pub fn input_absolute_axes<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    named(reader, memory, &constants::INPUT_ABSOLUTE_AXIS)
}

/// Decodes miscellaneous events.
pub fn input_miscellaneous<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    named(reader, memory, &constants::INPUT_MISCELLANEOUS)
}

/// Decodes LEDs.
pub fn input_leds<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    named(reader, memory, &constants::INPUT_LED)
}

/// Decodes sounds.
pub fn input_sounds<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    named(reader, memory, &constants::INPUT_SOUND)
}

/// Decodes switches.
pub fn input_switches<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    named(reader, memory, &constants::INPUT_SWITCH)
}

/// Decodes effects of force feedback.
pub fn input_effects<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    named(reader, memory, &constants::INPUT_EFFECT)
}

/// Decodes properties of input devices.
pub fn input_properties<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    named(reader, memory, &constants::INPUT_PROPERTY)
}
