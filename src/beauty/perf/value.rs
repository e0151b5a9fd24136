//! Prints a value in perf's style: constants without their prefix, modes in octal, addresses in full.

use super::super::row::ConstantTable;
use super::super::table::FlagPart;
use super::super::tables::constants::{FILE_TYPE, PTRACE_EVENT};
use super::super::value::{ArrayValue, StateChange, StructValue, Text, Value, WaitStatus, file_mode};
use super::super::{errno, file, signal};
use crate::event::File;
use crate::text::{escape, number};
use std::io::Write;

/// The value of `dfd` that stands for the current directory (openat(2)).
const AT_FDCWD: i32 = -100;

/// Appends a value. `prefixes` keeps the common prefix of a table's names (`O_CREAT`, `SIGINT`).
pub fn write(out: &mut Vec<u8>, value: &Value, prefixes: bool) {
    match value {
        Value::Int(value) => number::int(out, *value),
        Value::Uint(value) => number::uint(out, *value),
        Value::Hex(value) => number::hex(out, *value),
        Value::Octal(value) => number::octal(out, *value),
        Value::Address(0) | Value::Unread(0) => out.extend_from_slice(b"NULL"),
        Value::Address(address) | Value::Unread(address) | Value::Code(address) => number::hex(out, *address),
        Value::Flags { table, bits } => flags(out, table, *bits, prefixes),
        Value::Symbol { table, value } => match table.name(*value) {
            Some(name) => constant(out, name, table.short(name), prefixes),
            None => number::hex(out, *value),
        },
        Value::Macro { name, parameters, .. } => write_macro(out, name, parameters, prefixes),
        Value::DirFd { fd: AT_FDCWD, file } => {
            constant(out, "AT_FDCWD", "CWD", prefixes);
            write_file(out, *file);
        }
        Value::Fd { fd, file } | Value::DirFd { fd, file } => {
            number::int(out, i64::from(*fd));
            write_file(out, *file);
        }
        Value::Pid { pid, translated, comm } => {
            number::int(out, i64::from(*pid));
            write_task(out, *translated, comm.as_deref());
        }
        Value::Id { id, initial } => {
            number::uint(out, u64::from(*id));
            out.extend_from_slice(b" (here ");
            number::uint(out, u64::from(*initial));
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
        Value::Str(text) => string(out, text),
        // Writing to a Vec does not fail.
        Value::Ip(address) => _ = write!(out, "{address}"),
        Value::Port(port) => number::uint(out, u64::from(port.0)),
        Value::SignalCode { signal: of, code } => match signal::code_name(*of, *code) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => number::int(out, i64::from(*code)),
        },
        Value::WaitStatus(status) => wait_status(out, *status, prefixes),
        Value::SocketAddress(address) => _ = write!(out, "{address}"),
        Value::Named(named) => escape::plain(out, named.to_string().as_bytes()),
        Value::Char(byte) if byte.is_ascii() => escape::plain(out, &[b'\'', *byte, b'\'']),
        Value::Char(byte) => number::hex(out, u64::from(*byte)),
        Value::Bytes(field) => {
            _ = write!(out, "{field}");
            out.extend_from_slice(if field.more { b"..." } else { b"" });
        }
        Value::UnreadText => out.extend_from_slice(b"(fault)"),
        Value::Uncopied { count, or_more, .. } => write_uncopied(out, *count, *or_more),
        Value::FileMode(mode) => write_mode(out, *mode, prefixes),
        Value::Struct(StructValue { members, more, .. }) => structure(out, members, *more, prefixes),
        Value::Packed { members, .. } => structure(out, members, false, prefixes),
        Value::Array(ArrayValue { items, more, .. }) => array(out, items, *more, prefixes),
        Value::AllBut(ArrayValue { items, more, .. }) => {
            out.push(b'~');
            array(out, items, *more, prefixes);
        }
        Value::Entries { count, or_more, first } => entries(out, *count, *or_more, first, prefixes),
        Value::Errno(number) => write_errno(out, *number),
        Value::Failure(failure) => super::failure(out, *failure),
        Value::Unknown => out.push(b'?'),
    }
}

#[inline]
fn flags(out: &mut Vec<u8>, table: &'static ConstantTable, bits: u64, prefixes: bool) {
    for (i, part) in table.flags(bits).enumerate() {
        if i > 0 {
            out.push(b'|');
        }
        match part {
            FlagPart::Constant { table, name } => constant(out, name, table.short(name), prefixes),
            FlagPart::Rest(rest) => number::hex(out, rest),
        }
    }
}

/// Writes a string in quotes: `~"a.b"` if a dot may stand for another byte, and `"abc"...` if the text is longer.
#[inline]
fn string(out: &mut Vec<u8>, text: &Text) {
    if text.altered {
        out.push(b'~');
    }
    escape::quoted(out, &text.bytes);
    if text.cut {
        out.extend_from_slice(b"...");
    }
}

fn constant(out: &mut Vec<u8>, name: &'static str, short: &'static str, prefixes: bool) {
    out.extend_from_slice(if prefixes { name } else { short }.as_bytes());
}

/// Writes the comm of a task and its pid in rtrace's namespace, as far as they are known: ` (sleep)`, or
/// ` (sleep, here 31245)`.
fn write_task(out: &mut Vec<u8>, translated: Option<i32>, comm: Option<&[u8]>) {
    if translated.is_none() && comm.is_none() {
        return;
    }
    out.extend_from_slice(b" (");
    if let Some(comm) = comm {
        escape::plain(out, comm);
    }
    if let Some(pid) = translated {
        out.extend_from_slice(if comm.is_some() { b", here " } else { b"here " });
        number::int(out, i64::from(pid));
    }
    out.push(b')');
}

fn write_file(out: &mut Vec<u8>, file: Option<&File>) {
    match file {
        Some(File::Path(path) | File::Device { path, .. }) => escape::bracketed(out, path),
        Some(file) => escape::bracketed(out, &file::name(file)),
        None => {}
    }
}

/// Writes the call of a macro: `EVIOCGNAME(256)`.
fn write_macro(out: &mut Vec<u8>, name: &str, parameters: &[Value], prefixes: bool) {
    out.extend_from_slice(name.as_bytes());
    out.push(b'(');
    for (at, parameter) in parameters.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        write(out, parameter, prefixes);
    }
    out.push(b')');
}

/// Writes the number of strings that were counted and not copied: `[23 strings]`.
fn write_uncopied(out: &mut Vec<u8>, count: u64, or_more: bool) {
    out.push(b'[');
    number::uint(out, count);
    out.extend_from_slice(if or_more { b" or more" } else { b"" });
    out.extend_from_slice(if count == 1 { b" string]" } else { b" strings]" });
}

/// Writes the negative of an error: `-ENOENT`.
fn write_errno(out: &mut Vec<u8>, number: i32) {
    match errno::name(number) {
        Some(name) => {
            out.push(b'-');
            out.extend_from_slice(name.as_bytes());
        }
        None => number::int(out, -i64::from(number)),
    }
}

/// Writes the type and permissions of a file: `IFREG|0644`.
fn write_mode(out: &mut Vec<u8>, mode: u32, prefixes: bool) {
    let (kind, permissions) = file_mode(mode);
    if let Some(name) = kind {
        constant(out, name, FILE_TYPE.short(name), prefixes);
        out.push(b'|');
    }
    number::octal(out, u64::from(permissions));
}

/// Writes a wait status: `{.exited: 0}`.
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

/// Writes the text that precedes the value of the struct member with the index `i`: a separator and the name.
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

/// Writes the number and the first names of directory entries: `[3 entries: ".", "..", "a"]`.
fn entries(out: &mut Vec<u8>, count: u64, or_more: bool, first: &ArrayValue, prefixes: bool) {
    out.push(b'[');
    number::uint(out, count);
    out.extend_from_slice(if or_more { b" or more" } else { b"" });
    out.extend_from_slice(if count == 1 && !or_more { b" entry" } else { b" entries" });
    for (i, name) in first.items.iter().enumerate() {
        out.extend_from_slice(if i > 0 { b", " } else { b": " });
        write(out, name, prefixes);
    }
    close(out, false, first.more, b']');
}

/// Writes the end of a struct or array; `more` adds dots for omitted elements.
pub(super) fn close(out: &mut Vec<u8>, empty: bool, more: bool, bracket: u8) {
    if more {
        out.extend_from_slice(if empty { b"..." } else { b", ..." });
    }
    out.push(bracket);
}
