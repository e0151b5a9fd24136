//! Decodes numbers, in a register or in memory, that do not point to memory.

use super::decode::Context;
use super::row::{ArgumentKind, ConstantTable, TableKind};
use super::value::Value;
use crate::event::{Abi, Port};

/// Decodes a number of a kind. Returns `None` for kinds that point to memory. `raw` is extended from the width and sign
/// that the kind has in the ABI.
#[inline]
pub fn scalar<'a>(kind: &ArgumentKind, raw: u64, abi: Abi, context: Context<'a>) -> Option<Value<'a>> {
    Some(match kind {
        ArgumentKind::Int => Value::Int(i64::from(raw as i32)),
        ArgumentKind::Uint => Value::Uint(u64::from(raw as u32)),
        ArgumentKind::Long | ArgumentKind::Offset | ArgumentKind::Loff => Value::Int(raw as i64),
        ArgumentKind::Ulong | ArgumentKind::Size => Value::Uint(raw),
        ArgumentKind::Hex => Value::Hex(raw),
        ArgumentKind::Fd => Value::Fd { fd: raw as i32, file: None },
        ArgumentKind::DirFd => Value::DirFd { fd: raw as i32, file: None },
        ArgumentKind::Pid => pid(raw as i32, context),
        ArgumentKind::Uid | ArgumentKind::Gid => id(raw as u32),
        ArgumentKind::Signal => Value::Signal(raw as i32),
        ArgumentKind::Mode => Value::Octal(u64::from(raw as u16)),
        ArgumentKind::Dev => device(raw as u32),
        ArgumentKind::Port => Value::Port(Port(raw as u32)),
        ArgumentKind::Address => Value::Address(raw),
        ArgumentKind::Table(table) => register_constants(table, raw, abi),
        ArgumentKind::Custom(decode, _) => decode(&[raw, 0, 0, 0, 0, 0], 0, abi),
        ArgumentKind::Path
        | ArgumentKind::Str
        | ArgumentKind::Bytes
        | ArgumentKind::StrArray
        | ArgumentKind::Struct(_)
        | ArgumentKind::StructArray(_)
        | ArgumentKind::Number { .. }
        | ArgumentKind::Pointer => {
            return None;
        }
    })
}

/// Decodes a pid with the comm of the task, if it is known.
pub fn pid<'a>(pid: i32, context: Context<'a>) -> Value<'a> {
    let task = context.pids.task(pid).filter(|_| pid > 0);
    Value::Pid { pid, translated: task.filter(|task| *task != pid), comm: task.and_then(context.comm) }
}

/// Decodes a register with constants of a table. Bits beyond [`ConstantTable::bits`] are ignored, as the kernel does.
pub fn register_constants(table: &'static ConstantTable, raw: u64, abi: Abi) -> Value<'static> {
    let value = if table.bits == 32 { u64::from(raw as u32) } else { raw };
    memory_constants(table, value, abi)
}

/// Decodes a number in memory with constants of a table. The kernel reads all bits of such a number, even if there are
/// more than [`ConstantTable::bits`].
pub fn memory_constants(table: &'static ConstantTable, value: u64, abi: Abi) -> Value<'static> {
    let table = table.in_abi(abi);
    match table.kind {
        TableKind::Flags => Value::Flags { table, bits: value },
        TableKind::Enum => Value::Symbol { table, value },
    }
}

/// Decodes a user or group ID. All bits set is -1, which means "do not change" or "no ID".
pub fn id(id: u32) -> Value<'static> {
    if id == u32::MAX { Value::Int(-1) } else { Value::Uint(u64::from(id)) }
}

/// Decodes a device number in the 32-bit encoding of user space (`new_decode_dev` of the kernel).
pub fn device(dev: u32) -> Value<'static> {
    Value::Dev { major: dev >> 8 & 0xfff, minor: dev & 0xff | dev >> 12 & 0xf_ff00 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_split_into_major_and_minor() {
        assert_eq!(device(0x0801), Value::Dev { major: 8, minor: 1 });
        assert_eq!(device(0xfff0_0fff), Value::Dev { major: 0xf, minor: 0x000f_ffff });
    }
}
