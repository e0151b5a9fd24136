//! Decodes siginfo_t, the information about a signal. Its valid members depend on signal and code (man 2 sigaction).

use super::super::memory::{Memory, MemoryReader};
use super::super::row::Struct;
use super::super::tables::{constants, structs};
use super::super::value::{StructValue, Value};

/// Decodes a siginfo_t: signal, error and code, and the members that are valid for them.
pub fn siginfo<'a>(reader: &mut MemoryReader<'a>, memory: Memory<'a>) -> Value<'a> {
    let numbers = [0, 4, 8].map(|offset| memory.number(offset, 4, true).map(|number| number as i32));
    let record = |members, more| Value::Struct(StructValue { name: "siginfo", address: memory.address, members, more });
    let [Some(signo), Some(errno), Some(code)] = numbers else { return record(Vec::new(), true) };
    if (signo, errno, code) == (0, 0, 0) {
        // waitid with WNOHANG found no child whose state changed.
        return record(vec![("si_signo", Value::Signal(0))], false);
    }
    let mut members = vec![("si_signo", Value::Signal(signo))];
    if errno != 0 {
        members.push(("si_errno", error(errno)));
    }
    members.push(("si_code", Value::SignalCode { signal: signo, code }));
    let Some(of) = details(signo, code) else { return record(members, memory.is_cut()) };
    let (details, more) = reader.members(of, memory.first(of.sizes[reader.abi() as usize] as usize));
    members.extend(details);
    record(members, more)
}

/// Decodes the number of an error, which the sender of a signal may set to anything.
fn error(errno: i32) -> Value<'static> {
    let table = &constants::ERRNO;
    let value = u64::from(errno as u32);
    table.name(value).map_or(Value::Int(errno.into()), |_| Value::Symbol { table, value })
}

/// Returns the struct of the members that are valid for a signal and code (siginfo_layout in kernel/signal.c).
fn details(signo: i32, code: i32) -> Option<&'static Struct> {
    Some(match (code, signo) {
        (0 | -6, _) => &structs::SIGINFO_KILL,
        (-2, _) => &structs::SIGINFO_TIMER,
        (-1 | -3 | -4, _) => &structs::SIGINFO_QUEUE,
        (0x80, _) => return None,
        (1.., 17) => &structs::SIGINFO_CHILD,
        (4 | 5, 7) => &structs::SIGINFO_MACHINE_CHECK,
        (3, 11) => &structs::SIGINFO_BOUNDS,
        (4, 11) => &structs::SIGINFO_KEY,
        (6, 5) => &structs::SIGINFO_PERF,
        (1.., 4 | 5 | 7 | 8 | 11) => &structs::SIGINFO_FAULT,
        (1.., 29) | (-5, _) => &structs::SIGINFO_POLL,
        (1.., 31) => &structs::SIGINFO_SYS,
        _ => return None,
    })
}
