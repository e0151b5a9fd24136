//! How a timer or a queue tells that something happened (man 7 sigevent).

use super::super::memory::{Memory, Reader};
use super::super::tables::structs;
use super::super::value::{Record, Value};

/// A struct sigevent: the thread is named only where this way of telling has one.
pub fn sigevent<'a>(reader: &mut Reader<'a>, memory: Memory<'a>) -> Value<'a> {
    const SIGEV_THREAD_ID: u64 = 4;
    let [head, thread] = [&structs::SIGEVENT_HEAD, &structs::SIGEVENT_THREAD].map(|of| of.sizes[reader.abi() as usize] as usize);
    let (mut members, mut more) = reader.members(&structs::SIGEVENT_HEAD, memory.first(head));
    if memory.number(head - 4, 4, false) == Some(SIGEV_THREAD_ID) {
        let (of_thread, cut) = reader.members(&structs::SIGEVENT_THREAD, memory.first(thread));
        members.extend(of_thread);
        more = cut;
    }
    Value::Struct(Record { name: "sigevent", address: memory.address, members, more })
}
