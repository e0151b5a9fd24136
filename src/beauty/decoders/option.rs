//! Decodes the values of socket options, whose type depends on level and option (man 7 socket).

use super::super::memory::{Memory, MemoryReader};
use super::super::row::{ConstantTable, Struct};
use super::super::tables::{constants, structs};
use super::super::value::{ArrayValue, Value};

/// Decodes `optval` of getsockopt and setsockopt: the struct of a known option, otherwise a number if it has 4 bytes,
/// and bytes if not.
pub fn sockopt<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let [_, level, option, ..] = reader.call.args.unwrap_or_default();
    let option = if level as i32 == libc::SOL_SOCKET { Some(option as i32) } else { None };
    if let Some(of) = option.and_then(structured) {
        return reader.structure(of, memory);
    }
    match memory.number(0, 4, true).filter(|_| memory.wanted == 4) {
        Some(number) => Value::Array(ArrayValue { address: memory.address, items: vec![numeric(option, number)], more: false }),
        None => reader.text(memory, reader.context.string_limit, false),
    }
}

fn structured(option: i32) -> Option<&'static Struct> {
    Some(match option {
        libc::SO_LINGER => &structs::LINGER,
        libc::SO_PEERCRED => &structs::UCRED,
        // C libraries define these with the numbers of SO_RCVTIMEO_OLD and SO_SNDTIMEO_OLD.
        libc::SO_RCVTIMEO | libc::SO_SNDTIMEO => &structs::TIMEVAL,
        libc::SO_RCVTIMEO_NEW | libc::SO_SNDTIMEO_NEW => &structs::KERNEL_TIMESPEC,
        _ => return None,
    })
}

fn numeric(option: Option<i32>, number: u64) -> Value<'static> {
    let symbol = |table: &'static ConstantTable| Value::Symbol { table, value: number & 0xffff_ffff };
    match option {
        Some(libc::SO_TYPE) => symbol(&constants::SOCKET_KIND),
        Some(libc::SO_ERROR) if number != 0 => symbol(&constants::ERRNO),
        Some(libc::SO_PROTOCOL) => symbol(&constants::IP_PROTOCOL),
        Some(libc::SO_DOMAIN) => symbol(&constants::SOCKET_FAMILY),
        _ => Value::Int(number as i64),
    }
}
