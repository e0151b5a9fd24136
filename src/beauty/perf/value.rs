//! One value in perf's style: constants without their prefix, modes in octal, whole addresses.

use super::super::table::Part;
use super::super::tables::constants::{FILE_TYPE, PTRACE_EVENT};
use super::super::value::{List, Record, StateChange, Text, Value, WaitStatus, file_mode};
use super::super::{file, signal};
use crate::event::File;
use crate::text::{escape, number};

/// The descriptor that stands for the current directory.
const AT_FDCWD: i32 = -100;

/// Appends the value; `prefixes` keeps what all names of a table begin with (`O_CREAT`, `SIGINT`).
pub fn write(out: &mut Vec<u8>, value: &Value, prefixes: bool) {
    match value {
        Value::Int(value) => number::int(out, *value),
        Value::Uint(value) => number::uint(out, *value),
        Value::Hex(value) => number::hex(out, *value),
        Value::Octal(value) => number::octal(out, *value),
        Value::Address(0) | Value::Unread(0) => out.extend_from_slice(b"NULL"),
        Value::Address(address) | Value::Unread(address) | Value::Code(address) => number::hex(out, *address),
        Value::Flags { table, bits } => {
            for (i, part) in table.flags(*bits).enumerate() {
                if i > 0 {
                    out.push(b'|');
                }
                match part {
                    Part::Constant { table, name } => constant(out, name, table.short(name), prefixes),
                    Part::Rest(rest) => number::hex(out, rest),
                }
            }
        }
        Value::Symbol { table, value } => match table.name(*value) {
            Some(name) => constant(out, name, table.short(name), prefixes),
            None => number::hex(out, *value),
        },
        Value::DirFd { fd: AT_FDCWD, file } => {
            constant(out, "AT_FDCWD", "CWD", prefixes);
            of_file(out, *file);
        }
        Value::Fd { fd, file } | Value::DirFd { fd, file } => {
            number::int(out, i64::from(*fd));
            of_file(out, *file);
        }
        Value::Pid { pid, here, comm } => {
            number::int(out, i64::from(*pid));
            of_task(out, *here, comm.as_deref());
        }
        Value::Id { id, here } => {
            number::uint(out, u64::from(*id));
            out.extend_from_slice(b" (here ");
            number::uint(out, u64::from(*here));
            out.push(b')');
        }
        Value::Signal(signal) => {
            let begin = out.len();
            signal::write_name(out, *signal);
            if !prefixes && out[begin..].starts_with(b"SIG") {
                out.drain(begin..begin + 3);
            }
        }
        Value::Dev { major, minor } => {
            number::uint(out, u64::from(*major));
            out.push(b':');
            number::uint(out, u64::from(*minor));
        }
        Value::Str(Text { bytes, cut, altered, .. }) => {
            if *altered {
                out.push(b'~');
            }
            escape::quoted(out, bytes);
            if *cut {
                out.extend_from_slice(b"...");
            }
        }
        Value::Ip(address) => out.extend_from_slice(address.to_string().as_bytes()),
        Value::SignalCode { signal: of, code } => match signal::code_name(*of, *code) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => number::int(out, i64::from(*code)),
        },
        Value::WaitStatus(status) => wait_status(out, *status, prefixes),
        Value::Formatted { text, .. } => escape::plain(out, text.as_bytes()),
        Value::Uncopied { count, or_more, .. } => {
            out.push(b'[');
            number::uint(out, *count);
            out.extend_from_slice(if *or_more { b" or more" } else { b"" });
            out.extend_from_slice(if *count == 1 { b" string]" } else { b" strings]" });
        }
        Value::FileMode(mode) => of_mode(out, *mode, prefixes),
        Value::Struct(Record { members, more, .. }) => structure(out, members, *more, prefixes),
        Value::Packed { members, .. } => structure(out, members, false, prefixes),
        Value::Array(List { items, more, .. }) => array(out, items, *more, prefixes),
        Value::AllBut(List { items, more, .. }) => {
            out.push(b'~');
            array(out, items, *more, prefixes);
        }
        Value::Unknown => out.push(b'?'),
    }
}

/// Whether a tracepoint's field is zero, which perf's layout leaves out. A descriptor 0 and a zero with a name say something.
pub fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Int(0) | Value::Uint(0) | Value::Hex(0) | Value::Octal(0) | Value::Address(0) | Value::Unread(0) | Value::Code(0) => true,
        Value::Signal(0) | Value::Pid { pid: 0, .. } | Value::Dev { major: 0, minor: 0 } => true,
        Value::Flags { table, bits: 0 } | Value::Symbol { table, value: 0 } => !table.names_zero(),
        _ => false,
    }
}

fn constant(out: &mut Vec<u8>, name: &'static str, short: &'static str, prefixes: bool) {
    out.extend_from_slice(if prefixes { name } else { short }.as_bytes());
}

/// What is known of a task beside the number in the call: ` (sleep)`, or ` (sleep, here 31245)`.
fn of_task(out: &mut Vec<u8>, here: Option<i32>, comm: Option<&[u8]>) {
    if here.is_none() && comm.is_none() {
        return;
    }
    out.extend_from_slice(b" (");
    if let Some(comm) = comm {
        escape::plain(out, comm);
    }
    if let Some(here) = here {
        out.extend_from_slice(if comm.is_some() { b", here " } else { b"here " });
        number::int(out, i64::from(here));
    }
    out.push(b')');
}

fn of_file(out: &mut Vec<u8>, file: Option<&File>) {
    match file {
        Some(File::Path(path)) => escape::bracketed(out, path),
        Some(file) => escape::bracketed(out, &file::name(file)),
        None => {}
    }
}

/// `IFREG|0644`
fn of_mode(out: &mut Vec<u8>, mode: u32, prefixes: bool) {
    let (kind, permissions) = file_mode(mode);
    if let Some(name) = kind {
        constant(out, name, FILE_TYPE.short(name), prefixes);
        out.push(b'|');
    }
    number::octal(out, u64::from(permissions));
}

/// `{.exited: 0}`
fn wait_status(out: &mut Vec<u8>, status: WaitStatus, prefixes: bool) {
    let event = |event: u32| Value::Symbol { table: &PTRACE_EVENT, value: u64::from(event) };
    let (first, second) = match status.change {
        StateChange::Continued => (("continued", Value::Int(1)), None),
        StateChange::Exited { status } => (("exited", Value::Uint(status.into())), None),
        StateChange::Stopped { signal, event: at } => (("stopped", Value::Signal(signal)), at.map(|at| ("event", event(at)))),
        StateChange::Killed { signal, dumped } => (("killed", Value::Signal(signal)), dumped.then_some(("dumped", Value::Int(1)))),
    };
    out.push(b'{');
    for (i, (name, value)) in std::iter::once(first).chain(second).enumerate() {
        member(out, i, name);
        write(out, &value, prefixes);
    }
    out.push(b'}');
}

fn structure(out: &mut Vec<u8>, members: &[(&'static str, Value)], more: bool, prefixes: bool) {
    out.push(b'{');
    for (i, (name, value)) in members.iter().enumerate() {
        member(out, i, name);
        write(out, value, prefixes);
    }
    close(out, members.is_empty(), more, b'}');
}

/// What stands before the value of a struct's member, of which `i` stand before it.
#[inline]
pub(super) fn member(out: &mut Vec<u8>, i: usize, name: &str) {
    out.extend_from_slice(if i > 0 { b", ." } else { b"." });
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
}

fn array(out: &mut Vec<u8>, items: &[Value], more: bool, prefixes: bool) {
    out.push(b'[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        write(out, item, prefixes);
    }
    close(out, items.is_empty(), more, b']');
}

pub(super) fn close(out: &mut Vec<u8>, empty: bool, more: bool, bracket: u8) {
    if more {
        out.extend_from_slice(if empty { b"..." } else { b", ..." });
    }
    out.push(bracket);
}
