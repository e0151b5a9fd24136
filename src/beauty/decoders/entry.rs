//! Decodes directory entries: consecutive structs of different lengths, each of which contains its length. In the brief
//! form, they are counted, and only the first ones are decoded.

use super::super::memory::{Memory, MemoryReader};
use super::super::sized_records::{DIRENT, DIRENT64, RecordHeader, Rest};
use super::super::structure::Members;
use super::super::tables::constants;
use super::super::value::{ArrayValue, StructValue, Value};

/// Decodes the entries that getdents64 writes (man 2 getdents).
pub fn dirents64<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    entries(reader, memory, &DIRENT64, |_, _| {})
}

/// Decodes the entries that getdents writes. The file type is the last byte of an entry, after the name.
pub fn dirents<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    entries(reader, memory, &DIRENT, |members, bytes| {
        if let Some(kind) = bytes.last() {
            members.push(("d_type", Value::Symbol { table: &constants::DIRENT_TYPE, value: u64::from(*kind) }));
        }
    })
}

/// Decodes the entries that were copied completely.
fn entries<'a>(
    reader: &mut MemoryReader<'a>,
    memory: Memory<'a>,
    header: &'static RecordHeader,
    finish: fn(&mut Members<'a>, &[u8]),
) -> Value<'a> {
    if reader.context.is_brief {
        return counted(reader, memory, header);
    }
    reader.records(header, memory, |reader, entry| {
        if entry.is_cut() {
            return None;
        }
        let (mut members, more) = reader.members(header.of, entry);
        finish(&mut members, entry.bytes);
        Some(Value::Struct(StructValue { name: header.of.name, address: entry.address, members, more }))
    })
}

/// Counts the entries, and decodes the members of the first ones that the row of the struct names (`brief=`).
fn counted<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>, header: &'static RecordHeader) -> Value<'a> {
    let first_max = u64::from(header.of.brief.elements).min(reader.elements_max() as u64);
    let mut count = 0;
    let mut items = Vec::new();
    let mut records = header.records(memory, reader.abi());
    for entry in records.by_ref().take_while(|entry| !entry.is_cut()) {
        if count < first_max && reader.spend_value() {
            items.extend(reader.members(header.of, entry).0.into_iter().map(|(_, value)| value));
        }
        count += 1;
    }
    let or_more = !matches!(records.rest(), Rest::Nothing) || memory.is_cut();
    let first = ArrayValue { address: memory.address, more: or_more || (items.len() as u64) < count, items };
    if count == 0 { Value::Array(first) } else { Value::Entries { count, or_more, first } }
}
