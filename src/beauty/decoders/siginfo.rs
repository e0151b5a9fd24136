//! What came with a signal: which members of siginfo_t hold anything, its signal and code tell (man 2 sigaction).

use super::super::memory::{Memory, Reader};
use super::super::row::Struct;
use super::super::signal;
use super::super::tables::structs;
use super::super::value::Value;

/// A siginfo_t: signal, error and code, and the members that these have.
pub fn siginfo<'a>(reader: &mut Reader<'a>, memory: Memory<'a>) -> Value<'a> {
    let numbers = [0, 4, 8].map(|offset| memory.number(offset, 4, true).map(|number| number as i32));
    let [Some(signo), Some(errno), Some(code)] = numbers else { return Value::Struct { members: Vec::new(), more: true } };
    let mut members =
        vec![("si_signo", Value::Signal(signo)), ("si_errno", Value::Int(errno.into())), ("si_code", named_code(signo, code))];
    if errno == 0 {
        members.remove(1);
    }
    let mut more = memory.is_cut();
    if let Some(of) = details(signo, code) {
        let bytes = of.sizes[reader.abi() as usize] as usize;
        match reader.structure(of, memory.first(bytes)) {
            Value::Struct { members: details, more: cut } => {
                members.extend(details);
                more = cut;
            }
            other => members.push(("si_value", other)),
        }
    }
    Value::Struct { members, more }
}

fn named_code(signo: i32, code: i32) -> Value<'static> {
    match signal::code_name(signo, code) {
        Some(name) => Value::Words { text: name.to_owned(), number: Some(code as u32 as u64) },
        None => Value::Int(code.into()),
    }
}

/// The struct that has the members which this signal and code fill in (kernel/signal.c, siginfo_layout).
fn details(signo: i32, code: i32) -> Option<&'static Struct> {
    Some(match (code, signo) {
        (0 | -6, _) => &structs::SIGINFO_KILL,
        (-2, _) => &structs::SIGINFO_TIMER,
        (-1 | -3 | -4, _) => &structs::SIGINFO_QUEUE,
        (0x80, _) => return None,
        (1.., 17) => &structs::SIGINFO_CHILD,
        (1.., 4 | 5 | 7 | 8 | 11) => &structs::SIGINFO_FAULT,
        (1.., 29) | (-5, _) => &structs::SIGINFO_POLL,
        (1.., 31) => &structs::SIGINFO_SYS,
        _ => return None,
    })
}
