//! Decodes directory entries: consecutive structs of different lengths, each of which contains its length. In the brief
//! form, they are counted, and only the first ones are decoded.

use super::super::memory::{Memory, MemoryReader};
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
    if reader.context.is_brief {
        return counted(reader, memory, of, length_at);
    }
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(entry) = entry_at(at, memory, of.sizes[reader.abi() as usize], length_at) {
        if items.len() == reader.elements_max() || !reader.spend_value() {
            break;
        }
        let (mut members, more) = reader.members(of, entry);
        finish(&mut members, entry.bytes);
        items.push(Value::Struct(StructValue { name: of.name, address: entry.address, members, more }));
        at += entry.bytes.len();
    }
    Value::Array(ArrayValue { address: memory.address, items, more: at < memory.bytes.len() || memory.is_cut() })
}

/// Returns the entry at an offset, if it was copied completely. An entry is at least as long as its fixed part; a
/// shorter length would make the entries overlap.
fn entry_at<'a>(at: usize, memory: Memory<'a>, fixed: u32, length_at: usize) -> Option<Memory<'a>> {
    let length = memory.number(at.checked_add(length_at)?, 2, false)? as usize;
    let entry = memory.part(at, length).filter(|entry| entry.bytes.len() == length)?;
    (length >= fixed as usize).then_some(entry)
}

/// Counts the entries, and decodes the members of the first ones that the row of the struct names (`brief=`).
fn counted<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>, of: &'static Struct, length_at: usize) -> Value<'a> {
    let first_max = u64::from(of.brief.elements).min(reader.elements_max() as u64);
    let (mut count, mut at) = (0, 0);
    let mut items = Vec::new();
    while let Some(entry) = entry_at(at, memory, of.sizes[reader.abi() as usize], length_at) {
        if count < first_max && reader.spend_value() {
            items.extend(reader.members(of, entry).0.into_iter().map(|(_, value)| value));
        }
        count += 1;
        at += entry.bytes.len();
    }
    let or_more = at < memory.bytes.len() || memory.is_cut();
    let first = ArrayValue { address: memory.address, more: or_more || (items.len() as u64) < count, items };
    if count == 0 { Value::Array(first) } else { Value::Entries { count, or_more, first } }
}
