//! Socket options: what their value is, level and option tell (man 7 socket).

use super::super::memory::{Memory, Reader};
use super::super::row::{Struct, Table};
use super::super::tables::{constants, structs};
use super::super::value::{List, Value};

/// `optval` of getsockopt and setsockopt: a number in most cases, else bytes where the option is not known here.
pub fn sockopt<'a>(reader: &mut Reader<'a>, memory: Memory<'a>) -> Value<'a> {
    const SOL_SOCKET: u64 = 1;
    let [_, level, option, ..] = reader.call.args.unwrap_or_default();
    let option = if level & 0xffff_ffff == SOL_SOCKET { option & 0xffff_ffff } else { u64::MAX };
    if let Some(of) = structured(option) {
        return reader.structure(of, memory);
    }
    match memory.number(0, 4, true).filter(|_| memory.wanted == 4) {
        Some(number) => Value::Array(List { address: memory.address, items: vec![numeric(option, number)], more: false }),
        None => reader.text(memory, reader.context.string_limit, false),
    }
}

fn structured(option: u64) -> Option<&'static Struct> {
    Some(match option {
        13 => &structs::LINGER,
        17 => &structs::UCRED,
        20 | 21 => &structs::TIMEVAL,
        66 | 67 => &structs::KERNEL_TIMESPEC,
        _ => return None,
    })
}

fn numeric(option: u64, number: u64) -> Value<'static> {
    let symbol = |table: &'static Table| Value::Symbol { table, value: number & 0xffff_ffff };
    match option {
        3 => symbol(&constants::SOCKET_KIND),
        4 if number != 0 => symbol(&constants::ERRNO),
        38 => symbol(&constants::IP_PROTOCOL),
        39 => symbol(&constants::SOCKET_FAMILY),
        _ => Value::Int(number as i64),
    }
}
