//! Decodes struct sigevent, the notification method of a timer or a message queue (man 7 sigevent).

use super::super::memory::{Memory, MemoryReader};
use super::super::tables::structs;
use super::super::value::{StructValue, Value};

/// Decodes a struct sigevent. Only SIGEV_THREAD_ID uses the member with the thread ID.
pub fn sigevent<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    const SIGEV_THREAD_ID: u64 = 4;
    let [head, thread] = [&structs::SIGEVENT_HEAD, &structs::SIGEVENT_THREAD].map(|of| of.sizes[reader.abi() as usize] as usize);
    let (mut members, mut more) = reader.members(&structs::SIGEVENT_HEAD, memory.first(head));
    if memory.number(head - 4, 4, false) == Some(SIGEV_THREAD_ID) {
        let (of_thread, cut) = reader.members(&structs::SIGEVENT_THREAD, memory.first(thread));
        members.extend(of_thread);
        more = cut;
    }
    Value::Struct(StructValue { name: "sigevent", address: memory.address, members, more })
}
