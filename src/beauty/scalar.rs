//! What a register, or a number in memory, means by itself.

use super::decode::Context;
use super::row::{Kind, Table, TableKind};
use super::value::Value;
use crate::event::Abi;

/// The value of a kind that is in the number itself; `None` for those that point to memory. `raw` is as wide as the ABI and the kind have it, with its sign.
#[inline]
pub fn scalar<'a>(kind: &Kind, raw: u64, abi: Abi, context: Context<'a>) -> Option<Value<'a>> {
    Some(match kind {
        Kind::Int => Value::Int(i64::from(raw as i32)),
        Kind::Uint => Value::Uint(u64::from(raw as u32)),
        Kind::Long | Kind::Offset | Kind::Loff => Value::Int(raw as i64),
        Kind::Ulong | Kind::Size => Value::Uint(raw),
        Kind::Hex => Value::Hex(raw),
        Kind::Fd => Value::Fd { fd: raw as i32, file: None },
        Kind::DirFd => Value::DirFd { fd: raw as i32, file: None },
        Kind::Pid => pid(raw as i32, context),
        Kind::Uid | Kind::Gid => id(raw as u32),
        Kind::Signal => Value::Signal(raw as i32),
        Kind::Mode => Value::Octal(u64::from(raw as u16)),
        Kind::Dev => device(raw as u32),
        Kind::Address => Value::Address(raw),
        Kind::Table(table) => constants(table, raw, abi),
        Kind::Custom(decode, _) => decode(&[raw, 0, 0, 0, 0, 0], 0, abi),
        Kind::Path
        | Kind::Str
        | Kind::Bytes
        | Kind::StrArray
        | Kind::Struct(_)
        | Kind::StructArray(_)
        | Kind::Number { .. }
        | Kind::Pointer => {
            return None;
        }
    })
}

pub fn pid<'a>(pid: i32, context: Context<'a>) -> Value<'a> {
    let task = context.numbers.task(pid).filter(|_| pid > 0);
    Value::Pid { pid, here: task.filter(|task| *task != pid), comm: task.and_then(context.comm) }
}

pub fn constants(table: &'static Table, raw: u64, abi: Abi) -> Value<'static> {
    let value = if table.bits == 32 { u64::from(raw as u32) } else { raw };
    whole(table, value, abi)
}

/// Constants in memory, where the kernel looks at all bits that there are, more than the table's perhaps.
pub fn whole(table: &'static Table, value: u64, abi: Abi) -> Value<'static> {
    let table = table.in_abi(abi);
    match table.kind {
        TableKind::Flags => Value::Flags { table, bits: value },
        TableKind::Enum => Value::Symbol { table, value },
    }
}

/// A user or group; all ones means "leave as it is", or nobody.
pub fn id(id: u32) -> Value<'static> {
    if id == u32::MAX { Value::Int(-1) } else { Value::Uint(u64::from(id)) }
}

/// The 32 bits in which user space has a device number (`new_decode_dev`).
pub fn device(dev: u32) -> Value<'static> {
    Value::Dev { major: dev >> 8 & 0xfff, minor: dev & 0xff | dev >> 12 & 0xf_ff00 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_taken_apart() {
        assert_eq!(device(0x0801), Value::Dev { major: 8, minor: 1 });
        assert_eq!(device(0xfff0_0fff), Value::Dev { major: 0xf, minor: 0x000f_ffff });
    }
}
