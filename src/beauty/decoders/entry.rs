//! Decodes directory entries: consecutive structs of different lengths, each of which contains its length.

use super::super::memory::{ELEMENTS_MAX, Memory, MemoryReader};
use super::super::row::Struct;
use super::super::structure::Members;
use super::super::tables::{constants, structs};
use super::super::value::{ArrayValue, StructValue, Value};

/// Decodes the entries that getdents64 writes (man 2 getdents).
pub fn dirents64<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    entries(reader, memory, &structs::DIRENT64, 16, |_, _| {})
}

/// Decodes the entries that getdents writes. The file type is the last byte of an entry, after the name.
pub fn dirents<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let length_at = structs::DIRENT.sizes[reader.abi() as usize] as usize - 2;
    entries(reader, memory, &structs::DIRENT, length_at, |members, bytes| {
        if let Some(kind) = bytes.last() {
            members.push(("d_type", Value::Symbol { table: &constants::DIRENT_TYPE, value: u64::from(*kind) }));
        }
    })
}

fn entries<'a>(
    reader: &mut MemoryReader<'a>,
    memory: Memory<'a>,
    of: &'static Struct,
    length_at: usize,
    finish: fn(&mut Members<'a>, &[u8]),
) -> Value<'a> {
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(length) = memory.number(at + length_at, 2, false).map(|length| length as usize) {
        // An entry is at least as long as its fixed part; a shorter length would make the entries overlap.
        if length < of.sizes[reader.abi() as usize] as usize || items.len() == ELEMENTS_MAX {
            break;
        }
        let Some(entry) = memory.part(at, length).filter(|entry| entry.bytes.len() == length && reader.spend_value()) else { break };
        let (mut members, more) = reader.members(of, entry);
        finish(&mut members, entry.bytes);
        items.push(Value::Struct(StructValue { name: of.name, address: entry.address, members, more }));
        at += length;
    }
    Value::Array(ArrayValue { address: memory.address, items, more: at < memory.bytes.len() || memory.is_cut() })
}
