//! Decodes control messages, the ancillary data of sendmsg and recvmsg (man 3 cmsg).

use super::super::attribute::AttributeContent;
use super::super::memory::{Memory, MemoryReader};
use super::super::sized_records::CONTROL_MESSAGE;
use super::super::tables::{CONTROL_LEVELS, structs};
use super::super::value::{StructValue, Value};

/// Decodes all control messages. Each begins with a header (`struct cmsghdr`), which contains the length of header and
/// data.
pub fn control_messages<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    reader.records(&CONTROL_MESSAGE, memory, |reader, message| Some(control_message(reader, message)))
}

/// Decodes one control message. Level and type determine the data.
pub fn control_message<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let head = structs::CMSGHDR.sizes[reader.abi() as usize] as usize;
    let [level, number] = [8, 4].map(|before| memory.number(head - before, 4, false).map(|number| number as u32));
    let set = CONTROL_LEVELS.iter().find(|(known, _)| Some(*known) == level).map(|(_, set)| *set);
    let (mut members, mut more) = reader.members(&structs::CMSGHDR, memory.first(head));
    if let (Some(set), Some(number)) = (set, number) {
        let named = members.iter_mut().filter(|(name, _)| *name == "cmsg_type");
        named.for_each(|(_, value)| *value = Value::Symbol { table: set.table.in_abi(reader.abi()), value: number.into() });
    }
    if memory.wanted > head as u64 {
        let length = usize::try_from(memory.wanted).unwrap_or(usize::MAX) - head;
        let data = memory.part(head, length).filter(|_| reader.spend_value());
        let content = number.and_then(|number| set?.content(number, |_| None));
        match (data, content) {
            (Some(data), Some(AttributeContent::Memory(of))) => members.push(("cmsg_data", reader.attribute_memory(of, data, false))),
            (Some(data), _) => members.push(("cmsg_data", reader.text(data, reader.context.string_limit, false))),
            (None, _) => more = true,
        }
    }
    Value::Struct(StructValue { name: "cmsghdr", address: memory.address, members, more })
}
