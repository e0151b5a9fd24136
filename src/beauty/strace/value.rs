//! Prints a value as strace 7.2 does: full names of constants, a comment with the kind of constant that a number has no
//! name for, members as `name=value`, and the macros of C that make a value.

use super::super::row::{ConstantTable, Form, Test};
use super::super::table::FlagPart;
use super::super::tables::constants::PTRACE_EVENT;
use super::super::value::{ArrayValue, Failure, StateChange, StructValue, Text, Value, WaitStatus, file_mode};
use super::super::{errno, file, signal};
use super::forms;
use super::quote;
use crate::event::File;
use crate::show::strace::InHex;
use crate::text::number;
use smallvec::SmallVec;
use std::io::Write;
use std::net::IpAddr;

/// The value of `dfd` that stands for the current directory (openat(2)).
const AT_FDCWD: i32 = -100;

/// The maximum number of elements of an array that are shown without `-v`.
const ELEMENTS_MAX: usize = 32;

/// What the options of strace say about values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// `-x`, `-xx`
    pub hex: InHex,
    /// `-v`: all members of structs, and all strings of an environment.
    pub whole: bool,
    /// `-y`: the files behind descriptors.
    pub files: bool,
    /// `-Y`: the comms of tasks.
    pub comms: bool,
}

/// Appends a value.
pub fn write(out: &mut Vec<u8>, value: &Value, options: Options) {
    match value {
        Value::Int(value) => number::int(out, *value),
        Value::Uint(value) => number::uint(out, *value),
        Value::Hex(value) => hex(out, *value),
        Value::Octal(value) => octal(out, *value),
        Value::Address(0) | Value::Unread(0) => out.extend_from_slice(b"NULL"),
        Value::Address(address) | Value::Unread(address) | Value::Code(address) => number::hex(out, *address),
        Value::Flags { table, bits } => flags(out, table, *bits),
        Value::Symbol { table, value } => constant(out, table, *value),
        Value::Macro { name, parameters, .. } => write_macro(out, name, parameters, options),
        Value::DirFd { fd: AT_FDCWD, file } => {
            out.extend_from_slice(b"AT_FDCWD");
            write_file(out, *file, options);
        }
        Value::Fd { fd, file } | Value::DirFd { fd, file } => {
            number::int(out, i64::from(*fd));
            write_file(out, *file, options);
        }
        Value::Pid { pid, comm, .. } => {
            number::int(out, i64::from(*pid));
            comm.iter().filter(|_| options.comms).for_each(|comm| quote::comm(out, comm));
        }
        Value::Id { id, .. } => id_number(out, *id),
        Value::Signal(signal) => write_signal(out, *signal),
        Value::Dev { major, minor } => {
            out.extend_from_slice(b"makedev(");
            hex(out, u64::from(*major));
            out.extend_from_slice(b", ");
            hex(out, u64::from(*minor));
            out.push(b')');
        }
        Value::Str(text) => string(out, text, options.hex),
        // Writing to a Vec does not fail.
        Value::Ip(IpAddr::V4(address)) => _ = write!(out, "inet_addr(\"{address}\")"),
        Value::Ip(IpAddr::V6(address)) => _ = write!(out, "\"{address}\""),
        Value::Port(port) => _ = write!(out, "htons({})", port.0),
        Value::SignalCode { signal: of, code } => match signal::code_name(*of, *code) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => hex(out, *code as u32 as u64),
        },
        Value::WaitStatus(status) => wait_status(out, *status),
        Value::SocketAddress(address) => _ = write!(out, "{address}"),
        Value::Named(named) => out.extend_from_slice(named.to_string().as_bytes()),
        Value::Char(byte) => quote::quoted(out, &[*byte], options.hex),
        Value::Bytes(field) => quote::quoted(out, &field.bytes, options.hex),
        Value::UnreadText | Value::Unknown => out.push(b'?'),
        Value::Uncopied { address, count, or_more } => uncopied(out, *address, *count, *or_more),
        Value::FileMode(mode) => write_mode(out, *mode),
        Value::Struct(StructValue { members, address: address @ 1.., more: false, .. }) if members.is_empty() => number::hex(out, *address),
        Value::Struct(of) => structure(out, of, options),
        Value::Packed { members, .. } => members_of(out, members, false, options),
        Value::Array(of) => array(out, of, options),
        Value::AllBut(of) => {
            out.push(b'~');
            array(out, of, options);
        }
        Value::Entries { count, first, .. } => {
            number::hex(out, first.address);
            // Writing to a Vec does not fail.
            _ = write!(out, " /* {count} entries */");
        }
        Value::Errno(number) => match errno::name(*number) {
            Some(name) => {
                out.push(b'-');
                out.extend_from_slice(name.as_bytes());
            }
            None => number::int(out, -i64::from(*number)),
        },
        Value::Failure(failure) => self::failure(out, *failure),
    }
}

/// Writes a number as `%#llx` of C does: 0 has no prefix.
fn hex(out: &mut Vec<u8>, value: u64) {
    if value == 0 { out.push(b'0') } else { number::hex(out, value) }
}

/// Writes a number as `%#03o` of C does.
fn octal(out: &mut Vec<u8>, value: u64) {
    // Writing to a Vec does not fail.
    _ = if value == 0 { write!(out, "000") } else { write!(out, "{:0>3}", format!("0{value:o}")) };
}

/// Writes a user or group; the highest number, which stands for none, as -1.
fn id_number(out: &mut Vec<u8>, id: u32) {
    if id == u32::MAX { out.extend_from_slice(b"-1") } else { number::uint(out, u64::from(id)) }
}

fn flags(out: &mut Vec<u8>, table: &'static ConstantTable, bits: u64) {
    let mut has_names = false;
    let mut parts: SmallVec<[FlagPart; 8]> = table.flags(bits).collect();
    parts.sort_by_key(|part| match part {
        FlagPart::Constant { table: of, .. } if of.name != table.name => forms::place_of_field(table.name),
        FlagPart::Constant { name, .. } => forms::place_of_flag(table.name, name),
        FlagPart::Rest(_) => usize::MAX,
    });
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            out.push(b'|');
        }
        match part {
            FlagPart::Constant { name, .. } => {
                has_names = true;
                out.extend_from_slice(name.as_bytes());
            }
            FlagPart::Rest(0) => out.push(b'0'),
            FlagPart::Rest(rest) => {
                number::hex(out, rest);
                if !has_names {
                    unknown(out, table);
                }
            }
        }
    }
}

/// Writes the descriptors that have events, and these: `[{fd=3, revents=POLLIN}]`.
fn ready(out: &mut Vec<u8>, of: &ArrayValue, options: Options) {
    let result = |item: &Value<'_>| match item {
        Value::Struct(StructValue { members, .. }) => members.iter().any(|(name, value)| *name == "revents" && !is_zero(value)),
        _ => false,
    };
    out.push(b'[');
    let mut separator: &[u8] = b"";
    for item in of.items.iter().filter(|item| result(item)) {
        let Value::Struct(StructValue { members, .. }) = item else { continue };
        out.extend_from_slice(std::mem::replace(&mut separator, b", "));
        let shown: Vec<_> = members.iter().filter(|(name, _)| *name != "events").cloned().collect();
        members_of(out, &shown, false, options);
    }
    out.push(b']');
}

/// Returns whether a value is 0, or a null pointer.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Int(0) | Value::Uint(0) | Value::Hex(0) | Value::Address(0) | Value::Unread(0) => true,
        Value::Flags { bits, .. } => *bits == 0,
        _ => false,
    }
}

/// Writes a command and its flags, with `_PRIVATE` behind the name of the command in place of the flag of that name.
fn private(out: &mut Vec<u8>, table: &'static ConstantTable, bits: u64) {
    let mut text = Vec::new();
    flags(&mut text, table, bits);
    let parts = || text.split(|byte| *byte == b'|');
    let is_private = |part: &[u8]| part.ends_with(b"_PRIVATE_FLAG");
    for (at, part) in parts().filter(|part| !is_private(part)).enumerate() {
        out.extend_from_slice(if at > 0 { b"|" } else { b"" });
        out.extend_from_slice(part);
        out.extend_from_slice(if at == 0 && parts().any(is_private) { b"_PRIVATE" } else { b"" });
    }
}

fn constant(out: &mut Vec<u8>, table: &'static ConstantTable, value: u64) {
    match table.name(value) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => {
            hex(out, if table.bits == 32 { u64::from(value as u32) } else { value });
            unknown(out, table);
        }
    }
}

/// Writes which constants have no such value: ` /* O_??? */`.
fn unknown(out: &mut Vec<u8>, table: &'static ConstantTable) {
    out.extend_from_slice(b" /* ");
    out.extend_from_slice(table.prefix.as_bytes());
    out.extend_from_slice(b"??? */");
}

/// Writes the name of a signal, or its number if it has none.
pub fn write_signal(out: &mut Vec<u8>, signal: i32) {
    match signal {
        32 => out.extend_from_slice(b"SIGRTMIN"),
        _ => signal::write_name(out, signal),
    }
}

/// Writes a string: `"abc"...` if the text is longer.
fn string(out: &mut Vec<u8>, text: &Text, hex: InHex) {
    quote::quoted(out, &text.bytes, hex);
    if text.cut {
        out.extend_from_slice(b"...");
    }
}

fn write_file(out: &mut Vec<u8>, file: Option<&File>, options: Options) {
    let Some(file) = file.filter(|_| options.files) else { return };
    out.push(b'<');
    quote::escaped(out, &file::name(file), b"<>");
    out.push(b'>');
}

fn write_macro(out: &mut Vec<u8>, name: &str, parameters: &[Value], options: Options) {
    out.extend_from_slice(name.as_bytes());
    out.push(b'(');
    for (at, parameter) in parameters.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        write(out, parameter, options);
    }
    out.push(b')');
}

/// Writes the address of strings that were counted: `0x7ffd12345678 /* 23 vars */`.
fn uncopied(out: &mut Vec<u8>, address: u64, count: u64, or_more: bool) {
    number::hex(out, address);
    let name = if count == 1 { "var" } else { "vars" };
    let more = if or_more { ", unterminated" } else { "" };
    // Writing to a Vec does not fail.
    _ = write!(out, " /* {count} {name}{more} */");
}

/// Writes the type and permissions of a file: `S_IFREG|0644`.
fn write_mode(out: &mut Vec<u8>, mode: u32) {
    let (kind, permissions) = file_mode(mode);
    if let Some(name) = kind {
        out.extend_from_slice(name.as_bytes());
        out.push(b'|');
    }
    for (bit, name) in [(0o4000, "S_ISUID|"), (0o2000, "S_ISGID|"), (0o1000, "S_ISVTX|")] {
        if kind.is_some() && permissions & bit != 0 {
            out.extend_from_slice(name.as_bytes());
        }
    }
    octal(out, u64::from(if kind.is_some() { permissions & 0o777 } else { permissions }));
}

/// Writes a wait status by the macros of wait(2): `{WIFEXITED(s) && WEXITSTATUS(s) == 0}`.
fn wait_status(out: &mut Vec<u8>, status: WaitStatus) {
    out.push(b'{');
    match status.change {
        StateChange::Continued => out.extend_from_slice(b"WIFCONTINUED(s)"),
        // Writing to a Vec does not fail.
        StateChange::Exited { status } => _ = write!(out, "WIFEXITED(s) && WEXITSTATUS(s) == {status}"),
        StateChange::Stopped { signal, .. } => {
            out.extend_from_slice(b"WIFSTOPPED(s) && WSTOPSIG(s) == ");
            write_stop_signal(out, signal);
        }
        StateChange::Killed { signal, dumped } => {
            out.extend_from_slice(b"WIFSIGNALED(s) && WTERMSIG(s) == ");
            write_signal(out, signal);
            out.extend_from_slice(if dumped { b" && WCOREDUMP(s)" } else { b"" });
        }
    }
    out.push(b'}');
    if let StateChange::Stopped { event: Some(event), .. } = status.change {
        out.extend_from_slice(b" | ");
        match PTRACE_EVENT.name(u64::from(event)) {
            Some(name) => _ = write!(out, "{name} << 16"),
            None => hex(out, u64::from(event) << 16),
        }
    }
}

/// Writes the signal of a stop, to which ptrace(2) may have added a bit (PTRACE_O_TRACESYSGOOD).
fn write_stop_signal(out: &mut Vec<u8>, signal: i32) {
    const SYSCALL: i32 = 0x80;
    write_signal(out, signal & !SYSCALL);
    if signal & SYSCALL != 0 {
        out.extend_from_slice(b" | 0x80");
    }
}

fn structure(out: &mut Vec<u8>, of: &StructValue, options: Options) {
    let Some(parts) = forms::of_struct(of.name) else { return members_of(out, &of.members, of.more, options) };
    let value_of = |name: &str| of.members.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let (mut more, mut is_empty) = (of.more, true);
    out.push(b'{');
    for part in parts {
        let absent = (part.form == Form::OrZero).then_some(&Value::Uint(0));
        let value = value_of(part.name).or(absent).filter(|value| is_shown(part.test, value, &value_of));
        let Some(value) = value else { continue };
        if part.is_verbose && !options.whole {
            more = true;
            continue;
        }
        out.extend_from_slice(if std::mem::take(&mut is_empty) { b"" } else { b", " });
        out.extend_from_slice(part.label.as_bytes());
        out.push(b'=');
        write_as(out, value, part.form, options);
    }
    close(out, is_empty, more, b'}');
}

/// Returns whether a member is shown, by the other members of its struct.
fn is_shown<'v>(test: Test, value: &Value, value_of: &dyn Fn(&str) -> Option<&'v Value<'v>>) -> bool {
    const DEVICES: [u32; 2] = [0o020_000, 0o060_000];
    match test {
        Test::Always | Test::Unused => true,
        Test::NotZero => !is_zero(value),
        Test::Device(is_device) => {
            let mode = value_of("st_mode").or_else(|| value_of("stx_mode"));
            is_device == mode.is_some_and(|mode| matches!(mode, Value::FileMode(mode) if DEVICES.contains(&(mode & 0o170_000))))
        }
        Test::Flag(member, name) => match value_of(member) {
            Some(Value::Flags { table, bits }) => {
                let is_set = |name| table.constant(name).is_some_and(|flag| i128::from(bits & flag.mask) == flag.value);
                name.split('|').any(is_set)
            }
            _ => false,
        },
    }
}

/// Appends a value in a form of its own.
pub fn write_as(out: &mut Vec<u8>, value: &Value, form: Form, options: Options) {
    match (form, value) {
        (Form::Hex, Value::Int(value)) => hex(out, *value as u64),
        (Form::Hex, Value::Uint(value)) => hex(out, *value),
        (Form::Decimal, Value::Hex(value)) => number::uint(out, *value),
        (Form::Kib, Value::Uint(value)) if *value > 1024 && value % 1024 == 0 => {
            number::uint(out, value / 1024);
            out.extend_from_slice(b"*1024");
        }
        (Form::Blanks, Value::Array(of)) => list(out, of, b" ", options),
        (Form::HexString, Value::Str(text)) => string(out, text, InHex::Always),
        (Form::Text, Value::Str(text)) => quote::quoted(out, text.bytes.strip_suffix(b"\0").unwrap_or(&text.bytes), options.hex),
        (Form::Address, Value::Struct(StructValue { address, .. }) | Value::Array(ArrayValue { address, .. })) => {
            number::hex(out, *address)
        }
        (Form::Entries, Value::Array(of)) if !options.whole => {
            number::hex(out, of.address);
            // Writing to a Vec does not fail.
            _ = write!(out, " /* {} entries */", of.items.len());
        }
        (Form::Address, Value::Symbol { table, value }) if table.name(*value).is_none() => number::hex(out, *value),
        (Form::Ready, Value::Array(of)) => ready(out, of, options),
        (Form::Private, Value::Flags { table, bits }) => private(out, table, *bits),
        (Form::Signal, Value::Int(signal)) => write_signal(out, *signal as i32),
        _ => write(out, value, options),
    }
}

fn members_of(out: &mut Vec<u8>, members: &[(&'static str, Value)], more: bool, options: Options) {
    out.push(b'{');
    for (at, (name, value)) in members.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        write(out, value, options);
    }
    close(out, members.is_empty(), more, b'}');
}

fn array(out: &mut Vec<u8>, of: &ArrayValue, options: Options) {
    // A set of signals has blanks between the names, which lack `SIG`.
    let is_of_signals = of.items.first().is_some_and(|item| matches!(item, Value::Signal(_)));
    list(out, of, if is_of_signals { b" " } else { b", " }, options);
}

fn list(out: &mut Vec<u8>, of: &ArrayValue, separator: &[u8], options: Options) {
    out.push(b'[');
    let shown = if options.whole { of.items.len() } else { of.items.len().min(ELEMENTS_MAX) };
    for (at, item) in of.items[..shown].iter().enumerate() {
        out.extend_from_slice(if at > 0 { separator } else { b"" });
        match item {
            Value::Signal(32) => out.extend_from_slice(b"RTMIN"),
            Value::Signal(signal) => {
                let begin = out.len();
                signal::write_name(out, *signal);
                if out[begin..].starts_with(b"SIG") {
                    out.drain(begin..begin + 3);
                }
            }
            item => write(out, item, options),
        }
    }
    close(out, of.items.is_empty(), of.more || shown < of.items.len(), b']');
}

/// Writes the end of a struct or array; `more` adds dots for omitted elements.
fn close(out: &mut Vec<u8>, is_empty: bool, more: bool, bracket: u8) {
    if more {
        out.extend_from_slice(if is_empty { b"..." } else { b", ..." });
    }
    out.push(bracket);
}

/// Writes the result of a call that returned no value.
pub fn failure(out: &mut Vec<u8>, failure: Failure) {
    match failure {
        Failure::Timeout => out.extend_from_slice(b"0 (Timeout)"),
        Failure::Error(number) => match (errno::name(number), errno::text(number)) {
            // Writing to a Vec does not fail.
            (Some(name), Some(text)) => _ = write!(out, "-1 {name} ({text})"),
            _ => _ = write!(out, "-1 (errno {number})"),
        },
        Failure::Restart(number) => match (errno::name(number), errno::text(number)) {
            // Writing to a Vec does not fail.
            (Some(name), Some(text)) => _ = write!(out, "? {name} ({text})"),
            _ => _ = write!(out, "? (errno {number})"),
        },
    }
}
